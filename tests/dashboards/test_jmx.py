"""Kafka's gauges by the JMX exporter's names on /metrics/jmx, which stays empty until the gauges are known."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from dashboards.catalogue.metric import JMX_PAGE

CONTROLLER = "kafka_controller_kafkacontroller_"
BROKER = "kafka_server_replicamanager_"


def values(text: str) -> dict[str, dict[tuple, float]]:
    """Return the samples by name, then by the labels' values."""
    told: dict[str, dict[tuple, float]] = {}
    for family in parse(text):
        for sample in family.samples:
            told.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return told


@pytest.fixture
def ask(all_pages):
    """Return a function that reads the page once it knows this many topics."""
    return lambda topics: values(
        all_pages.page_with(JMX_PAGE, rf"^kafka_controller_kafkacontroller_globaltopiccount\{{.*\}} {topics}\.0$")
    )


def brokers(rows):
    return (
        rows.broker(1, endpoints=("PLAINTEXT://b1.example:9092", "SSL://b1.example:9093")),
        rows.broker(2, endpoints=("SSL://[2001:db8::2]:9093",)),
        rows.broker(3, registered=False),
    )


def test_the_values_are_kafka_s_and_each_broker_has_an_instance(all_pages, rows, ask):
    counts = {"leaders_by_broker": {1: 4, 3: 1}, "replicas_by_broker": {1: 5, 2: 6, 3: 7}}
    lacking = {"under_replicated_by_broker": {2: 2}, "under_min_isr_by_broker": {1: 1}, "at_min_isr_by_broker": {2: 3}}
    more = {"elections": {"UncleanOfflinePartitionLeaderElection": 3}, "offline_partitions": 8, "partitions": 30}
    all_pages.write(*brokers(rows), rows.gauges(topics=9, **counts, **lacking, **more))
    told = ask(9)
    first, second = ("1", "b1.example:7071", "north"), ("2", "[2001:db8::2]:7071", "north")
    assert told[f"{CONTROLLER}activecontrollercount"] == {first: 1, second: 0}
    assert told[f"{CONTROLLER}offlinepartitionscount"] == {first: 8, second: 0}
    assert told[f"{CONTROLLER}globalpartitioncount"] == {first: 30, second: 0}
    assert told["kafka_controller_controllerstats_uncleanleaderelections_total"] == {("north",): 3}
    assert told[f"{BROKER}leadercount"] == {first: 4, second: 0}
    assert told[f"{BROKER}partitioncount"] == {first: 5, second: 6}
    assert told[f"{BROKER}underreplicatedpartitions"] == {first: 0, second: 2}
    assert told[f"{BROKER}underminisrpartitioncount"] == {first: 1, second: 0}
    assert told[f"{BROKER}atminisrpartitioncount"] == {first: 0, second: 3}


def test_without_a_controller_the_sum_is_0_and_what_is_offline_is_still_counted(all_pages, rows, ask):
    all_pages.write(*brokers(rows), rows.gauges(topics=9, controller=-1, offline_partitions=8))
    told = ask(9)
    assert sum(told[f"{CONTROLLER}activecontrollercount"].values()) == 0
    assert len(told[f"{CONTROLLER}activecontrollercount"]) == 2
    assert told[f"{CONTROLLER}offlinepartitionscount"] == {
        ("1", "b1.example:7071", "north"): 8,
        ("2", "[2001:db8::2]:7071", "north"): 0,
    }


def test_a_controller_that_is_not_registered_is_still_the_controller(all_pages, rows, ask):
    all_pages.write(*brokers(rows), rows.gauges(topics=9, controller=3))
    told = ask(9)
    assert sum(told[f"{CONTROLLER}activecontrollercount"].values()) == 1
    assert told[f"{CONTROLLER}activecontrollercount"]["3", "north"] == 1
    assert told[f"{CONTROLLER}globaltopiccount"]["3", "north"] == 9


def test_a_cluster_without_brokers_has_a_sum_that_an_alert_sees(all_pages, rows, ask):
    all_pages.write(rows.gauges(topics=9, controller=-1, offline_partitions=3))
    told = ask(9)
    assert told[f"{CONTROLLER}activecontrollercount"] == {("north",): 0}
    assert told[f"{CONTROLLER}offlinepartitionscount"] == {("north",): 3}
    assert told[f"{BROKER}leadercount"] == {("north",): 0}


def test_nothing_is_said_of_a_cluster_before_its_snapshot_is_complete(all_pages, rows):
    all_pages.write(*brokers(rows), rows.gauges(ready=False), rows.gauges(cluster="south"))
    text = all_pages.page_with(JMX_PAGE, r'^kontrast_page_ready\{kafka_cluster="south",page="/metrics/jmx"\} 1')
    text = all_pages.page_with(JMX_PAGE, r'^kontrast_page_ready\{kafka_cluster="north",page="/metrics/jmx"\} 0')
    about_north = [line for line in text.splitlines() if '"north"' in line]
    assert about_north == ['kontrast_page_ready{kafka_cluster="north",page="/metrics/jmx"} 0.0']


def test_more_brokers_than_the_limit_are_left_out_but_never_the_controller(tmp_path, rows, start_exporter):
    from dashboards.exporter.config import ServeConfig
    from transport.address import JournalAddress

    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", jmx_page=True, broker_detail_limit=3)
    with start_exporter(config) as running:
        running.write(*(rows.broker(number) for number in range(50)), rows.gauges(controller=40))
        text = running.page_with(JMX_PAGE, "^kafka_controller_kafkacontroller_activecontrollercount")
        told = values(text)[f"{CONTROLLER}activecontrollercount"]
        assert len(told) == 4
        assert sum(told.values()) == 1
        running.metrics_with(r'^kontrast_broker_detail_dropped\{kafka_cluster="north"\} 47')
