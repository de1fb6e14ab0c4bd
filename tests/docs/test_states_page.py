"""The page of the state machines, which matches their tables."""

from __future__ import annotations

from pathlib import Path

from controller.rules.migration_phases import NEXT_PHASE
from controller.rules.states import PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS

DOCS = Path(__file__).parents[2] / "docs"


def test_every_legal_move_is_an_arrow_and_no_other():
    page = (DOCS / "reference" / "states.md").read_text(encoding="utf-8")
    arrows = {line.strip() for line in page.splitlines() if " --> " in line and "[*]" not in line}
    tables = (PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS)
    legal = {(before.word, after.word) for table in tables for after, found in table.items() for before in found}
    phases = {(before.value, after.value) for before, found in NEXT_PHASE.items() for after in found.values()}
    assert arrows == {f"{before} --> {after}" for before, after in legal | phases}
