"""Print `reference/receivers.md`, the message of the receivers in `deploy/alertmanager/` for a recorded incident.

`make docs` runs it. amtool renders the message from the alerts that `kontrast serve` would send.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from controller.contract.alert_row import Severity
from controller.restore.stored_context import new_context
from controller.step import steps
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import message_of
from lab.pages import ROOT
from questions.check.incidents import known_incidents
from questions.memory import Memory
from tests import recorded_moment
from tests.programs import program

_DEPLOY = ROOT / "deploy" / "alertmanager"
_GROUP = "broker 2 (2)"
_PART = re.compile(r'\{\{ template "kontrast\.(\w+)" \. \}\}')
_HEAD = """# Messages of receivers

Every receiver in [deploy/alertmanager](../../deploy/alertmanager) sends the same title, text and link of
`kontrast.tmpl`. [Send alerts](../how-to/alerting.md#choose-a-receiver) connects them. amtool renders this message
with the alerts of a recorded incident:
"""
_TABLE = """
| receiver | fields |
| --- | --- |
"""
_WEBHOOK = "Alertmanager's own JSON with [these annotations](../how-to/alerting.md)"


def texts() -> dict[str, dict[str, str]]:
    """Return the templates of each receiver by their fields."""
    configs = [yaml.safe_load((_DEPLOY / name).read_text(encoding="utf-8")) for name in ("receivers.yml", "teams.yml")]
    receivers = {receiver.pop("name"): receiver for config in configs for receiver in config["receivers"]}
    return {name: dict(_templates(*receiver.values())) for name, receiver in receivers.items()}


def _templates(config: object, *fields: str) -> Iterator[tuple[str, str]]:
    if isinstance(config, str) and "{{" in config:
        yield ".".join(fields), config
    elif isinstance(config, list):
        for each in config:
            yield from _templates(each, *fields)
    elif isinstance(config, Mapping):
        for name, each in config.items():
            yield from _templates(each, *fields, name)


def message(recorded_files: Path) -> dict[str, Any]:
    """Return Alertmanager's message with the critical alerts of a recorded incident, as Kontrast sends them."""
    memory = Memory()
    outcome = steps(new_context("orders"), list(recorded_moment.history(recorded_files, "orders").records()))
    for row in outcome.effects:
        memory.apply(row)
    (found,) = memory.clusters()
    (incident,) = (each for each in known_incidents(memory, found, ()) if each.group == _GROUP)
    config = AlertmanagerConfig(page_url="https://kontrast.example", runbook_url="https://wiki.example/runbooks")
    pages = [row for row in incident.alerts if row.severity is Severity.PAGE]
    sent = [message_of(row, config, incident=incident) for row in pages]
    alerts = [
        {"status": "firing", "labels": dict(each.labels), "annotations": dict(each.annotations)}
        for each in sorted(sent, key=lambda each: (len(each.labels), each.labels))  # Alertmanager's order
    ]
    common = dict(sorted(set.intersection(*(set(each.labels) for each in sent))))
    group = {"kafka_cluster": "orders", "group": _GROUP}
    return {
        "receiver": "page",
        "status": "firing",
        "alerts": alerts,
        "groupLabels": group,
        "commonLabels": common,
        "externalURL": "https://alertmanager.example",
    }


def rendered(text: str, sent: Mapping[str, Any]) -> str:
    """Return a template's words for this message. Raise CalledProcessError."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as data:
        json.dump(sent, data)
        data.flush()
        command = [program("amtool"), "template", "render", f"--template.glob={_DEPLOY / 'kontrast.tmpl'}"]
        command += [f"--template.data={data.name}", f"--template.text={text}"]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as directory:
        sent = message(recorded_moment.zk_data(Path(directory)))
    title, text = (rendered(f'{{{{ template "kontrast.{part}" . }}}}', sent) for part in ("title", "text"))
    shown = f"\n```text\n{title}\n\n{text}\n```\n"
    rows = (f"| `{name}` | {_fields(of_receiver, sent)} |\n" for name, of_receiver in texts().items())
    return "".join([_HEAD, shown, _TABLE, *rows])


def _fields(of_receiver: Mapping[str, str], sent: Mapping[str, Any]) -> str:
    fields = []
    for field, text in of_receiver.items():
        part = _PART.fullmatch(text)
        fields.append(f"`{field}`: {f'the {part[1]}' if part else f'`{rendered(text, sent)}`'}")
    return ", ".join(fields) or _WEBHOOK


if __name__ == "__main__":
    sys.stdout.write(page())
