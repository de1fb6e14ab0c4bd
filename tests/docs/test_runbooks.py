"""Every alert has a runbook with the same parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controller.says.alert_kinds.kind import NAME_PREFIX
from controller.says.alert_kinds.kinds import ALERT_KINDS
from dashboards.alerting.registry import BROKER_VIEW, FINALIZED_TOO_EARLY
from questions.doubts import STALE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUNBOOKS = DOCS / "runbooks"
KINDS = {f"Kontrast{name}" for name in ALERT_KINDS}
RULES = {
    alert
    for name in ("self", "cluster")
    for alert in re.findall(
        r"^ *- alert: (\w+)$",
        (ROOT / f"deploy/prometheus/kontrast-{name}.yml").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
} - {"KontrastAlert"}  # it passes on the alerts of all kinds
OF_THE_EXPORTER = {f"{NAME_PREFIX}{name}" for name in (STALE, BROKER_VIEW, FINALIZED_TOO_EARLY)}
PARTS = ["Meaning.", "First look.", "Do.", "Do not.", "It ends"]
PAGES = [DOCS / "reference" / "alerts.md", *sorted(RUNBOOKS.iterdir())]


def test_every_kind_and_every_rule_has_a_runbook_and_there_is_no_other():
    assert {page.name for page in RUNBOOKS.iterdir()} == {f"{name}.md" for name in KINDS | RULES | OF_THE_EXPORTER}


@pytest.mark.parametrize("page", sorted(RUNBOOKS.iterdir()), ids=lambda page: page.stem)
def test_a_runbook_has_all_parts_in_their_order(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}\n")
    assert re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE)[: len(PARTS)] == PARTS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_link_to_a_runbook_has_its_name(page):
    for label, name in re.findall(r"\[([^\]]+)\]\([^)#]*?(Kontrast\w+)\.md\)", page.read_text(encoding="utf-8")):
        assert f"Kontrast{label.removeprefix('Kontrast')}" == name
