"""What is exported only where something is switched on is what the catalogue says, and is not there otherwise."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse

from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.delivery import Delivery
from dashboards.alerting.metrics import DeliveryCollector
from dashboards.catalogue.table import CATALOGUE
from dashboards.following.reading import Reading
from dashboards.following.view import View
from dashboards.probe.comparison import Difference, Found
from dashboards.probe.config import ProbeConfig
from dashboards.probe.findings import BrokerFindings
from dashboards.probe.metrics import BrokerViewCollector
from dashboards.probe.prober import ProbedBroker, Prober


def delivery_collector() -> DeliveryCollector:
    delivery = Delivery(AlertmanagerConfig(urls=("http://am:9093",)), View(), Reading())
    (sender,) = delivery.senders
    sender.is_up, sender.delivered_ms = True, 1
    return DeliveryCollector(delivery.senders)


class OneProbe:
    cluster = "north"

    def brokers(self) -> tuple[ProbedBroker, ...]:
        found = {("t", 0): Found(Difference.MISSING, None, None)}
        findings = BrokerFindings(broker=3, found=found, since_ms=1, answered_ms=2)
        return (ProbedBroker(3, answers=2, failures=1, seconds=0.5, findings=findings),)


def broker_view_collector() -> BrokerViewCollector:
    prober = Prober(ProbeConfig(), View(), Reading())
    prober._probes["north"] = OneProbe()
    return BrokerViewCollector(prober)


@pytest.mark.parametrize(
    ("table", "collector"), [("serve.alertmanager", delivery_collector()), ("serve.probe", broker_view_collector())]
)
def test_each_of_its_metrics_is_exported_with_its_labels_and_no_other(table, collector, promtool):
    registry = CollectorRegistry()
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
