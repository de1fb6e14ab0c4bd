"""Metrics of `kontrast watch` about itself, which match the catalogue."""

from __future__ import annotations

import httpx
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from dashboards.catalogue.metric import MetricType
from dashboards.catalogue.table import CATALOGUE
from dashboards.exporter.watch_page import ForwardingCollector, open_page
from transport.forwarding import Forwarding, ReadReason
from transport.listening import Listening


def exported(*forwardings: Forwarding) -> str:
    registry = CollectorRegistry()
    registry.register(ForwardingCollector(forwardings))
    return generate_latest(registry).decode()


def busy(cluster: str) -> Forwarding:
    forwarding = Forwarding(
        cluster, leads=True, generation=7, is_connected=True, watch_mode="one-shot", heartbeat_ms=1500
    )
    forwarding.complete_reads[ReadReason.LOST] += 1
    forwarding.lag = forwarding.lag.observe(0.007).observe(70)
    return forwarding


def test_every_metric_of_the_watcher_is_exported_and_no_other(promtool) -> None:
    text = exported(busy("north"))
    names = {name for family in parse(text) for name in (family.name, f"{family.name}_total")}
    for metric in CATALOGUE:
        name = metric.name.removesuffix("_info") if metric.type is MetricType.INFO else metric.name
        assert (name in names or metric.name in names) is metric.of_watch, metric.name
    result = promtool("check", "metrics", input=text)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_each_cluster_has_its_own_figures() -> None:
    text = exported(busy("north"), Forwarding("south"))
    for line in (
        'kontrast_watch_leads{kafka_cluster="north"} 1.0',
        'kontrast_watch_leads{kafka_cluster="south"} 0.0',
        'kontrast_watch_generation{kafka_cluster="north"} 7.0',
        'kontrast_watch_mode_info{kafka_cluster="north",mode="one-shot"} 1.0',
        'kontrast_watch_complete_reads_total{kafka_cluster="north",reason="lost"} 1.0',
        'kontrast_watch_complete_reads_total{kafka_cluster="south",reason="lost"} 0.0',
        'kontrast_watch_heartbeat_timestamp_seconds{kafka_cluster="north"} 1.5',
        'kontrast_watch_lag_seconds_bucket{kafka_cluster="north",le="0.01"} 1.0',
        'kontrast_watch_lag_seconds_bucket{kafka_cluster="north",le="+Inf"} 2.0',
    ):
        assert line in text, line
    assert 'kontrast_watch_heartbeat_timestamp_seconds{kafka_cluster="south"}' not in text


def test_its_lag_has_the_zxid_of_a_change_in_openmetrics() -> None:
    forwarding = Forwarding("north")
    forwarding.lag = forwarding.lag.observe(0.007, zxid=0x500000010, at_seconds=1.7e9)
    registry = CollectorRegistry()
    registry.register(ForwardingCollector([forwarding]))
    families = {family.name: family for family in parse_openmetrics(generate_openmetrics(registry).decode())}
    (example,) = [s.exemplar for s in families["kontrast_watch_lag_seconds"].samples if s.exemplar is not None]
    assert (example.labels, example.value) == ({"zxid": "0x500000010"}, 0.007)


def test_it_is_ready_once_each_cluster_was_read_or_waits_for_its_turn() -> None:
    read, waits = Forwarding("north"), Forwarding("south")
    with open_page(Listening(listen="127.0.0.1:0"), [read, waits]) as server:

        def ready() -> tuple[int, str]:
            answer = httpx.get(f"{server.address}/readyz")
            return answer.status_code, answer.text

        assert ready() == (503, "not completely read yet: north, south\n")
        read.heartbeat_ms = 1500
        assert ready() == (503, "not completely read yet: south\n")
        waits.goes_on_trying = True
        assert ready() == (200, "ready\naway, but tried again and again: south\n")
        waits.heartbeat_ms = 1500
        assert ready() == (200, "ready\n")
        waits.heartbeat_ms, waits.goes_on_trying, waits.stands_for_election = 0, True, True
        assert ready() == (200, "ready\n")
