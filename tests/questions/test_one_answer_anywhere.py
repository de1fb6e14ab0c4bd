"""One answer from every source at random heartbeats of random recordings, each night at others.

`ONE_ANSWER_SEED` repeats a night, and `ONE_ANSWER_MOMENTS` plays more moments.
"""

from __future__ import annotations

import os
import random
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from controller.contract.records import RecordKind
from ingest.files.history import FileHistory
from tests.conformance.large import LARGE
from tests.conformance.recording import ARCHIVES, PICTURED
from tests.questions.one_cluster import CLUSTER, Cluster, answers, page_answers, unpacked
from tests.questions.test_one_answer import differing, differing_from_outputs, differing_from_page

TODAY = datetime.now(timezone.utc).date().toordinal()
SEED = int(os.environ.get("ONE_ANSWER_SEED", TODAY))
MOMENTS = int(os.environ.get("ONE_ANSWER_MOMENTS", "60"))
RECORDINGS = sorted({each.name.removesuffix(".tar.xz") for each in ARCHIVES.glob("*.tar.xz")} - LARGE.keys() - PICTURED)


def a_moment(number: int, directory: Path) -> tuple[str, int, Cluster]:
    """Return a recording, a heartbeat after the first complete read, and the cluster then.

    No record follows in the same millisecond, because the outputs count pending writes as of the heartbeat.
    """
    drawn = random.Random(f"{SEED}-{number}")
    recording = drawn.choice(RECORDINGS)
    data = unpacked(recording, directory)
    records = list(FileHistory((data,), CLUSTER).records())
    pairs = pairwise((record.kind, record.observed_ms) for record in records)
    beats = [at_ms for (kind, at_ms), (_, next_ms) in pairs if kind is RecordKind.HEARTBEAT and next_ms > at_ms]
    at_ms = drawn.choice(beats[3:])
    return recording, at_ms, Cluster(data, at_ms, directory)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(MOMENTS))
def test_sources_answer_alike_at_a_random_moment(number, tmp_path):
    recording, at_ms, cluster = a_moment(number, tmp_path)
    print(f"seed {SEED}: {recording} at {at_ms}")
    files = cluster.from_files()
    known = answers(files)
    assert differing(known, answers(cluster.from_changes())) == {}
    if any(row.output == "alerts" for row in cluster.rows):  # before the first alert the causes are unknown
        assert differing_from_outputs(known, answers(cluster.from_derived())) == {}
    assert differing_from_page(known, page_answers(cluster.page(), files)) == {}
