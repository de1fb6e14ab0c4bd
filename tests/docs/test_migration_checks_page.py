"""The page of the preflight's checks, which matches their table."""

from __future__ import annotations

from pathlib import Path

import pytest

from migration.preflight.check import Outcome, nothing
from migration.preflight.report import CHECKS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "migration-checks.md").read_text(encoding="utf-8")
_CLASSES = [Outcome.LOSES, Outcome.KILLS, Outcome.STICKS, Outcome.BLOCKS, Outcome.LOSES, Outcome.ROLLBACK]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_is_told_with_all_that_the_table_says(check):
    entry = " ".join(PAGE.split(f"\n## {check.name}\n")[1].split("\n## ")[0].split())
    for text in (f"**{check.outcome.value}**", check.shown_by, check.means, check.mend):
        assert text in entry
    assert check.releases == "all" or check.releases in entry
    assert ("always named as not checked" in entry) is (check.find is nothing)


def test_the_worst_is_first():
    """The order is loss of everything, outage, no repair, a wait, then a partial loss."""
    classes = [check.outcome for check in CHECKS]
    assert [outcome for at, outcome in enumerate(classes) if at == 0 or classes[at - 1] is not outcome] == _CLASSES


def test_names_are_given_once_and_defects_end_after_they_begin():
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(not (check.since and check.fixed_in) or check.since < check.fixed_in for check in CHECKS)
