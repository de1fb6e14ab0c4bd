"""The page of the state machines, which matches their tables."""

from __future__ import annotations

from pathlib import Path

from controller.rules.migration_phases import NEXT_PHASE
from controller.rules.states import PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS

DOCS = Path(__file__).parents[2] / "docs"


PAGE = (DOCS / "reference" / "states.md").read_text(encoding="utf-8")


def test_every_legal_move_is_an_arrow_and_no_other():
    arrows = {line.strip() for line in PAGE.splitlines() if " --> " in line and "[*]" not in line}
    tables = (PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS)
    legal = {(before.word, after.word) for table in tables for after, found in table.items() for before in found}
    assert arrows == {f"{before} --> {after}" for before, after in legal}


def test_every_piece_of_evidence_has_its_phases():
    rows = {tuple(cell.strip() for cell in line.strip("|").split("|")) for line in PAGE.splitlines() if line[:1] == "|"}
    told = {
        (why, before, after)
        for why, befores, after in (row for row in rows if len(row) == 3)
        for before in befores.split(", ")
    }
    known = {
        (why.value, before.value, after.value) for before, found in NEXT_PHASE.items() for why, after in found.items()
    }
    assert known <= told
    assert len(told) == len(known) + 2  # the head of the table
