"""The shipped receivers, read by amtool and rendered with alerts of a recorded incident."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from controller.contract.alert_kinds.kinds import ALERT_KINDS
from controller.contract.alert_row import AlertRow, Severity
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import message_of
from tests.docs.scripts import module_at, script
from tests.programs import program

DEPLOY = Path(__file__).parents[2] / "deploy" / "alertmanager"
RECEIVERS = script("receivers")
TEMPLATE = module_at(DEPLOY / "message_template.py")
PAGES = {kind.name for kind in ALERT_KINDS.values() if kind.severity is Severity.PAGE}
RULES = ("cluster", "self")
TEXTS: dict[str, dict[str, str]] = RECEIVERS.texts()


@pytest.fixture(scope="module")
def message(recorded_files) -> dict[str, Any]:
    """Return the message of the page of receivers."""
    sent: dict[str, Any] = RECEIVERS.message(recorded_files)
    assert sent["alerts"]
    return sent


def test_amtool_accepts_the_receivers(amtool):
    checked = amtool("check-config", str(DEPLOY / "receivers.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(TEXTS) - 1} receivers" in checked.stdout


@pytest.mark.deploy
def test_a_newer_amtool_accepts_the_receiver_of_teams():
    command = [program("amtool-of-teams"), "check-config", str(DEPLOY / "teams.yml")]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "1 receivers" in checked.stdout


@pytest.mark.parametrize("receiver", TEXTS)
def test_every_text_of_a_receiver_has_words_for_a_real_alert(receiver, message):
    assert bool(TEXTS[receiver]) is (receiver != "page-webhook")
    resolved = {**message, "status": "resolved", "alerts": [{**a, "status": "resolved"} for a in message["alerts"]]}
    for text in TEXTS[receiver].values():
        words = RECEIVERS.rendered(text, message)
        assert words
        assert "<no value>" not in words + RECEIVERS.rendered(text, resolved)


def row_of(alert: str, **more: Any) -> AlertRow:
    kind = ALERT_KINDS[alert]
    usual: dict[str, Any] = {
        "cluster": "orders", "generation": 1, "seq": 1, "ordinal": 0, "zxid": 1, "time_ms": 1_795_558_439_000,
        "id": alert, "alert": alert, "state": "open", "severity": kind.severity, "subject": "broker 1",
        "group": "broker 1", "since_ms": 1_795_558_439_000, "cause": f"{alert} happened: its effect", "broker": 1,
        "expected": kind.expected, "action": kind.action, "partitions": 2,
    }  # fmt: skip
    return AlertRow(**{**usual, **more})


def sent(*rows: AlertRow, status: str = "firing", page_url: str | None = "https://kontrast.example") -> dict[str, Any]:
    """Return Alertmanager's message with these alerts, in its order."""
    config = AlertmanagerConfig(page_url=page_url, runbook_url="https://wiki.example/runbooks")
    alerts = sorted((message_of(row, config) for row in rows), key=lambda each: (len(each.labels), each.labels))
    return {
        "receiver": "page",
        "status": status,
        "alerts": [{"status": status, "labels": dict(a.labels), "annotations": dict(a.annotations)} for a in alerts],
        "groupLabels": {"kafka_cluster": "orders", "group": "broker 1"},
        "commonLabels": {"kafka_cluster": "orders"},
        "externalURL": "https://alertmanager.example",
    }


def title(message: dict[str, Any]) -> str:
    return str(RECEIVERS.rendered('{{ template "kontrast.title" . }}', message))


def text(message: dict[str, Any]) -> str:
    return str(RECEIVERS.rendered('{{ template "kontrast.text" . }}', message))


@pytest.mark.generated
def test_the_words_are_made_from_the_catalogue_of_kinds():
    assert (DEPLOY / "kontrast.tmpl").read_text(encoding="utf-8") == TEMPLATE.message_template(), "run `make boards`"


def test_every_alert_of_kontrast_and_its_rules_has_a_rank():
    rules = [(DEPLOY.parent / "prometheus" / f"kontrast-{name}.yml").read_text(encoding="utf-8") for name in RULES]
    named = {line.partition("alert: ")[2] for text in rules for line in text.splitlines() if "- alert: " in line}
    ranked = TEMPLATE.ranked_names()
    assert sorted(ranked) == sorted(named)
    pages = [name for name in ranked if name.removeprefix("Kontrast") in PAGES]
    assert list(ranked[: len(pages)]) == pages


@pytest.mark.parametrize(
    ("worse", "other"),
    [
        ("PartitionsOffline", "BrokerFlapping"),
        ("PartitionsOffline", "BrokerCrashed"),
        ("GhostController", "ControllerOverdue"),
        ("ZooKeeperNoQuorum", "ReplicaDisconnected"),
    ],
)
def test_the_worst_alert_of_a_group_has_the_title(worse, other):
    message = sent(row_of(other), row_of(worse))
    alone = title(sent(row_of(worse)))
    assert title(message) == f"{alone} (+1)"
    told = text(message)
    assert told.index(f"{worse} happened") < told.index(f"{other} happened")
    assert told.endswith(f"Runbook: https://wiki.example/runbooks/Kontrast{worse}.md")


def test_a_body_has_severity_cluster_start_effect_next_step_and_each_address_once():
    row = row_of("BrokerCrashed", cause="broker 1 crashed at zxid 0x6f: 2 partitions are under-replicated")
    told = text(sent(row, row_of("BrokerFlapping")))
    assert told.startswith("critical in cluster orders since 2026-11-24 22:13:59Z\n")
    assert "2 partitions are under-replicated" in told
    assert "\nNext step: Look at the broker's machine" in told
    assert "\nThe controller elects other leaders" in told
    assert told.count("https://kontrast.example/") == 1
    assert told.count("https://wiki.example/") == 1


@pytest.mark.parametrize("page_url", [None, "clusters"])
def test_a_relative_address_is_no_link(page_url):
    message = sent(row_of("BrokerCrashed"), page_url=None)
    if page_url is not None:
        message["alerts"][0]["annotations"]["page_url"] = page_url
    assert "Page: https://alertmanager.example\n" in text(message)


def test_an_alert_of_rules_without_a_rank_still_has_a_title():
    message = sent(row_of("BrokerCrashed"))
    message["alerts"][0]["labels"]["alertname"] = "Another"
    assert title(message) == "orders: broker 1 crashed, start it"


def test_a_rack_of_two_hundred_brokers_fits_a_message():
    brokers = tuple(range(200))
    cause = "200 brokers (0, 1, 2, …) crashed within 3 s: 5,000 partitions offline (a-0, a-1, …)"
    row = row_of("BrokerCrashed", brokers=brokers, cause=cause, partitions=5_000)
    assert title(sent(row)) == "orders: 200 brokers (0, 1, 2, …) crashed, start them"
    assert len(text(sent(row))) < 600
    assert title(sent(row, status="resolved")).startswith("orders: 200 brokers")
