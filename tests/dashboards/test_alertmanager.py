"""The Alertmanager example, with its receivers, groups and mutes, run by the real programs."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.says.alert_kinds.kind import NAME_PREFIX
from controller.says.alert_kinds.kinds import ALERT_KINDS
from dashboards.alerting.message import SEVERITY_LABELS
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
SELF = (ROOT / "deploy" / "prometheus" / "kontrast-self.yml").read_text(encoding="utf-8")

# The constant labels of each alert on Kontrast itself and of each kind.
OF_ITSELF = {
    name: {"alertname": name, "severity": severity, "component": component, "group": "replica"}
    for name, severity, component in re.findall(
        r"alert: (\w+)\n(?:.*\n)*?\s+severity: (\w+)\n\s+component: (\w+)\n", SELF
    )
}
LABELS = OF_ITSELF | {
    f"{NAME_PREFIX}{kind.name}": {
        "alertname": f"{NAME_PREFIX}{kind.name}",
        "alert": kind.name,
        "severity": SEVERITY_LABELS[kind.severity],
        "component": "replica" if kind.of_replica else "broker",
        "subject": "broker 3",
        "group": "broker 3",
    }
    for kind in ALERT_KINDS.values()
}
BY_RULES = {"alertname": "KontrastAlert", "delivered_by": "prometheus"}
RECEIVERS = {"critical": "page", "warning": "look", "info": "look", "none": "watchdog"}


class Alertmanager(AlertmanagerServer):
    """A running Alertmanager that gets alerts as from Prometheus, and reports its groups and mutes."""

    def fire(self, *alerts: dict[str, str]) -> None:
        body = json.dumps([{"labels": labels} for labels in alerts]).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v2/alerts", body, headers)
        urllib.request.urlopen(request, timeout=30).close()

    def groups(self) -> list[dict]:
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts/groups", timeout=30) as answer:
            return json.load(answer)

    def muted(self) -> set[tuple[str, str]] | None:
        """Return the muted alerts of each cluster. Return None until all are decided."""
        alerts = [alert for group in self.groups() for alert in group["alerts"]]
        if any(alert["status"]["state"] == "unprocessed" for alert in alerts):
            return None
        return {
            (alert["labels"].get("kafka_cluster", ""), alert["labels"].get("alert", alert["labels"]["alertname"]))
            for alert in alerts
            if alert["status"]["inhibitedBy"]
        }


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    # The groups wait for half a second, not for half a minute. All else is as in the example.
    config = re.sub(r"group_wait: \w+", "group_wait: 500ms", CONFIG.read_text(encoding="utf-8"))
    running = Alertmanager(tmp_path / "alertmanager", config=config)
    running.start()
    yield running
    running.kill()


def test_amtool_accepts_the_example(amtool):
    result = amtool("check-config", str(CONFIG))
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_labels_of_every_alert_are_known():
    assert set(OF_ITSELF) == set(re.findall(r"- alert: (\w+)", SELF))


@pytest.mark.parametrize("labels", [*LABELS.values(), LABELS["KontrastBrokerCrashed"] | BY_RULES])
def test_every_alert_goes_to_the_receiver_of_its_severity(labels, amtool):
    receiver = RECEIVERS[labels["severity"]]
    matchers = [f"{name}={value}" for name, value in {**labels, "kafka_cluster": "north"}.items()]
    result = amtool("config", "routes", "test", f"--config.file={CONFIG}", f"--verify.receivers={receiver}", *matchers)
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_has_one_cause_is_one_message_and_a_second_broker_is_another(alertmanager):
    alertmanager.fire(
        *(
            {**LABELS[alert], "kafka_cluster": cluster, "group": group, "subject": group, "severity": "critical"}
            for alert in ("KontrastBrokerCrashed", "KontrastPartitionsOffline", "KontrastPartitionsUnderMinIsr")
            for cluster, group in (("north", "broker 2"), ("north", "broker 3"), ("south", "broker 3"))
        )
    )
    groups = eventually(alertmanager.groups, lambda groups: sum(len(group["alerts"]) for group in groups) == 9)
    assert {group["receiver"]["name"] for group in groups} == {"page"}
    assert sorted((group["labels"]["kafka_cluster"], group["labels"]["group"]) for group in groups) == [
        ("north", "broker 2"),
        ("north", "broker 3"),
        ("south", "broker 3"),
    ]


def test_nobody_is_reminded_later_than_alertmanager_remembers():
    """By default Alertmanager remembers notifications for 120 hours. A page waits for five seconds at most."""
    text = CONFIG.read_text(encoding="utf-8")
    hours = {"m": 1 / 60, "h": 1}
    repeated = re.findall(r"repeat_interval: (\d+)([mh])", text)
    assert len(repeated) == 5
    assert all(int(number) * hours[unit] < 120 for number, unit in repeated)
    waits = re.findall(r"receiver: page\n(?: +group_by: .+\n)? +group_wait: (\d+)s", text)
    assert len(waits) == 2
    assert all(int(wait) <= 5 for wait in waits)


BLIND = ("ReplicaStale", "ReplicaNotReady", "ReplicaDisconnected", "ReplicaLacksRecords", "ClusterQuarantined")


@pytest.mark.parametrize(
    "source",
    [
        *(LABELS[f"{NAME_PREFIX}{name}"] for name in BLIND),
        *(LABELS[f"{NAME_PREFIX}{name}"] | BY_RULES for name in BLIND[2:]),
    ],
    ids=lambda labels: f"{labels['alertname']}-{labels.get('alert', '')}",
)
def test_a_replica_that_sees_nothing_new_mutes_its_cluster_and_no_other(source, alertmanager):
    of_clusters = {name: labels for name, labels in LABELS.items() if labels["component"] != "replica"}
    assert len(of_clusters) > 5
    everywhere = [
        {**labels, "kafka_cluster": cluster} for cluster in ("north", "south") for labels in of_clusters.values()
    ]
    of_itself = {**LABELS["KontrastZnodesForbidden"], "kafka_cluster": "north"}
    alertmanager.fire({**source, "kafka_cluster": "north"}, of_itself, LABELS["KontrastWatchdog"], *everywhere)
    muted = eventually(alertmanager.muted, lambda muted: muted is not None and len(muted) >= len(of_clusters))
    of_north = {name for cluster, name in muted if cluster == "north"}
    assert of_north == {labels["alert"] for labels in of_clusters.values()}
    # The reason for the mutes in the south lies in the south, which has no controller.
    assert ("south", "PartitionsOffline") not in muted
    assert ("south", "NoController") not in muted


@pytest.mark.parametrize("way", [{}, BY_RULES], ids=["directly", "by the rules"])
@pytest.mark.parametrize("target", ["ElectionDue", "CreationDue", "DeletionStuck", "ReassignmentStuck"])
def test_without_a_controller_what_follows_from_that_is_muted_in_its_cluster(target, way, alertmanager):
    north, south = ({"kafka_cluster": cluster} | way for cluster in ("north", "south"))
    source, muted = LABELS["KontrastNoController"], LABELS[f"{NAME_PREFIX}{target}"]
    offline = {**LABELS["KontrastPartitionsOffline"], **north}
    alertmanager.fire(source | north, muted | north, muted | south, offline)
    assert eventually(alertmanager.muted, bool) == {("north", target)}


def test_an_alert_sent_directly_mutes_the_same_one_of_prometheus_and_no_other(alertmanager):
    directly = LABELS["KontrastBrokerCrashed"] | {"kafka_cluster": "north"}
    by_rules = directly | BY_RULES
    of_another = {"subject": "broker 2", "group": "broker 2"}
    alertmanager.fire(directly, by_rules, by_rules | of_another, by_rules | {"kafka_cluster": "south"})
    eventually(alertmanager.muted, lambda muted: muted == {("north", "BrokerCrashed")})
    inhibited = [
        alert["labels"]["subject"]
        for group in alertmanager.groups()
        for alert in group["alerts"]
        if alert["status"]["inhibitedBy"]
    ]
    assert inhibited == ["broker 3"]
