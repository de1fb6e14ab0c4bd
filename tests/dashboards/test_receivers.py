"""The shipped receivers, read by amtool and rendered with alerts of a recorded incident."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from controller.contract.alert_row import AlertRow
from controller.says.alert_kinds.kinds import ALERT_KINDS
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import messages_of
from lab.pages import receivers
from tests.programs import program

DEPLOY = Path(__file__).parents[2] / "deploy" / "alertmanager"
TEXTS: dict[str, dict[str, str]] = receivers.texts()


@pytest.fixture(scope="module")
def message(recorded_files) -> dict[str, Any]:
    """Return the message of the page of receivers."""
    recorded: dict[str, Any] = receivers.message(recorded_files)
    return recorded


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


TITLE = "orders: 2 offline, 3 reject acks=all (t1): start broker 1"
BODY = Path(__file__).with_name("receivers_body.txt").read_text(encoding="utf-8").rstrip("\n")
PAGE = "https://kontrast.example/clusters/orders?at=1795373062939"
SAID: dict[str, dict[str, str]] = {
    "page-pagerduty": {
        "severity": "critical", "class": "PartitionsOffline", "component": "orders", "group": "broker 2 (2)",
        "description": TITLE, "details.text": BODY, "links.href": PAGE,
    },
    "page-opsgenie": {
        "message": TITLE, "description": BODY, "entity": "orders", "tags": "kafka,orders", "priority": "P1",
    },
    "page-slack": {"color": "danger", "title": TITLE, "title_link": PAGE, "text": BODY, "fallback": TITLE},
    "page-teams": {"title": TITLE, "text": BODY},
    "page-email": {"headers.Subject": TITLE, "text": BODY},
    "page-webhook": {},
}  # fmt: skip


@pytest.mark.parametrize("receiver", TEXTS)
def test_a_receiver_gets_the_words_of_a_real_incident(receiver, message):
    assert {field: receivers.rendered(text, message) for field, text in TEXTS[receiver].items()} == SAID[receiver]


@pytest.mark.parametrize("receiver", TEXTS)
def test_a_receiver_gets_one_line_for_the_end_of_a_real_incident(receiver, message):
    ended = [
        {**alert, "status": "resolved", "annotations": {**alert["annotations"], "state": "resolved"}}
        for alert in message["alerts"]
    ]
    resolved = {**message, "status": "resolved", "alerts": ended}
    ends = [f"Resolved: {alert['annotations']['summary']}" for alert in message["alerts"]]
    end = {TITLE: ends[0], BODY: "\n".join(ends), "danger": "good"}
    said = {field: receivers.rendered(text, resolved) for field, text in TEXTS[receiver].items()}
    assert said == {field: end.get(words, words) for field, words in SAID[receiver].items()}


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
    """Return Alertmanager's message with these alerts and their additions, in its order."""
    config = AlertmanagerConfig(page_url=page_url, runbook_url="https://wiki.example/runbooks")
    told = [message for row in rows for message in messages_of(row, config)]
    alerts = sorted(told, key=lambda each: (len(each.labels), each.labels))
    return {
        "receiver": "page",
        "status": status,
        "alerts": [{"status": status, "labels": dict(a.labels), "annotations": dict(a.annotations)} for a in alerts],
        "groupLabels": {"kafka_cluster": "orders", "group": "broker 1"},
        "commonLabels": {"kafka_cluster": "orders"},
        "externalURL": "https://alertmanager.example",
    }


def title(message: dict[str, Any]) -> str:
    return str(receivers.rendered('{{ template "kontrast.title" . }}', message))


def text(message: dict[str, Any]) -> str:
    return str(receivers.rendered('{{ template "kontrast.text" . }}', message))


@pytest.mark.parametrize(
    ("severity", "order"),
    [
        ("critical", ["PartitionsOffline", "RowsLost", "ElectionDue", "TopicWithOneReplica"]),
        ("warning", ["PartitionsOffline", "ElectionDue", "RowsLost", "TopicWithOneReplica"]),
    ],
)
def test_an_alert_of_the_rules_without_a_rank_follows_those_of_its_severity(severity, order):
    message = sent(row_of("TopicWithOneReplica"), row_of("ElectionDue"), row_of("PartitionsOffline"))
    labels = {"alertname": "KontrastRowsLost", "severity": severity, "kafka_cluster": "orders", "group": "broker 1"}
    by_rules = {"labels": labels, "annotations": {"description": "RowsLost happened", "summary": "rows lost"}}
    message["alerts"].insert(0, {"status": "firing", **by_rules})
    assert re.findall(r"^(\w+) happened", text(message), re.MULTILINE) == order


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
    assert (
        text(sent(row, row_of("BrokerFlapping")))
        == """\
critical in cluster orders since 2026-11-24 22:13:59Z
broker 1 crashed at zxid 0x6f: 2 partitions are under-replicated
Next step: Look at the broker's machine and log, and start it again.
The controller elects other leaders for its partitions, and drops it from every ISR.

critical in cluster orders since 2026-11-24 22:13:59Z
BrokerFlapping happened: its effect
Next step: Find out why the broker loses its session (long pauses, network, disk). If it is down, start it only then, \
because each return costs elections, and its replicas must catch up.

Page: https://kontrast.example/clusters/orders?at=1795558442000
Runbook: https://wiki.example/runbooks/KontrastBrokerCrashed.md"""
    )


def test_a_further_broker_and_news_are_alerts_without_words_of_their_own():
    cause = "3 partitions offline (a-0, a-1, …): no client can use them. Broker 3 brings back 2"
    message = sent(
        row_of("PartitionsOffline", cause=cause, brokers=(1, 3), news=("Next: start broker 3",), partitions=3)
    )
    assert [alert["labels"].get("other_broker", alert["labels"].get("news", "")) for alert in message["alerts"]] == [
        "", "1", "3"
    ]  # fmt: skip
    assert title(message) == "orders: 3 partitions offline: start the named brokers"
    assert (
        text(message)
        == """\
critical in cluster orders since 2026-11-24 22:13:59Z
3 partitions offline (a-0, a-1, …): no client can use them. Broker 3 brings back 2
Next step: Bring back one of the named brokers, so that no record is lost. If no named broker can \
return, and another replica is live, elect another live replica (kafka-leader-election.sh --election-type unclean). \
You lose the records that only in-sync replicas have.
The controller elects a replica out of sync only if unclean.leader.election.enable is true.

Page: https://kontrast.example/clusters/orders?at=1795558442000
Runbook: https://wiki.example/runbooks/KontrastPartitionsOffline.md"""
    )


@pytest.mark.parametrize("page_url", [None, "clusters"])
def test_a_relative_address_is_no_link(page_url):
    message = sent(row_of("BrokerCrashed"), page_url=None)
    if page_url is not None:
        message["alerts"][0]["annotations"]["page_url"] = page_url
    assert "Page: https://alertmanager.example\n" in text(message)


def test_an_alert_of_rules_without_a_rank_still_has_a_title():
    message = sent(row_of("BrokerCrashed"))
    del message["alerts"][0]["annotations"]["rank"]
    assert title(message) == "orders: broker 1 crashed: start it"


def test_a_rack_of_two_hundred_brokers_fits_a_message():
    brokers = tuple(range(200))
    cause = "200 brokers (0, 1, 2, …) crashed within 3 s: 5,000 partitions offline (a-0, a-1, …)"
    row = row_of("BrokerCrashed", brokers=brokers, cause=cause, partitions=5_000)
    assert title(sent(row)) == "orders: 200 brokers (0, 1, 2, …) crashed: start them"
    assert len(text(sent(row))) < 600
    assert title(sent(row, status="resolved")).startswith("orders: 200 brokers")
