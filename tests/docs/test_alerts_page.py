"""The page of the alerts, which matches the catalogue, whose durations are those of the judgement."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controller.alerts import controller_conditions, partition_conditions
from controller.contract.alert_kinds import kinds
from controller.contract.alert_kinds.kinds import ALERT_KINDS, SECTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "alerts.md").read_text(encoding="utf-8")


def row(name: str) -> str:
    """Return the row of a kind."""
    (found,) = [line for line in PAGE.splitlines() if line.startswith(f"| [{name}](../runbooks/Kontrast{name}.md) |")]
    return found


def test_the_kinds_are_in_the_catalogues_sections_and_order():
    told = PAGE[PAGE.index("\n## Partitions") :]
    expected = []
    for section, of_section in SECTIONS.items():
        expected.append(f"## {section}")
        expected += [kind.name for kind in of_section]
    found = re.findall(r"^(?:(## .+)|\| \[(\w+)\].*)$", told, re.MULTILINE)
    assert [heading or name for heading, name in found] == expected
    assert len(found) - len(SECTIONS) == len(ALERT_KINDS)


@pytest.mark.parametrize("kind", ALERT_KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_on_the_page_with_its_severity_meaning_and_delay(kind):
    told = row(kind.name)
    assert f"| {kind.severity.value} | {kind.meaning} |" in told
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
    assert row(kind.name).endswith(f"| {opens} |")


@pytest.mark.parametrize(
    ("kind", "duration"),
    [
        (kinds.PARTITIONS_OFFLINE, f"{kinds.ELECTION_DUE.patience_ms // 1_000} s"),
        (kinds.GHOST_CONTROLLER, f"{controller_conditions._UNREGISTERED_MS // 1_000} s"),
        (kinds.PREFERRED_IMBALANCE, f"{controller_conditions._REBALANCE_AFTER_MS // 60_000} min"),
        (kinds.DELETION_STUCK, f"{partition_conditions._DELETING_MS // 60_000} min"),
        (kinds.REASSIGNMENT_STUCK, f"{partition_conditions._COPYING_MS // 60_000} min"),
    ],
)
def test_another_patience_is_the_one_that_is_judged_by(kind, duration):
    assert f"after {duration}" in (kind.patience_else or "")
