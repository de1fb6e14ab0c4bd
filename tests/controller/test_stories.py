"""Stories of controllers, brokers and leaders, in `stories/`, each with the rows that it must give.

`REWRITE=1 pytest tests/controller/test_stories.py` writes the rows of now. A title says what a story must show, so
read each changed row under its title.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import RefusedRow, Transition
from controller.contract.metadata_rows import MigrationRow
from controller.contract.row import Row
from tests.controller.trace_language import run_page
from tests.controller.znode_history import ZnodeHistory, told
from tests.kept_texts import assert_as_before

PAGES = sorted((Path(__file__).parent / "stories").glob("*.txt"))
NOT_SHOWN = {*Row.__struct_fields__, "cluster", "next_step", "rollback_sentence", "since_ms", "pulse_ms"}


def rows_of(history: ZnodeHistory, seen: int) -> list[str]:
    """Return the moves under their causes and rules, and the names of alerts and refused znodes."""
    lines, cause, shown = [], "", ""
    for row in history.effects[seen:]:
        if isinstance(row, Transition):
            if cause != (cause := row.cause + f" (by {row.inferred_by})" * bool(row.inferred_by)):
                lines.append(cause)
            lines.append(f"  {told(row)}")
        elif isinstance(row, AlertRow):
            lines.append(f"alert {row.state} {row.id} ({row.severity.value})")
        elif isinstance(row, RefusedRow):
            lines.append(f"refused {row.path}")
        elif isinstance(row, MigrationRow) and shown != (shown := migration(row)):
            lines.append(shown)
    return lines


def migration(row: MigrationRow) -> str:
    shown = (key for key in row.__struct_fields__ if key not in NOT_SHOWN and getattr(row, key))
    return " ".join(["migration", *(f"{key}={getattr(row, key)}" for key in shown)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_story_has_the_rows_that_it_had_before(page):
    assert_as_before(run_page(page.read_text(encoding="utf-8"), rows_of), page)
