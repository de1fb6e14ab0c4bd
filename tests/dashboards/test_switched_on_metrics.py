"""Metrics of optional features, which match the catalogue and are absent without the feature."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse
from prometheus_client.registry import Collector

from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.delivery import Delivery
from dashboards.alerting.sender import delivery_collector
from dashboards.catalogue.table import CATALOGUE
from dashboards.exporter.server import broker_view_collector, quorum_collector
from dashboards.probe.comparison import CurrentRows, DifferenceKind, PartitionDifference
from dashboards.probe.config import ProbeConfig
from dashboards.probe.prober import BrokerFindings, ProbedBroker, Prober
from dashboards.probe.quorum import QuorumProbe, QuorumSeen
from migration.comparison.view import CopiedSubject
from migration.nodes.nodes import Quorum
from outputs.reading import ReadingCounts
from questions.memory import Memory


def collector_of_a_delivery() -> Collector:
    delivery = Delivery(AlertmanagerConfig(urls=("http://am:9093",)), Memory(), ReadingCounts())
    (sender,) = delivery.senders
    sender.is_up, sender.delivered_ms = True, 1
    return delivery_collector(delivery.senders)


class OneProbe:
    cluster = "north"

    def brokers(self) -> tuple[ProbedBroker, ...]:
        found = {("t", 0): PartitionDifference(DifferenceKind.MISSING, None, None)}
        findings = BrokerFindings(broker=3, found=found, since_ms=1, answered_ms=2)
        return (ProbedBroker(3, answers=2, failures=1, seconds=0.5, findings=findings),)


def _prober() -> Prober:
    memory = Memory()
    memory.add_cluster("north")
    return Prober(ProbeConfig(), memory, ReadingCounts())


def collector_of_a_probe() -> Collector:
    prober = _prober()
    prober._probes["north"] = OneProbe()
    return broker_view_collector(prober)


class OneQuorum:
    cluster = "north"
    seen = QuorumSeen({"kraft": 1}, Quorum(3001, 9, 120, voters=(3001,)), {CopiedSubject.PARTITIONS: 0}, offset=110)


def collector_of_a_quorum() -> Collector:
    prober = _prober()
    prober._quorums["north"] = OneQuorum()
    return quorum_collector(prober)


def test_the_quorum_says_in_a_sentence_whether_it_is_finalized():
    memory, reading = Memory(), ReadingCounts()
    prober = Prober(ProbeConfig(), memory, reading)
    assert prober.quorum_sentence("north").startswith("not asked. Name the KRaft controllers in kafka_quorum")
    probe = QuorumProbe("north", ProbeConfig(), CurrentRows("north", memory, reading))
    prober._quorums["north"] = probe
    assert prober.quorum_sentence("north") == "asked, without an answer yet"
    probe.seen = QuorumSeen({"zookeeper-migrating": 3}, None, None)
    assert prober.quorum_sentence("north").startswith("no known node speaks for it")
    quorum = Quorum(3001, 9, 120, voters=(3001,))
    probe.seen = QuorumSeen({"kraft": 1, "controller-migrating": 1}, quorum, {}, offset=110)
    said = "controller 3001 leads in epoch 9, ZooKeeper lacked 9 records of its log{}, nodes: 1 {}, 1 kraft"
    assert prober.quorum_sentence("north") == said.format("", "controller-migrating")
    probe.seen = QuorumSeen({"kraft": 1, "controller": 1}, quorum, {}, offset=110)
    finalized = ", the migration is finalized (no controller has its flag)"
    assert prober.quorum_sentence("north") == said.format(finalized, "controller")


def test_the_lag_is_what_the_offset_lacks_of_the_agreed_log():
    def lag(high_watermark: int | None, offset: int | None) -> int | None:
        quorum = None if high_watermark is None else Quorum(3001, 9, high_watermark, voters=(3001,))
        return QuorumSeen({}, quorum, None, offset=offset).offset_lag

    assert [lag(120, 110), lag(111, 110), lag(108, 110), lag(120, -1)] == [9, 0, 0, 120]
    assert lag(None, 110) is lag(120, None) is None


@pytest.mark.parametrize(
    ("table", "collectors"),
    [
        ("serve.alertmanager", [collector_of_a_delivery()]),
        ("serve.probe", [collector_of_a_probe(), collector_of_a_quorum()]),
    ],
)
def test_each_of_its_metrics_is_exported_with_its_labels_and_no_other(table, collectors, promtool):
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    text = generate_latest(registry).decode()
    exported = {sample.name: set(sample.labels) for family in parse(text) for sample in family.samples}
    assert exported == {metric.name: set(metric.labels) for metric in CATALOGUE if metric.switched_on_by == table}
    result = promtool("check", "metrics", input=text)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_an_exporter_on_its_own_has_none_of_them(exporter, rows):
    exporter.write(*rows.of_everything())
    text = exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    for metric in CATALOGUE:
        if metric.switched_on_by:
            assert f"\n{metric.name}{{" not in text
