"""Alerts of a real exporter in a real Alertmanager, whatever happens to either."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from controller.contract.job_row import ClusterProgress, JobRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import STANDING_OUTPUTS, encode_row
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.delivery import Delivery
from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.server import run
from outputs.reading import ReadingCounts
from questions.memory import Memory
from tests.certificates import make_self_signed
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.dashboards.live_incidents import DEPLOY, Pager
from tests.waiting import eventually, repeating
from transport.address import JournalAddress

# The word "test", from Prometheus's documentation.
TEST_AS_BCRYPT = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"
NEVER_STALE = 10**9


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def alertmanager(tmp_path) -> Iterator[Callable[..., AlertmanagerServer]]:
    """Yield a function that makes Alertmanagers, then kill them all."""
    made: list[AlertmanagerServer] = []

    def make(**options) -> AlertmanagerServer:
        made.append(AlertmanagerServer(tmp_path / f"alertmanager-{len(made)}", **options))
        return made[-1]

    yield make
    for server in made:
        server.kill()


@pytest.fixture
def serving(tmp_path, start_exporter):
    """Return a context in which an exporter sends the outputs of one directory to these Alertmanagers."""

    @contextmanager
    def serve(*alertmanagers: AlertmanagerServer, **settings):
        told = {
            "urls": tuple(server.url for server in alertmanagers),
            "resend_interval_seconds": 1.0,
            "stale_after_seconds": NEVER_STALE,
            **settings,
        }
        source = JournalAddress(tmp_path / "outputs")
        config = ServeConfig(source=source, listen="127.0.0.1:0", alertmanager=AlertmanagerConfig(**told))
        with start_exporter(config) as exporter:
            exporter.directory = tmp_path / "outputs"
            yield exporter

    return serve


def test_two_exporters_deliver_one_alert_which_outlives_either_of_them(alertmanager, serving, rows):
    server = alertmanager().start()
    settings = {"resend_interval_seconds": 0.5, "resolve_timeout_seconds": 2.0}
    with serving(server, **settings) as staying:
        with serving(server, **settings):
            staying.write(rows.gauges(), rows.alert("PartitionsOffline/orders-7"))
            first = eventually(server.alerts, len)
            time.sleep(1.5)
            assert server.alerts().keys() == first.keys() == {"PartitionsOffline/orders-7"}
        for _ in range(8):
            time.sleep(0.5)
            (alert,) = server.alerts().values()
            assert alert["startsAt"] == first["PartitionsOffline/orders-7"]["startsAt"]
        staying.write(rows.alert("PartitionsOffline/orders-7", state="resolved"))
        eventually(server.alerts, lambda alerts: not alerts)


def test_an_alert_is_delivered_as_it_opens_as_it_changes_and_as_it_ends(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, external_labels={"site": "lab"}, generator_url="http://kontrast:9642/",
                 runbook_url="https://docs/runbooks/", page_url="http://kontrast:9642/") as exporter:  # fmt: skip
        opened = {
            "topic": "orders",
            "partition": 7,
            "expected": "broker 2 is elected at once",
            "action": "bring broker 1 back",
            "evidence": ("at 1-17 /brokers/ids/1 vanished (zxid 0x2a)", "at 1-18 nothing followed"),
            "partitions": 4000,
            "examples": ("orders-7", "orders-8"),
        }
        exporter.write(rows.gauges(), rows.alert("PartitionsOffline/orders-7", **opened))
        alert = eventually(server.alerts, len)["PartitionsOffline/orders-7"]
        assert alert["labels"] == {
            "alertname": "KontrastPartitionsOffline",
            "alert": "PartitionsOffline",
            "kafka_cluster": "north",
            "severity": "critical",
            "component": "partition",
            "subject": "partition orders-0",
            "group": "broker 1 crashed",
            "topic": "orders",
            "partition": "7",
            "site": "lab",
        }
        assert alert["annotations"] == {
            "alert_id": "PartitionsOffline%2Forders-7",
            "rank": "000",
            "summary": "north: 4,000 offline (orders): bring broker 1 back",
            "description": "broker 1 crashed",
            "expected": "broker 2 is elected at once",
            "action": "bring broker 1 back",
            "evidence": "at 1-17 /brokers/ids/1 vanished (zxid 0x2a)\nat 1-18 nothing followed",
            "partitions": "4000",
            "examples": "orders-7, orders-8",
            "since": "2023-11-14 22:13:20Z",
            "state": "open",
            "runbook_url": "https://docs/runbooks/KontrastPartitionsOffline.md",
            "page_url": "http://kontrast:9642/clusters/north?at=1700000003000",
        }
        assert alert["generatorURL"] == "http://kontrast:9642/"
        assert alert["startsAt"] == "2023-11-14T22:13:20.000Z"
        exporter.write(rows.alert("PartitionsOffline/orders-7", **{**opened, "cause": "broker 2 crashed as well"}))
        eventually(server.alerts, lambda alerts: descriptions(alerts) == ["broker 2 crashed as well"])
        exporter.write(rows.alert("PartitionsOffline/orders-7", state="resolved", **opened))
        eventually(server.alerts, lambda alerts: not alerts)
        exporter.metrics_with(r'^kontrast_alert_deliveries_total\{alertmanager="http://.*",result="accepted"\} [1-9]')


def test_what_an_alert_says_within_a_second_is_sent_once_and_its_end_at_once(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, resend_interval_seconds=60.0) as exporter:
        exporter.write(rows.gauges(), rows.alert("a", cause="first"))
        eventually(server.alerts, lambda alerts: descriptions(alerts) == ["first"])
        deliveries = r'^kontrast_alert_deliveries_total\{.*result="accepted"\} '
        exporter.write(rows.alert("a", cause="second"))
        exporter.write(rows.alert("a", cause="third"))
        eventually(server.alerts, lambda alerts: descriptions(alerts) == ["third"])
        # The Alertmanager has an alert a moment before the exporter has its answer and counts it.
        exporter.metrics_with(deliveries + r"2\.0$")
        exporter.write(rows.alert("a", cause="fourth"))
        exporter.write(rows.alert("a", state="resolved", cause="over"))
        eventually(server.alerts, lambda alerts: not alerts)
        exporter.metrics_with(deliveries + r"3\.0$")


def descriptions(alerts: dict[str, dict]) -> list[str]:
    return [alert["annotations"]["description"] for alert in alerts.values()]


def states(alerts: dict[str, dict]) -> dict[str, str]:
    return {alert_id: alert["annotations"]["state"] for alert_id, alert in alerts.items()}


class _Services(Pager):
    """Slack, PagerDuty and a plain webhook, which keep whole messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: dict[str, list[dict[str, Any]]] = {"slack": [], "pagerduty": [], "page": []}

    def _take(self, receiver: str, message: dict[str, Any]) -> None:
        self.messages[receiver].append(message)

    def slack(self) -> list[tuple[str, str]]:
        return [(each["title"], each["text"]) for message in self.messages["slack"] for each in message["attachments"]]


def _receivers(services: _Services, directory: Path) -> str:
    """Return the shipped receivers with these services in place of the real ones."""
    for name, secret in {"slack-url": f"http://{services.address}/slack", "pagerduty-key": "key"}.items():
        (directory / name).write_text(secret)
    text = (DEPLOY / "alertmanager" / "receivers.yml").read_text(encoding="utf-8")
    text = text.replace("[kontrast.tmpl]", f"[{DEPLOY}/alertmanager/kontrast.tmpl]")
    text = text.replace("- routing_key_file", f"- url: http://{services.address}/pagerduty\n        routing_key_file")
    route = (
        "{receiver: page-slack, group_by: [kafka_cluster, group], group_wait: 100ms, group_interval: 500ms, routes: "
    )
    route += "[{receiver: page-pagerduty, continue: true}, {receiver: page-webhook, continue: true}, "
    route += "{receiver: page-slack}]}"
    text = text.replace("/etc/alertmanager", str(directory)).replace("127.0.0.1:9095", services.address)
    return text.replace("{receiver: page-webhook}", route)


def test_an_incident_that_grows_sends_an_update_and_no_end(alertmanager, serving, rows, tmp_path):
    services = _Services()
    server = alertmanager(config=_receivers(services, tmp_path)).start()
    incident = {"alert": "PartitionsOffline", "subject": "broker 3", "group": "broker 3", "broker": 3}
    crash = {**incident, "alert": "BrokerCrashed", "cause": "broker 3 crashed"}
    with serving(server) as exporter:
        exporter.write(rows.gauges(), rows.alert("a", cause="1 partition offline", brokers=(3,), **incident))
        eventually(services.slack, len)
        exporter.write(
            rows.alert("a", cause="9 partitions offline", brokers=(2, 3), **incident), rows.alert("b", **crash)
        )
        eventually(services.slack, lambda said: len(said) == 2)
        exporter.write(rows.alert("a", cause="12 partitions offline", brokers=(1, 2, 3), **incident),
                       rows.alert("b", state="resolved", **crash))  # fmt: skip
        eventually(services.slack, lambda said: len(said) == 3)
        exporter.write(rows.alert("a", state="resolved", brokers=(1, 2, 3), **incident))
        eventually(lambda: [len(messages) for messages in services.messages.values()] == [4, 4, 4])
    services.close()
    titles, texts = zip(*services.slack(), strict=True)
    assert titles[:3] == (
        "north: 1 partition offline: start broker 3",
        "north: 9 partitions offline: start brokers 2 and 3 (+1)",
        "north: 12 partitions offline: start brokers 1, 2 and 3",
    )
    assert titles[3].startswith("Resolved: north: ")
    ended = [line for text in texts[:3] for line in text.splitlines() if line.startswith("Resolved")]
    assert ended == ["Resolved: north: broker 3 crashed"]
    events = services.messages["pagerduty"]
    assert [event["event_action"] for event in events] == ["trigger", "trigger", "trigger", "resolve"]
    assert len({event["dedup_key"] for event in events}) == 1
    growing = [
        {
            (alert["status"], alert["annotations"]["description"], alert["labels"].get("other_broker"))
            for alert in message["alerts"]
            if alert["labels"]["alertname"] == "KontrastPartitionsOffline"
        }
        for message in services.messages["page"]
    ]
    assert growing[:3] == [
        {("firing", f"{count} offline", broker) for broker in (None, *others)}
        for count, *others in (("1 partition",), ("9 partitions", "2"), ("12 partitions", "1", "2"))
    ]
    assert {status for status, _, _ in growing[3]} == {"resolved"}


def test_an_alertmanager_that_was_restarted_gets_every_alert_again(alertmanager, serving, rows, caplog):
    server = alertmanager().start()
    with serving(server) as exporter:
        exporter.write(rows.gauges(), rows.alert("a"), rows.alert("b", subject="partition b-0"))
        eventually(server.alerts, lambda alerts: set(alerts) == {"a", "b"})
        server.kill()
        exporter.metrics_with(r"^kontrast_alertmanager_up\{.*\} 0")
        exporter.write(rows.alert("b", state="resolved", subject="partition b-0"), rows.alert("c", subject="c"))
        exporter.metrics_with(r'^kontrast_alert_deliveries_total\{.*result="failed"\} ([4-9]|\d\d)')
        server.start()
        eventually(server.alerts, lambda alerts: set(alerts) == {"a", "c"})
        exporter.metrics_with(r"^kontrast_alertmanager_up\{.*\} 1")
    told = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len([sentence for sentence in told if "cannot deliver alerts" in sentence]) == 1
    assert len([sentence for sentence in told if "delivers alerts to" in sentence]) == 1


def test_what_ended_while_the_exporter_was_away_is_ended_and_the_rest_goes_on(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.write(rows.gauges(), rows.alert("ended", group="broker 1 away"), rows.alert("stands", subject="s"))
        before = eventually(server.alerts, lambda alerts: set(alerts) == {"ended", "stands"})
    exporter.write(rows.alert("ended", state="resolved", group="all brokers live"), rows.alert("new", subject="n"))
    assert set(server.alerts()) == {"ended", "stands"}
    with serving(server, resolve_timeout_seconds=NEVER_STALE):
        after = eventually(server.alerts, lambda alerts: set(alerts) == {"stands", "new"})
    assert after["stands"]["fingerprint"] == before["stands"]["fingerprint"]


def test_alerts_of_others_are_left_alone_at_the_start(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, external_labels={"site": "other"}, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.write(rows.gauges(), rows.alert("a"))
        eventually(server.alerts, lambda alerts: "a" in alerts)
    exporter.write(rows.alert("a", state="resolved"), rows.alert("b", subject="b"))
    with serving(server, resolve_timeout_seconds=NEVER_STALE):
        eventually(server.alerts, lambda alerts: set(alerts) == {"a", "b"})


def test_an_alertmanager_that_is_down_or_hangs_holds_up_no_other(alertmanager, serving, rows):
    up, down, hanging = alertmanager().start(), alertmanager(), alertmanager().start()
    hanging.pause()
    with serving(down, hanging, up, timeout_seconds=1) as exporter:
        exporter.write(rows.gauges(), rows.alert("a"))
        eventually(up.alerts, lambda alerts: set(alerts) == {"a"})
        exporter.metrics_with(rf'^kontrast_alertmanager_up\{{alertmanager="{up.url}"\}} 1')
        exporter.metrics_with(rf'^kontrast_alertmanager_up\{{alertmanager="{down.url}"\}} 0')
        exporter.metrics_with(rf'^kontrast_alertmanager_up\{{alertmanager="{hanging.url}"\}} 0')
        exporter.write(rows.alert("a", state="resolved"), rows.alert("b", subject="b"))
        eventually(up.alerts, lambda alerts: set(alerts) == {"b"})
        down.start()
        hanging.resume()
        eventually(down.alerts, lambda alerts: set(alerts) == {"b"})
        eventually(hanging.alerts, lambda alerts: set(alerts) == {"b"})


def pulse(exporter, rows, ahead_ms: int = 0) -> AbstractContextManager[object]:
    """Send heartbeats of a cluster until the `with` ends."""
    return repeating(lambda: exporter.write(rows.gauges(time_ms=now_ms() + ahead_ms)), 0.3)


@pytest.mark.nightly
def test_a_cluster_without_a_heartbeat_is_unknown_and_pages_until_it_is_back(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, stale_after_seconds=4, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.write(rows.gauges(time_ms=now_ms()), rows.alert("a"))
        with pulse(exporter, rows):
            before = eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})
        stale = eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown", "ReplicaStale": "open"})
        assert stale["a"]["fingerprint"] == before["a"]["fingerprint"]
        assert stale["ReplicaStale"]["labels"]["severity"] == "critical"
        assert stale["ReplicaStale"]["labels"]["component"] == "replica"
        assert stale["ReplicaStale"]["labels"]["alertname"] == "KontrastReplicaStale"
        assert stale["ReplicaStale"]["labels"]["kafka_cluster"] == "north"
        assert "its 1 open alert may be over" in stale["ReplicaStale"]["annotations"]["description"]
        with pulse(exporter, rows):
            eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})
        eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown", "ReplicaStale": "open"})
    # An exporter that starts during the silence sends the same alert, and does not end it.
    with serving(server, stale_after_seconds=4, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.metrics_with(r'^kontrast_alert_deliveries_total\{.*result="accepted"\} [2-9]')
        assert server.alerts().keys() == {"a", "ReplicaStale"}
        eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown", "ReplicaStale": "open"})
        with pulse(exporter, rows):
            eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})


def test_one_stale_cluster_leaves_another_as_it_is(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, stale_after_seconds=4, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.write(rows.alert("a"), rows.gauges(time_ms=now_ms()))
        exporter.write(rows.alert("b", cluster="south"), rows.gauges(cluster="south", time_ms=1))
        wanted = {"a": "open", "b": "unknown", "ReplicaStale": "open"}
        with pulse(exporter, rows):
            found = eventually(server.alerts, lambda alerts: states(alerts) == wanted)
        assert found["ReplicaStale"]["labels"]["kafka_cluster"] == "south"


def test_a_row_of_an_alert_is_looked_at_at_once(rows, monkeypatch):
    monkeypatch.setattr("dashboards.alerting.delivery._LOOK_SECONDS", 3600.0)
    memory, reading = Memory(), ReadingCounts()
    reading.caught_up()
    delivery = Delivery(AlertmanagerConfig(stale_after_seconds=NEVER_STALE), memory, reading)
    with delivery:
        memory.apply(rows.gauges())
        memory.apply(rows.alert("BrokerDown/1"))
        eventually(lambda: delivery._registry.messages())


def test_alerts_are_delivered_before_the_partitions_are_read(rows):
    memory, reading = Memory(), ReadingCounts()
    memory.apply(rows.gauges(time_ms=now_ms()))
    memory.apply(rows.alert("BrokerDown/1"))
    delivery = Delivery(AlertmanagerConfig(stale_after_seconds=NEVER_STALE), memory, reading)
    assert delivery.active_alerts() == {}
    reading.knows_alerts()
    (message,) = delivery.active_alerts()["north"]
    assert message.unknown() != message  # it is sent as certain
    assert reading.why_unread("north") is not None  # the page waits for all rows


def test_a_cluster_that_is_new_is_given_as_long_for_its_first_heartbeat_as_any(rows):
    memory, reading = Memory(), ReadingCounts()
    memory.add_cluster("north")
    reading.caught_up()
    delivery = Delivery(AlertmanagerConfig(stale_after_seconds=0.2), memory, reading)
    eventually(lambda: "north" in delivery.active_alerts())  # a cluster without any heartbeat
    memory.add_cluster("south")
    assert "south" not in delivery.active_alerts()
    eventually(lambda: "south" in delivery.active_alerts())


def job_that_knows(rows, behind_ms: int) -> JobRow:
    progress = ClusterProgress(records=1, observed_ms=1, lag_ms=0, clock_behind_ms=behind_ms)
    return rows.job(clusters={"north": progress})


@pytest.mark.nightly
def test_a_forwarder_with_a_wrong_clock_is_not_stale_and_its_standstill_is_seen(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, stale_after_seconds=4, resolve_timeout_seconds=NEVER_STALE) as exporter:
        for ahead_ms in (-3_600_000, 3_600_000):
            alert = rows.alert("a", cause=f"ahead by {ahead_ms} ms")
            exporter.write(job_that_knows(rows, -ahead_ms), rows.broker(1), alert)
            with pulse(exporter, rows, ahead_ms):
                eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})
                heartbeat = re.search(
                    r"^kontrast_heartbeat_timestamp_seconds\{.*\} (.*)", exporter.metrics(), re.MULTILINE
                )
                assert abs(float(heartbeat[1]) - time.time()) < 60
            eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown", "ReplicaStale": "open"})


def test_a_forwarders_uncompared_clock_pages_only_once_the_job_is_late_to_compare(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, stale_after_seconds=5, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.write(rows.gauges(time_ms=now_ms()), rows.alert("a"))
        with pulse(exporter, rows):
            eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})
        with pulse(exporter, rows, -3_600_000):
            eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown"})
            exporter.write(job_that_knows(rows, 3_600_000), rows.broker(1))
            eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})


def test_a_heartbeat_from_the_future_hides_no_standstill(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, stale_after_seconds=2) as exporter:
        exporter.write(rows.alert("a"), rows.gauges(time_ms=now_ms() + 3_600_000))
        eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown", "ReplicaStale": "open"})


def test_a_cluster_that_never_had_a_heartbeat_is_stale(alertmanager, serving, rows):
    server = alertmanager().start()
    with serving(server, stale_after_seconds=2) as exporter:
        exporter.write(rows.broker(1))
        found = eventually(server.alerts, lambda alerts: states(alerts) == {"ReplicaStale": "open"})
    assert "0 open alerts" in found["ReplicaStale"]["annotations"]["description"]


def test_a_cluster_that_is_read_anew_ends_no_alert_before_it_is_ready(alertmanager, serving, rows):
    server = alertmanager().start()
    place = {"cluster": "north", "generation": 1, "zxid": 1, "time_ms": 1, "seq": 0, "ordinal": -1}
    with serving(server, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.write(rows.gauges(), rows.alert("a"))
        eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})
        for output in ("alerts", "gauges"):
            exporter.write_lines(output, encode_row(BeginningRow(**place)))
        exporter.write(rows.gauges(ready=False))
        eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown"})
        exporter.write(rows.alert("a"), rows.gauges())
        eventually(server.alerts, lambda alerts: states(alerts) == {"a": "open"})


def test_the_alerts_of_a_forgotten_cluster_end_at_once(alertmanager, serving, rows):
    server = alertmanager().start()
    end = {"cluster": "north", "generation": 2, "seq": 0, "zxid": 1, "time_ms": now_ms()}
    with serving(server, stale_after_seconds=2, resolve_timeout_seconds=NEVER_STALE) as exporter:
        exporter.write(rows.gauges(time_ms=now_ms()), rows.alert("a"))
        eventually(server.alerts, lambda alerts: states(alerts) == {"a": "unknown", "ReplicaStale": "open"})
        exporter.write(rows.alert("a", "resolved", **end, ordinal=0, cause="the cluster was forgotten"))
        for output in STANDING_OUTPUTS:
            exporter.write_lines(output, encode_row(BeginningRow(**end, ordinal=1, forgotten=True)))
        eventually(server.alerts, lambda alerts: alerts == {})


@pytest.fixture
def certificate(tmp_path) -> tuple[str, str]:
    """Return a self-signed certificate of 127.0.0.1, and its key."""
    shown, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make_self_signed(shown, key, "alertmanager")
    return str(shown), str(key)


def test_an_alertmanager_with_tls_and_a_login_gets_alerts_only_with_the_password(
    alertmanager, serving, rows, certificate, tmp_path, caplog
):
    password = tmp_path / "password"
    password.write_text("wrong\n")
    web = f"basic_auth_users: {{kontrast: '{TEST_AS_BCRYPT}'}}\n"
    web += f"tls_server_config: {{cert_file: {certificate[0]}, key_file: {certificate[1]}}}\n"
    server = alertmanager(web=web, scheme="https", login="kontrast:test").start()
    login = {"username": "kontrast", "password_file": str(password), "ca_file": certificate[0]}
    with serving(server, **login) as exporter:
        exporter.write(rows.gauges(), rows.alert("a"))
        exporter.metrics_with(r"^kontrast_alertmanager_up\{.*\} 0")
        assert "401" in caplog.text
        password.write_text("test\n")
        eventually(server.alerts, len)
    assert "wrong" not in caplog.text


def test_an_address_that_is_no_alertmanager_is_logged_and_counted(alertmanager, serving, rows, caplog):
    server = alertmanager().start()
    server.url += "/nowhere"
    with serving(server) as exporter:
        exporter.write(rows.gauges(), rows.alert("a"))
        exporter.metrics_with(r"^kontrast_alertmanager_up\{.*\} 0")
    assert "404" in caplog.text


def test_a_file_of_authorities_that_is_none_is_refused_at_the_start(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    told = AlertmanagerConfig(urls=("https://am:9093",), ca_file=str(file))
    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", alertmanager=told)
    with pytest.raises(ServeError, match="holds no certificates"):
        run(config, threading.Event())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"urls": ("alertmanager:9093",)}, "is no URL"),
        ({"urls": ("http://user:secret@am:9093",)}, "has a login"),
        ({"urls": ("http://am:9093/?a=b",)}, "is no URL"),
        ({"urls": ("http://am:99999",)}, "is no URL"),
        ({"generator_url": "kontrast"}, "is no URL"),
        ({"page_url": "kontrast"}, "is no URL"),
        ({"crash_without_damage": "info"}, "expected page or warn"),
        ({"resend_interval_seconds": 0}, "resend_interval_seconds"),
        ({"resend_interval_seconds": 200}, "at least twice"),
        ({"stale_after_seconds": -1}, "stale_after_seconds"),
        ({"external_labels": {"severity": "x"}}, "'severity'"),
        ({"external_labels": {"a-b": "x"}}, "'a-b'"),
        ({"username": "me"}, "each of these needs username"),
        ({"password_variable": "HOME"}, "each of these needs username"),
        ({"bearer_token_variable": "NOT_THERE_AT_ALL"}, "NOT_THERE_AT_ALL"),
        ({"bearer_token_file": "/nowhere/token"}, "/nowhere/token"),
        ({"bearer_token_variable": "HOME", "username": "a", "password_variable": "HOME"}, "Keep one login"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_sentence(settings, said):
    with pytest.raises(ServeError) as refusal:
        AlertmanagerConfig(**settings)
    assert said in str(refusal.value)
    assert "secret" not in str(refusal.value)
