"""Messages to a person's pager from a real cluster with brokers, ZooKeeper, Prometheus, Alertmanager and a webhook.

One cluster has all incidents, one after the other. `messages.txt` in the test's directory has every message.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from cli.embedded.cluster import KafkaCluster
from controller.contract.alert_row import AlertRow
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.dashboards.live_incidents import DEPLOY, Pager, shipped_config
from tests.dashboards.prometheus_server import running_prometheus
from tests.integration.conftest import Pipeline, create
from tests.waiting import eventually

# Five incidents with restarts of brokers take some minutes.
pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("pipelines"), pytest.mark.timeout(1_500)]

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
SESSION_MS = 6_000  # so an incident settles after 4 s
SETTLED_SECONDS = SESSION_MS / 3_000 + 2
HEARD_WITHIN_SECONDS = 90
_PROMETHEUS = """
global: {{scrape_interval: 5s, evaluation_interval: 5s}}
rule_files: [{rules}/kontrast-self.yml, {rules}/kontrast-cluster.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{alertmanager}"]}}]}}]}}
scrape_configs:
  - job_name: kontrast
    static_configs: [{{targets: ["{exporter}"]}}]
"""


class WholeMessages(Pager):
    """A webhook that keeps every message as it came."""

    def __init__(self) -> None:
        self.messages: list[tuple[float, str, dict[str, Any]]] = []
        super().__init__()

    def _take(self, receiver: str, message: dict[str, Any]) -> None:
        self.messages.append((time.time(), receiver, message))
        super()._take(receiver, message)


class OnCall:
    """A cluster with the whole way to a pager, and the person who has it."""

    def __init__(self, directory: Path, running: ExitStack) -> None:
        self.directory = directory
        self.cluster = KafkaCluster(
            directory / "kafka",
            broker_ids=RACKS,
            properties={"zookeeper.session.timeout.ms": str(SESSION_MS), "offsets.topic.replication.factor": "3"},
        )
        for broker, rack in RACKS.items():
            self.cluster.brokers[broker].settings["broker.rack"] = rack
        running.enter_context(self.cluster)
        self.pager = WholeMessages()
        running.callback(self.pager.close)
        self.alertmanager = AlertmanagerServer(directory / "alertmanager", config=shipped_config(self.pager, 1)).start()
        running.callback(self.alertmanager.kill)
        self.pipeline = self._pipeline(running)
        self._prometheus(running)
        self.began = time.time()

    def _pipeline(self, running: ExitStack) -> Pipeline:
        home = self.directory / "kontrast"
        home.mkdir()
        pipeline = Pipeline(home, self.cluster.zookeeper.connect_string)
        session = f"zookeeper.session.timeout.ms={SESSION_MS}"
        pipeline.stream = pipeline._part(
            "stream",
            *("--from", f"journal:{home / 'changes'}", "--to", f"journal:{home / 'derived'}"),
            *("--checkpoint", str(home / "checkpoint"), "--broker-config", session),
        )
        derived = f"journal:{home / 'derived'}"
        alertmanager = ("--alertmanager-urls", self.alertmanager.url)
        pipeline.serve = pipeline._part("serve", "--from", derived, "--listen", pipeline.listen, *alertmanager)
        for part in (pipeline.watch, pipeline.stream, pipeline.serve):
            part.launch()
            running.callback(part.stop)
        return pipeline

    def _prometheus(self, running: ExitStack) -> None:
        home = self.directory / "prometheus"
        home.mkdir()
        text = _PROMETHEUS.format(
            rules=DEPLOY / "prometheus",
            alertmanager=self.alertmanager.url.removeprefix("http://"),
            exporter=self.pipeline.listen,
        )
        running.enter_context(running_prometheus(home, text))

    def happens(self, title: str, *, brokers: tuple[int, ...] = (), change: Callable[[], object] = lambda: None) -> int:
        """Kill these brokers at once, and return how many messages came before."""
        with (self.directory / "messages.txt").open("a") as file:
            file.write(f"\n# {title}\n")
        before = len(self.pager.messages)
        self.began = time.time()
        for broker in brokers:
            self.cluster.brokers[broker].kill()
        change()
        return before

    def pages(self, since: int) -> list[dict[str, Any]]:
        """Return the messages to `page` with a firing alert, after the first `since` messages."""
        told = self.pager.messages[since:]
        return [message for _, receiver, message in told if receiver == "page" and message["status"] == "firing"]

    def first_page(self, since: int, about: str) -> dict[str, Any]:
        """Wait for the first page whose group begins with `about`, except for a broker that was killed three times."""
        deadline = time.monotonic() + HEARD_WITHIN_SECONDS
        while time.monotonic() < deadline:
            for page in self.pages(since):
                flaps = page["commonLabels"].get("alertname") == "KontrastBrokerFlapping"
                if page["commonLabels"].get("group", "").startswith(about) and not flaps:
                    return page
            time.sleep(0.2)
        raise AssertionError(
            f"no page about {about}: {[told[2]['commonLabels'] for told in self.pager.messages[since:]]}"
        )

    def brokers_told(self, since: int, group: str) -> set[str]:
        """Return the brokers that the labels in the pages of a group name."""
        told = (alert["labels"] for page in self.pages(since) for alert in page["alerts"])
        return {labels.get("other_broker", labels.get("broker", "")) for labels in told if labels["group"] == group}

    def changed_steps(self, since: int) -> list[str]:
        """Return the messages that another broker should start first. A good first message makes them needless."""
        told = [alert["annotations"]["description"] for page in self.pages(since) for alert in page["alerts"]]
        return [said for said in told if "Next: start broker" in said]

    def settles(self, seconds: float = 20) -> None:
        """Wait until the incident sends no more messages, and keep all of them."""
        time.sleep(seconds)

    def kept(self, since: int) -> None:
        with (self.directory / "messages.txt").open("a") as file:
            for at, receiver, message in self.pager.messages[since:]:
                if receiver != "watchdog":
                    labels = message["commonLabels"]
                    file.write(f"{at - self.began:6.1f} s  {receiver}, {message['status']}, {labels.get('group')}\n")
                    for alert in message["alerts"]:
                        said = alert["annotations"].get("description", "")
                        name = alert["labels"]["alertname"].removeprefix("Kontrast")
                        file.write(f"          {alert['status']:8} {name}: {said}\n")

    def all_return(self) -> None:
        """Start the brokers that are down, and wait until no alert of a broker is open."""
        for broker in self.cluster.brokers.values():
            if not broker.running:
                broker.launch()
        for broker in self.cluster.brokers.values():
            broker.wait_until_ready()
        self.pipeline.until("no incident is left", lambda: not self._open())

    def _open(self) -> set[str]:
        last = {row.id: row for row in self.pipeline.rows("alerts") if isinstance(row, AlertRow)}
        kinds = ("Partitions", "BrokerCrashed", "ElectionDue", "NoController")
        return {key for key, row in last.items() if row.state != "resolved" and key.startswith(kinds)}

    def silences(self, group: str) -> None:
        """Silence the group for an hour, as the link on the live page does."""
        now = time.time()
        times = {
            name: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
            for name, at in (("startsAt", now), ("endsAt", now + 3600))
        }
        silence = {
            "matchers": [{"name": "group", "value": group, "isRegex": False, "isEqual": True}],
            "createdBy": "on call",
            "comment": "known",
            **times,
        }
        request = urllib.request.Request(
            f"{self.alertmanager.url}/api/v2/silences",
            json.dumps(silence).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()


@pytest.fixture
def on_call(tmp_path) -> Iterator[OnCall]:
    (tmp_path / "kafka").mkdir()
    with ExitStack() as running:
        yield OnCall(tmp_path, running)


def main_alert(page: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the page's alert of this name that has the words."""
    return next(
        alert
        for alert in page["alerts"]
        if alert["labels"]["alertname"] == f"Kontrast{name}" and not {"other_broker", "news"} & alert["labels"].keys()
    )


def test_each_incident_rings_with_its_worst_damage_whatever_was_silenced(on_call):
    with_topics(on_call)
    one_broker_is_killed(on_call)
    two_of_three_are_killed(on_call)
    silenced = a_crash_comes_after_a_silence(on_call)
    a_rack_is_lost(on_call, silenced)
    zookeeper_is_killed(on_call)


def with_topics(on_call: OnCall) -> None:
    """Create topics, of which `ledger` matters most, and wait until all partitions have leaders."""
    ledger = {number: [number % 3 + 1, (number + 1) % 3 + 1, (number + 2) % 3 + 1] for number in range(6)}
    others = {"orders": {0: [2, 3], 1: [3, 2]}, "tmp_scratch": {0: [1], 1: [2]}, "rack": {0: [1, 4], 1: [4, 1]}}
    create(on_call.cluster, ledger=ledger, **others)
    with zookeeper_of(on_call.cluster) as zookeeper:
        settings = {"version": 1, "config": {"min.insync.replicas": "3"}}
        zookeeper.set("/config/topics/ledger", json.dumps(settings).encode())
        change = {"version": 2, "entity_path": "topics/ledger"}
        zookeeper.create("/config/changes/config_change_", json.dumps(change).encode(), sequence=True)
    on_call.pipeline.until("the topics are led", lambda: led(on_call.pipeline) >= {"ledger", *others})
    on_call.settles(5)


def one_broker_is_killed(on_call: OnCall) -> None:
    """The worst damage comes first in the first message, and nothing is sent twice."""
    before = on_call.happens("one broker is killed", brokers=(1,))
    offline = main_alert(on_call.first_page(before, "broker 1"), "PartitionsOffline")
    assert offline["annotations"]["description"].startswith("6 partitions reject acks=all (ledger-"), offline
    assert "1 partition offline (tmp_scratch-0)" in offline["annotations"]["description"]
    on_call.settles()
    on_call.kept(before)
    assert len([page for page in on_call.pages(before) if page["commonLabels"]["group"].startswith("broker 1")]) == 1
    on_call.all_return()


def two_of_three_are_killed(on_call: OnCall) -> None:
    before = on_call.happens("two of three brokers are killed", brokers=(2, 3))
    offline = main_alert(on_call.first_page(before, "broker "), "PartitionsOffline")
    assert "ledger-" in offline["annotations"]["description"]
    on_call.settles()
    on_call.kept(before)
    assert on_call.changed_steps(before) == []
    on_call.all_return()


def a_crash_comes_after_a_silence(on_call: OnCall) -> str:
    """The next crash pages, although the previous incident is silenced and goes on. Return the silenced group."""
    before = on_call.happens("a broker is killed, and its incident is silenced", brokers=(1,))
    silenced: str = on_call.first_page(before, "broker 1")["commonLabels"]["group"]
    on_call.silences(silenced)
    on_call.settles(2 * SETTLED_SECONDS)
    on_call.kept(before)
    before = on_call.happens("another broker is killed after the silence", brokers=(2,))
    page = on_call.first_page(before, "broker 2")
    assert page["commonLabels"]["group"] != silenced
    assert main_alert(page, "PartitionsOffline")["labels"]["broker"] == "2"
    on_call.settles()
    on_call.kept(before)
    on_call.all_return()
    return silenced


def a_rack_is_lost(on_call: OnCall, silenced: str) -> None:
    """Both brokers of the rack are one incident, though one has a silence of an earlier incident."""
    before = on_call.happens("a rack is lost", brokers=(1, 4))
    group = on_call.first_page(before, "broker ")["commonLabels"]["group"]
    assert group != silenced
    eventually(lambda: on_call.brokers_told(before, group), lambda told: told >= {"1", "4"})
    on_call.settles()
    on_call.kept(before)
    assert on_call.changed_steps(before) == []
    on_call.all_return()


def zookeeper_is_killed(on_call: OnCall) -> None:
    before = on_call.happens("ZooKeeper is killed", change=on_call.cluster.zookeeper.kill)
    on_call.settles(45)
    on_call.kept(before)
    assert on_call.pages(before)


@contextmanager
def zookeeper_of(cluster: KafkaCluster) -> Iterator[KazooClient]:
    client = KazooClient(cluster.zookeeper.connect_string)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def led(pipeline: Pipeline) -> set[str]:
    return {row.topic for row in pipeline.rows("metadata") if getattr(row, "leader", -1) >= 0}
