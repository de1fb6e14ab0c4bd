"""UpdateMetadata of every recording: the partitions that brokers were told, by the controller's log and by our rows.

`REWRITE=1 pytest tests/conformance/test_metadata_requests.py` writes the figures, which may only rise.
docs/explanation/what-a-replica-cannot-know.md has the least share of three groups of releases.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.metadata_requests import metadata_agreement
from tests.conformance.test_row_digests import NAMES

FIGURES = Path(__file__).with_name("metadata-requests.json")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "what-a-replica-cannot-know.md"
REWRITES = os.environ.get("REWRITE") == "1"


def figures() -> dict[str, list]:
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else {}


def least_share(releases: Callable[[list[int]], bool]) -> int:
    """Return the least share of a release among these, in percent."""
    sums: dict[str, Counter[str]] = {}
    for release, matched, real, derived in figures().values():
        if real and releases([int(part) for part in release.split(".")]):  # KRaft's recordings have no such log
            sums.setdefault(release, Counter()).update(matched=matched, real=real, derived=derived)
    return min(100 * of["matched"] // max(of["real"], of["derived"]) for of in sums.values())


@pytest.mark.parametrize("name", NAMES)
def test_brokers_are_told_of_partitions_as_counted(name, recordings, report):
    recording, replay = recordings(name)
    found = metadata_agreement(recording, replay.rows)
    report.append(f"{name:8} partitions in UpdateMetadata {found}")
    now = [recording.release(), *found]
    if REWRITES:
        FIGURES.write_text(json.dumps({**figures(), name: now}, sort_keys=True).replace("], ", "],\n") + "\n")
    assert figures()[name] == now


def test_the_page_has_the_least_share_of_the_releases():
    least = (
        f"{least_share(lambda release: release < [0, 11])} % in 0.10, "
        f"{least_share(lambda release: [0, 11] <= release < [2, 6])} % from 0.11 to 2.4, "
        f"and {least_share(lambda release: release >= [2, 6])} % from 2.6 on"
    )
    assert least in " ".join(PAGE.read_text(encoding="utf-8").split())
