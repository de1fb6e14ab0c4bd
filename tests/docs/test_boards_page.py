"""The page of boards and rules, which names every board and every alert on Kontrast itself."""

from __future__ import annotations

import re
from pathlib import Path

from tests.dashboards.grafana_boards import GRAFANA

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_every_board_and_every_alert_on_kontrast_itself():
    page = (DOCS / "reference" / "boards.md").read_text(encoding="utf-8")
    for board in GRAFANA.glob("*.json"):
        assert f"](../../dashboards/grafana/{board.name})" in page
    rules = (DOCS.parent / "deploy" / "prometheus" / "kontrast-self.yml").read_text(encoding="utf-8")
    severities = re.findall(r"alert: (\w+)\n(?:.*\n)*?\s+severity: (\w+)", rules)
    listed = re.findall(r"^- (\w+): (.+(?:\n  .+)*)", page, re.MULTILINE)
    found = [
        (alert, severity)
        for severity, names in listed
        for alert in re.findall(r"\[(\w+)\]\(../runbooks/\1.md\)", names)
    ]
    assert sorted(found) == sorted(severities)
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", page):
        assert (DOCS / "reference" / link).exists(), link
