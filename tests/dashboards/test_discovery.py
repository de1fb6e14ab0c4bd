"""Registered brokers for Prometheus, from /sd/brokers over real HTTP."""

from __future__ import annotations

import json

import pytest

from dashboards.exporter.config import ServeConfig
from dashboards.exporter.discovery import addresses, scrape_address
from transport.address import JournalAddress


def brokers_of(running, query: str = "") -> list:
    status, headers, body = running.get(f"/sd/brokers{query}")
    assert status == 200, body
    assert headers["content-type"] == "application/json"
    return json.loads(body)


def test_registered_brokers_are_targets_with_the_port_of_their_jmx_exporter(all_pages, rows):
    all_pages.write(
        rows.broker(1, endpoints=("INTERNAL://b1:9092", "SASL_SSL://public.example:9093"), rack="a"),
        rows.broker(2, endpoints=("PLAINTEXT://[2001:db8::2]:9092",)),
        rows.broker(3, registered=False, endpoints=("PLAINTEXT://b3:9092",)),
        rows.broker(4),
        rows.gauges(),
    )
    all_pages.metrics_with(r"^kontrast_ready\{.*\} 1")
    assert brokers_of(all_pages) == [
        {
            "targets": ["b1:7071"],
            "labels": {
                "kafka_cluster": "north",
                "__meta_kafka_broker": "1",
                "__meta_kafka_rack": "a",
                "__meta_kafka_listener_internal": "b1:9092",
                "__meta_kafka_listener_sasl_ssl": "public.example:9093",
            },
        },
        {
            "targets": ["[2001:db8::2]:7071"],
            "labels": {
                "kafka_cluster": "north",
                "__meta_kafka_broker": "2",
                "__meta_kafka_listener_plaintext": "[2001:db8::2]:9092",
            },
        },
    ]


def test_without_a_port_a_broker_s_own_is_the_target(tmp_path, rows, start_exporter):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as running:
        running.write(rows.broker(1, endpoints=("PLAINTEXT://b1:9092",)), rows.gauges())
        running.metrics_with(r"^kontrast_ready\{.*\} 1")
        assert [group["targets"] for group in brokers_of(running)] == [["b1:9092"]]


def test_brokers_of_a_past_are_no_targets(all_pages, rows):
    broker = {"endpoints": ("PLAINTEXT://b1:9092",)}
    all_pages.write(rows.broker(1, **broker), rows.gauges(), rows.broker(1, cluster="past", **broker))
    all_pages.write(rows.gauges(cluster="past", session="replay"))
    all_pages.metrics_with(r'^kontrast_ready\{.*="past"\} 1')
    assert [group["labels"]["kafka_cluster"] for group in brokers_of(all_pages)] == ["north"]
    assert all_pages.get("/sd/brokers?cluster=past")[0] == 503


def test_it_refuses_while_no_broker_is_known_for_empty_answers_drop_all_targets(all_pages, rows):
    all_pages.metrics_with(r"^kontrast_source_up\{.*\} 1")
    assert all_pages.get("/sd/brokers")[0] == 503
    south = rows.broker(9, cluster="south", endpoints=("PLAINTEXT://b9:9092",))
    all_pages.write(rows.broker(1), south, rows.gauges(ready=False), rows.gauges(cluster="south"))
    all_pages.metrics_with(r'^kontrast_ready\{kafka_cluster="south"\} 1')
    status, _, body = all_pages.get("/sd/brokers")
    assert (status, body) == (503, b"the brokers of north are unknown\n")
    assert [group["targets"] for group in brokers_of(all_pages, "?cluster=south")] == [["b9:7071"]]
    assert all_pages.get("/sd/brokers?cluster=north")[0] == 503
    assert all_pages.get("/sd/brokers?cluster=absent")[0] == 503


def test_promtool_reads_it(all_pages, rows, promtool, tmp_path):
    all_pages.write(rows.broker(1, endpoints=("PLAINTEXT://b1:9092",), rack="ra\nck"), rows.gauges())
    all_pages.metrics_with(r"^kontrast_ready\{.*\} 1")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "scrape_configs: [{job_name: kafka, relabel_configs: [{source_labels: [__meta_kafka_broker], "
        f"target_label: broker}}], http_sd_configs: [{{url: '{all_pages.address}/sd/brokers'}}]}}]"
    )
    result = promtool("check", "service-discovery", "--timeout=5s", str(config), "kafka")
    assert result.returncode == 0, result.stderr
    (target,) = json.loads(result.stdout)
    assert target["labels"]["instance"] == "b1:7071"
    assert (target["labels"]["broker"], target["labels"]["kafka_cluster"]) == ("1", "north")


@pytest.mark.parametrize(
    "endpoint",
    ["", "b1:9092", "PLAINTEXT://:9092", "PLAINTEXT://b1", "PLAINTEXT://b1:port", "X://a b:1", 'X://"b:1', "X://b\n:1"],
)
def test_an_endpoint_without_a_host_or_a_port_is_no_address(rows, endpoint):
    assert addresses(rows.broker(1, endpoints=(endpoint,))) == {}
    assert scrape_address(rows.broker(1, endpoints=(endpoint, "SSL://b2:9093")), None) == "b2:9093"
