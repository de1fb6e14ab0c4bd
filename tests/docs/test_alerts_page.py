"""The page of the alerts, which matches the catalogue, whose durations are those of the judgement."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.alerts import controller_conditions, partition_conditions
from controller.contract.alert_kinds import kinds
from controller.contract.alert_kinds.kinds import ALERT_KINDS, SECTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "alerts.md").read_text(encoding="utf-8")


def part(name: str) -> str:
    """Return the page's text on a kind, on one line."""
    return " ".join(PAGE.split(f"\n### {name}\n")[1].split("\n## ")[0].split("\n### ")[0].split())


def test_the_kinds_are_in_the_catalogues_sections_and_order():
    headings = [line for line in PAGE.splitlines() if line.startswith(("## ", "### "))]
    expected = []
    for section, of_section in SECTIONS.items():
        expected.append(f"## {section}")
        expected += [f"### {kind.name}" for kind in of_section]
    assert headings[headings.index("## Partitions") :] == expected
    assert sum(heading.startswith("### ") for heading in headings) == len(ALERT_KINDS)


@pytest.mark.parametrize("kind", ALERT_KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_on_the_page_with_all_that_the_catalogue_has(kind):
    told = part(kind.name)
    assert f"**Severity**: {kind.severity.value}." in told
    for text in (kind.meaning, kind.action, kind.expected, kind.patience_else, kind.divergence):
        assert text is None or text in told
    assert ("**Stays open**" in told) is bool(kind.lasts_ms)


@pytest.mark.parametrize(
    ("kind", "opens"),
    [
        (kinds.UNDER_MIN_ISR, "at once."),
        (kinds.UNDER_REPLICATED, "when it has lasted for 1 min."),
        (kinds.UNCLEAN_ELECTION, "at once when it happens. - **Stays open**: 30 min after it happened last."),
    ],
)
def test_it_says_when_a_kind_opens(kind, opens):
    assert f"**Opens**: {opens}" in part(kind.name)


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
