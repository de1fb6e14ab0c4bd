"""Digests of the rows of every recording. A change of the core's structure changes none.

`REWRITE=1 pytest tests/conformance/test_row_digests.py` writes the current digests. A commit that means to change rows
names the changed recordings and the reason. The digests leave out sentences, which have pages of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from controller.contract.row import Row
from tests.conformance.large import LARGE
from tests.conformance.proof import counted, proof_of
from tests.conformance.recording import ARCHIVES, PICTURED

PAGE = Path(__file__).parent / "row-digests.json"
REWRITES = os.environ.get("REWRITE") == "1"
NAMES = sorted(
    {archive.name.removesuffix(".tar.xz") for archive in ARCHIVES.glob("*.tar.xz")} - LARGE.keys() - PICTURED
)

# The fields in which a row speaks to people, by the row's kind.
SENTENCES = {
    "transition": ("cause",),
    "request": ("cause",),
    "partition": ("reason",),
    "alert": ("alert", "id", "subject", "group", "cause", "expected", "action", "evidence"),
    "refused": ("reason",),
    "gauges": ("divergences", "slowest_reactions", "ensemble"),  # in recordings no server was asked
}

NOT_RECORDED = "ensemble"  # no recording has the answers of ZooKeeper's servers


def digest_of(rows: Iterable[Row]) -> str:
    """Return the SHA-256 of rows without their sentences. The event in a cause stays."""
    digest = hashlib.sha256()
    for row in rows:
        fields = msgspec.to_builtins(row)
        event = str(fields.get("cause", "")).partition(":")[0] if fields["kind"] in ("transition", "request") else ""
        for name in (*SENTENCES.get(fields["kind"], ()), NOT_RECORDED):
            fields.pop(name, None)
        digest.update(json.dumps([event, fields], sort_keys=True).encode())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("name", NAMES)
def test_the_rows_of_a_recording_are_what_they_were(name, recordings):
    _, replay = recordings(name)
    now = {"rows": len(replay.rows), "digest": digest_of([*replay.rows, *replay.gauges])}
    if REWRITES:
        known = json.loads(PAGE.read_text()) if PAGE.exists() else {}
        PAGE.write_text(json.dumps({**known, name: now}, indent=1, sort_keys=True) + "\n")
    assert json.loads(PAGE.read_text())[name] == now


@pytest.mark.parametrize("name", NAMES)
def test_the_moves_of_a_recording_are_proved_as_counted(name, recordings):
    recording, replay = recordings(name)
    now = proof_of(recording.records(), replay.rows, recording.account())
    assert now == counted()[name][1], f"run `python -m tests.conformance.proof {name}`"
