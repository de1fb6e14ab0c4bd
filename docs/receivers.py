"""Print `reference/receivers.md`, the message of each receiver in `deploy/alertmanager/` for a recorded incident.

`make docs` runs it. amtool renders the messages from the alerts that `kontrast serve` would send.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from controller.contract.alert_row import AlertRow, Severity  # noqa: E402 (needs the path above)
from controller.restore.stored_context import new_context  # noqa: E402
from controller.step import steps  # noqa: E402
from dashboards.alerting.config import AlertmanagerConfig  # noqa: E402
from dashboards.alerting.message import message_of  # noqa: E402
from tests import recorded_moment  # noqa: E402
from tests.programs import program  # noqa: E402

_DEPLOY = ROOT / "deploy" / "alertmanager"
_GROUP = "broker 2 (2)"
_NAMES = {
    "page-pagerduty": "PagerDuty",
    "page-opsgenie": "Opsgenie",
    "page-slack": "Slack",
    "page-teams": "Microsoft Teams",
    "page-email": "E-mail",
    "page-webhook": "Webhook",
}
_HEAD = """# Messages of receivers

Look up the words of each receiver in [deploy/alertmanager](../../deploy/alertmanager) here. [Send
alerts](../how-to/alerting.md#choose-a-receiver) connects them. amtool renders each field with the alerts of a
recorded incident.
"""


def texts() -> dict[str, dict[str, str]]:
    """Return the templates of each receiver by their fields."""
    configs = [yaml.safe_load((_DEPLOY / name).read_text(encoding="utf-8")) for name in ("receivers.yml", "teams.yml")]
    receivers = {receiver.pop("name"): receiver for config in configs for receiver in config["receivers"]}
    return {name: dict(_templates(*receivers[name].values())) for name in _NAMES}


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
    rows: dict[str, AlertRow] = {}
    outcome = steps(new_context("orders"), list(recorded_moment.history(recorded_files, "orders").records()))
    for row in outcome.effects:
        if isinstance(row, AlertRow):
            rows[row.id] = row
    config = AlertmanagerConfig(page_url="https://kontrast.example", runbook_url="https://wiki.example/runbooks")
    pages = [row for row in rows.values() if (row.state, row.group, row.severity) == ("open", _GROUP, Severity.PAGE)]
    sent = [message_of(row, config) for row in pages]
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
    return "".join([_HEAD, *(_section(name, of_receiver, sent) for name, of_receiver in texts().items())])


def _section(name: str, of_receiver: Mapping[str, str], sent: Mapping[str, Any]) -> str:
    if not of_receiver:
        shown = json.dumps({**sent, "receiver": name}, indent=2, ensure_ascii=False)
        words = "Alertmanager posts its own JSON. These fields come from Kontrast and from the route."
        return f"\n## {_NAMES[name]}\n\n{words}\n\n```json\n{shown}\n```\n"
    lines = (_field(field, rendered(text, sent)) for field, text in of_receiver.items())
    return f"\n## {_NAMES[name]}\n\n```text\n{''.join(lines)}```\n"


def _field(name: str, words: str) -> str:
    return f"{name}: {words}\n" if "\n" not in words else f"{name}:\n{textwrap.indent(words, '  ')}\n"


if __name__ == "__main__":
    sys.stdout.write(page())
