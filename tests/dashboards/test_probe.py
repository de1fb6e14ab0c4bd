"""Metadata of real brokers, compared with ZooKeeper."""

from __future__ import annotations

import logging
import re
import socket
import time
from contextlib import AbstractContextManager

import pytest
from kafka.admin import NewTopic

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import free_port
from controller.says.alert_kinds.brokers import HANGS
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.exporter.config import ServeConfig
from dashboards.probe.broker import BrokerConnection, Leader, ProbeError, choose_endpoint
from dashboards.probe.config import KafkaLoginConfig, ProbeConfig
from dashboards.probe.prober import Prober
from outputs.reading import ReadingCounts
from questions.memory import Memory
from tests.certificates import make_self_signed
from tests.clients import kafka_admin
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.dashboards.live_replica import LiveReplica
from tests.waiting import eventually, repeating
from transport.address import JournalAddress

QUICKLY = {"brokers": True, "interval_seconds": 0.5, "confirm_seconds": 1.0, "requests_per_second": 100.0}


def sample(text: str, name: str, **labels: object) -> float | None:
    """Return the value of the only sample with these labels, or None without one."""
    wanted = "".join(rf'(?=[^}}]*{label}="{value}")' for label, value in labels.items())
    found = re.findall(rf"^{name}\{{{wanted}[^}}]*\}} (\S+)$", text, re.MULTILINE)
    assert len(found) <= 1, found
    return float(found[0]) if found else None


def differing(text: str, broker: int) -> dict[str, float | None]:
    name = "kontrast_broker_view_partitions"
    return {kind: sample(text, name, broker=broker, difference=kind) for kind in ("stale", "missing", "unexpected")}


NOTHING = {"stale": 0, "missing": 0, "unexpected": 0}


def probes(text: str, broker: int, result: str) -> float:
    return sample(text, "kontrast_broker_view_probes_total", broker=broker, result=result) or 0


def asked_again(exporter, *brokers: int) -> str:
    """Return the metrics after some more rounds, the first of which began after now."""
    before = exporter.metrics()

    def went_on(text: str) -> bool:
        return all(probes(text, one, "answered") >= probes(before, one, "answered") + 4 for one in brokers)

    return eventually(exporter.metrics, went_on)


@pytest.mark.nightly
def test_brokers_of_a_healthy_cluster_differ_in_nothing_whatever_happens_to_topics(
    start_kafka_cluster, start_exporter, tmp_path
):
    cluster = start_kafka_cluster(broker_ids=(1, 2), properties={"zookeeper.session.timeout.ms": "3000"})
    with LiveReplica("north", cluster.zookeeper.connect_string, tmp_path) as replica:
        config = ServeConfig(source=JournalAddress(replica.outputs), listen="127.0.0.1:0", probe=ProbeConfig(**QUICKLY))
        with start_exporter(config) as exporter, kafka_admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("kept", 4, 2), NewTopic("gone", 3, 1)])
            eventually(exporter.metrics, lambda text: sample(text, "kontrast_topics", kafka_cluster="north") == 2)
            text = asked_again(exporter, 1, 2)
            assert (differing(text, 1), differing(text, 2)) == (NOTHING, NOTHING)
            assert sample(text, "kontrast_broker_view_probe_seconds", broker=1) > 0
            admin.delete_topics(["gone"])
            eventually(exporter.metrics, lambda text: sample(text, "kontrast_topics", kafka_cluster="north") == 1)
            text = asked_again(exporter, 1, 2)
            assert (differing(text, 1), differing(text, 2)) == (NOTHING, NOTHING)
            cluster.brokers[2].kill()
            # A broker that is not registered is not asked, and has no findings.
            eventually(exporter.metrics, lambda text: differing(text, 2) == dict.fromkeys(NOTHING))
            text = asked_again(exporter, 1)
            assert differing(text, 1) == NOTHING
            cluster.brokers[2].start()
            eventually(exporter.metrics, lambda text: differing(text, 2) == NOTHING)
            assert differing(asked_again(exporter, 1, 2), 1) == NOTHING


def fixed_replica(exporter, rows) -> AbstractContextManager[object]:
    """Send heartbeats beside the rows that a test writes."""
    return repeating(lambda: exporter.write(rows.gauges(time_ms=time.time_ns() // 1_000_000)), 0.2)


@pytest.fixture
def alertmanager(tmp_path):
    server = AlertmanagerServer(tmp_path / "alertmanager").start()
    yield server
    server.kill()


def test_a_broker_that_differs_for_long_is_counted_and_alerts_until_it_agrees(
    start_kafka_cluster, start_exporter, alertmanager, rows, tmp_path
):
    cluster = start_kafka_cluster()
    with kafka_admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 2, 1), NewTopic("deleted", 1, 1)], wait_for_metadata=True)
    told = AlertmanagerConfig(urls=(alertmanager.url,), resend_interval_seconds=1.0, resolve_timeout_seconds=10**6)
    source = JournalAddress(tmp_path / "outputs")
    config = ServeConfig(source=source, listen="127.0.0.1:0", alertmanager=told, probe=ProbeConfig(**QUICKLY))
    listener = (f"PLAINTEXT://{cluster.brokers[1].bootstrap_server}",)
    with start_exporter(config) as exporter:
        exporter.directory = source.directory
        exporter.write(
            rows.broker(1, endpoints=listener),
            rows.broker(7, registered=False, endpoints=("PLAINTEXT://127.0.0.1:1",)),
            rows.partition("t", 0, leader=1, leader_epoch=0, replicas=(1,), isr=(1,)),
            rows.partition("t", 1, leader=1, leader_epoch=9, replicas=(1,), isr=(1,)),
            rows.partition("never", 0, leader=1, leader_epoch=0, replicas=(1,), isr=(1,)),
        )
        with fixed_replica(exporter, rows):
            wanted = {"stale": 1, "missing": 1, "unexpected": 1}
            eventually(exporter.metrics, lambda text: differing(text, 1) == wanted)
            alert = eventually(alertmanager.alerts, len)["BrokerViewStale/1"]
            assert alert["labels"]["alertname"] == "KontrastBrokerViewStale"
            assert alert["labels"]["severity"] == "warning"
            assert alert["labels"]["broker"] == "1"
            assert "t-1: leader 1 in epoch 0, in ZooKeeper leader 1 in epoch 9" in alert["annotations"]["description"]
            assert alert["annotations"]["examples"] == "deleted-0, never-0, t-1"
            exporter.write(
                rows.partition("t", 1, leader=1, leader_epoch=0, replicas=(1,), isr=(1,)),
                rows.partition("never", 0, state="NonExistentPartition", removed=True),
                rows.partition("deleted", 0, leader=1, leader_epoch=0, replicas=(1,), isr=(1,)),
            )
            eventually(exporter.metrics, lambda text: differing(text, 1) == NOTHING)
            eventually(alertmanager.alerts, lambda alerts: not alerts)
            assert probes(exporter.metrics(), 7, "failed") == 0


@pytest.mark.nightly
def test_a_broker_that_hangs_fails_is_counted_and_holds_up_no_other(
    start_kafka_cluster, start_exporter, rows, tmp_path, caplog
):
    cluster = start_kafka_cluster(broker_ids=(1, 2), properties={"zookeeper.session.timeout.ms": "300000"})
    source = JournalAddress(tmp_path / "outputs")
    probe = ProbeConfig(**{**QUICKLY, "timeout_seconds": 1.0})
    with start_exporter(ServeConfig(source=source, listen="127.0.0.1:0", probe=probe)) as exporter:
        exporter.directory = source.directory
        for broker in (1, 2):
            exporter.write(rows.broker(broker, endpoints=(f"PLAINTEXT://{cluster.brokers[broker].bootstrap_server}",)))
        with fixed_replica(exporter, rows):
            eventually(exporter.metrics, lambda text: (differing(text, 1), differing(text, 2)) == (NOTHING, NOTHING))
            cluster.brokers[1].pause()
            text = eventually(exporter.metrics, lambda text: probes(text, 1, "failed") >= 2)
            assert differing(text, 1) == dict.fromkeys(NOTHING)
            assert differing(asked_again(exporter, 2), 2) == NOTHING
            cluster.brokers[1].resume()
            eventually(exporter.metrics, lambda text: differing(text, 1) == NOTHING)
    failed = [record for record in caplog.records if "cannot compare broker 1" in record.getMessage()]
    assert len(failed) == 1
    assert failed[0].levelno == logging.WARNING


def test_nothing_is_asked_while_the_replica_is_silent_or_unless_it_is_switched_on(
    start_kafka_cluster, start_exporter, rows, tmp_path
):
    cluster = start_kafka_cluster()
    source = JournalAddress(tmp_path / "outputs")
    broker = rows.broker(1, endpoints=(f"PLAINTEXT://{cluster.brokers[1].bootstrap_server}",))
    for probe in (ProbeConfig(**QUICKLY), ProbeConfig()):
        with start_exporter(ServeConfig(source=source, listen="127.0.0.1:0", probe=probe)) as exporter:
            exporter.directory = source.directory
            exporter.write(broker, rows.gauges(time_ms=1))
            exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
            if probe.brokers:
                with fixed_replica(exporter, rows):
                    eventually(exporter.metrics, lambda text: differing(text, 1) == NOTHING)
            else:
                assert "kontrast_broker_view_partitions{" not in exporter.metrics()


@pytest.fixture
def secured_broker(zookeeper, tmp_path):
    """Run a broker whose listener wants TLS and a login. Return the listener's endpoint and certificate."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make_self_signed(certificate, key, "broker")
    keystore = tmp_path / "keystore.pem"
    keystore.write_text(key.read_text() + certificate.read_text())
    broker = KafkaBroker(1, zookeeper.connect_string, tmp_path / "broker")
    port = free_port()
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_kontrast="secret";'
    broker.settings.update(
        {
            "listeners": f"PLAINTEXT://{broker.bootstrap_server},CLIENTS://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_SSL",
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": login,
            "listener.name.clients.ssl.keystore.type": "PEM",
            "listener.name.clients.ssl.keystore.location": str(keystore),
        }
    )
    with broker:
        yield f"CLIENTS://127.0.0.1:{port}", str(certificate), broker


def test_a_broker_with_tls_and_a_login_is_asked_with_them_and_not_without(secured_broker, tmp_path):
    endpoint, certificate, broker = secured_broker
    password = tmp_path / "password"
    password.write_text("secret\n")
    with kafka_admin(broker.bootstrap_server) as admin:
        admin.create_topics([NewTopic("t", 1, 1)], wait_for_metadata=True)

    def ask(**login):
        config = KafkaLoginConfig(kafka_listener="CLIENTS", **login)
        connection = BrokerConnection(choose_endpoint([endpoint], config), config, timeout_seconds=10)
        try:
            return connection.view(0), connection.view(0)
        finally:
            connection.close()

    secure = {"kafka_tls": True, "kafka_ca_file": certificate, "kafka_sasl_mechanism": "PLAIN"}
    login = {"kafka_username": "kontrast", "kafka_password_file": str(password)}
    view = {("t", 0): Leader(1, 0)}
    assert ask(**secure, **login) == (view, view)
    password.write_text("wrong")
    for mistaken in ({**secure, **login}, secure, {"kafka_tls": True}):
        with pytest.raises(ProbeError) as failure:
            ask(**mistaken)
        assert "\n" not in str(failure.value)
        assert "wrong" not in str(failure.value)


@pytest.mark.parametrize("answers", [True, False])
def test_the_port_of_a_broker_that_crashed_is_asked_once(rows, answers):
    memory = Memory()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1] if answers else free_port()
        away = {"registered": False, "left_in_order": False, "endpoints": (f"PLAINTEXT://127.0.0.1:{port}",)}
        for broker, more in enumerate(({}, {"left_in_order": True}, {"registered": True}, {"inferred": True}), 1):
            memory.apply(rows.broker(broker, **{**away, **more}))
        memory.apply(rows.alert("BrokerCrashed/broker 1", alert="BrokerCrashed", brokers=(1,)))
        with Prober(ProbeConfig(brokers=True), memory, ReadingCounts()):
            if answers:
                eventually(lambda: memory.cluster("north").open_alerts[0].action, HANGS.in_words().__eq__)
                server.accept()
            server.settimeout(2)
            with pytest.raises(TimeoutError):
                server.accept()
        assert (memory.cluster("north").open_alerts[0].action == HANGS.in_words()) is answers
