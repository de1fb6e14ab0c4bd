"""The shipped receivers, read by amtool and rendered with alerts of a recorded incident."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.restore.stored_context import new_context
from controller.step import steps
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import message_of
from tests import recorded_moment

DEPLOY = Path(__file__).parents[2] / "deploy" / "alertmanager"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "alerting.md"
RECEIVERS = {
    name: sorted(set(re.findall(r"'([^'\n]*\{\{[^'\n]*)'", receiver)))
    for file in ("receivers.yml", "teams.yml")
    for name, receiver in re.findall(
        r"^  - name: (\S+)\n((?:    .*\n|\n)*)", (DEPLOY / file).read_text(encoding="utf-8"), re.MULTILINE
    )
}


@pytest.fixture(scope="module")
def message(recorded_files) -> dict[str, Any]:
    """Return an Alertmanager message with one cause's alerts in a recorded incident, as `kontrast serve` sends them."""
    rows: dict[str, AlertRow] = {}
    outcome = steps(new_context("orders"), list(recorded_moment.history(recorded_files, "orders").records()))
    for row in outcome.effects:
        if isinstance(row, AlertRow):
            rows[row.id] = row
    config = AlertmanagerConfig(page_url="https://kontrast.example", runbook_url="https://wiki.example/runbooks")
    opened = [row for row in rows.values() if row.state == "open"]
    paging = min(row.group for row in opened if row.severity is Severity.PAGE)
    sent = [message_of(row, config) for row in opened if row.group == paging]
    alerts = [
        {"status": "firing", "labels": dict(each.labels), "annotations": dict(each.annotations)}
        for each in sorted(sent, key=lambda each: (each.severity is not Severity.PAGE, each.labels))
    ]
    common = dict(set.intersection(*(set(alert["labels"].items()) for alert in alerts)))
    group = {"kafka_cluster": "orders", "group": common["group"]}
    return {"receiver": "page", "status": "firing", "alerts": alerts, "groupLabels": group, "commonLabels": common}


@pytest.fixture
def rendered(amtool, tmp_path):
    def render(text: str, message: dict[str, Any]) -> str:
        (tmp_path / "data.json").write_text(json.dumps(message))
        options = f"--template.glob={DEPLOY / 'kontrast.tmpl'}", f"--template.data={tmp_path / 'data.json'}"
        done = amtool("template", "render", *options, f"--template.text={text}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return render


def test_amtool_accepts_the_receivers(amtool):
    checked = amtool("check-config", str(DEPLOY / "receivers.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(RECEIVERS) - 1} receivers" in checked.stdout


@pytest.mark.parametrize("receiver", RECEIVERS)
def test_every_text_of_a_receiver_has_words_for_a_real_alert(receiver, message, rendered):
    texts = RECEIVERS[receiver]
    assert bool(texts) is (receiver != "page-webhook")
    for text in texts:
        words = rendered(text, message)
        assert words.strip()
        assert "<no value>" not in words
    resolved = {**message, "status": "resolved", "alerts": [{**a, "status": "resolved"} for a in message["alerts"]]}
    for text in texts:
        assert "<no value>" not in rendered(text, resolved)


def test_the_page_shows_the_words_of_a_real_alert(message, rendered):
    """REWRITE=1 rewrites the page."""
    title = rendered('{{ template "kontrast.title" . }}', message).strip()
    text = rendered('{{ template "kontrast.text" . }}', message).strip()
    page = PAGE.read_text(encoding="utf-8")
    shown = re.search(r"(?<=A message of a recorded incident:\n\n```text\n).*?(?=\n```)", page, re.DOTALL)
    assert shown is not None
    if os.environ.get("REWRITE"):
        PAGE.write_text(f"{page[: shown.start()]}{title}\n\n{text}{page[shown.end() :]}", encoding="utf-8")
    else:
        assert shown[0] == f"{title}\n\n{text}"
