"""Pages of reference and explanation, which match the tables and files that they are about."""

from __future__ import annotations

import re

import pytest

from controller.alerts import controller_conditions, partition_conditions
from controller.rules.migration_phases import NEXT_PHASE
from controller.rules.states import PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS
from controller.says.alert_kinds import kinds
from controller.says.alert_kinds.kinds import ALERT_KINDS, SECTIONS
from controller.view import held_back
from lab.pages import DOCS
from migration.preflight.check import Hazard, nothing
from migration.preflight.report import CHECKS
from tests.dashboards.grafana_boards import GRAFANA

ALERTS, BOARDS, STATES, MIGRATION_CHECKS = (
    (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("alerts", "boards", "states", "migration-checks")
)
_CLASSES = [Hazard.LOSES, Hazard.KILLS, Hazard.STICKS, Hazard.BLOCKS, Hazard.LOSES, Hazard.ROLLBACK]


def row_of(name: str) -> str:
    """Return the row of a kind."""
    (found,) = [line for line in ALERTS.splitlines() if line.startswith(f"| [{name}](../runbooks/Kontrast{name}.md) |")]
    return found


def test_the_kinds_are_in_the_catalogues_sections_and_order():
    told = ALERTS[ALERTS.index("\n## Partitions") :]
    expected = []
    for section, of_section in SECTIONS.items():
        expected.append(f"## {section}")
        expected += [kind.name for kind in of_section]
    found = re.findall(r"^(?:(## .+)|\| \[(\w+)\].*)$", told, re.MULTILINE)
    assert [heading or name for heading, name in found] == expected
    assert len(found) - len(SECTIONS) == len(ALERT_KINDS)


@pytest.mark.parametrize("kind", ALERT_KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_on_the_page_with_its_severity_and_delay(kind):
    told = row_of(kind.name)
    assert f"| {kind.severity.value} |" in told
    for text in (kind.patience_else, kind.divergence):
        assert text is None or text.rstrip(".") in told
    assert (". Stays " in told) is bool(kind.lasts_ms)


@pytest.mark.parametrize(
    ("kind", "opens"),
    [
        (kinds.UNDER_MIN_ISR, "at once"),
        (kinds.UNDER_REPLICATED, "after 1 min"),
        (kinds.UNCLEAN_ELECTION, "at once. Stays 30 min"),
    ],
)
def test_it_says_when_a_kind_opens(kind, opens):
    assert row_of(kind.name).endswith(f"| {opens} |")


@pytest.mark.parametrize(
    ("kind", "duration"),
    [
        (kinds.PARTITIONS_OFFLINE, f"{kinds.ELECTION_DUE.patience_ms // 1_000} s"),
        (kinds.GHOST_CONTROLLER, f"{controller_conditions._UNREGISTERED_MS // 1_000} s"),
        (kinds.PREFERRED_IMBALANCE, f"{controller_conditions._REBALANCE_AFTER_MS // 60_000} min"),
        (kinds.DELETION_STUCK, f"{held_back.DELETING_MS // 60_000} min"),
        (kinds.REASSIGNMENT_STUCK, f"{partition_conditions._COPYING_MS // 60_000} min"),
    ],
)
def test_another_patience_is_the_one_that_is_judged_by(kind, duration):
    assert f"after {duration}" in (kind.patience_else or "")


def test_every_legal_move_is_an_arrow_and_no_other():
    arrows = {line.strip() for line in STATES.splitlines() if " --> " in line and "[*]" not in line}
    tables = (PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS)
    legal = {(before.word, after.word) for table in tables for after, found in table.items() for before in found}
    assert arrows == {f"{before} --> {after}" for before, after in legal}


def test_every_piece_of_evidence_has_its_phases():
    rows = {
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in STATES.splitlines() if line[:1] == "|"
    }
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


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_is_told_with_all_that_the_table_says(check):
    entry = " ".join(MIGRATION_CHECKS.split(f"\n## {check.name}\n")[1].split("\n## ")[0].split())
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


def test_the_page_shows_every_board_and_every_alert_on_kontrast_itself():
    for board in GRAFANA.glob("*.json"):
        assert f"](../../deploy/helm/kontrast/boards/{board.name})" in BOARDS
    rules = (DOCS.parent / "deploy" / "prometheus" / "kontrast-self.yml").read_text(encoding="utf-8")
    severities = re.findall(r"alert: (\w+)\n(?:.*\n)*?\s+severity: (\w+)", rules)
    listed = re.findall(r"^- (\w+): (.+(?:\n  .+)*)", BOARDS, re.MULTILINE)
    found = [
        (alert, severity)
        for severity, names in listed
        for alert in re.findall(r"\[(\w+)\]\(../runbooks/\1.md\)", names)
    ]
    assert sorted(found) == sorted(severities)
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", BOARDS):
        assert (DOCS / "reference" / link).exists(), link


def test_each_guarantee_links_a_test() -> None:
    page = (DOCS / "explanation" / "guarantees.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!fault \||---).+$", page, re.MULTILINE)
    assert len(rows) > 30
    for row in rows:
        assert "test](../../tests/" in row, row
