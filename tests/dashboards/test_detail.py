"""Names on /metrics, which are unresolved alerts and brokers, oldest or registered first, up to the limits."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from controller.contract.alert_row import Severity
from controller.contract.gauges_row import Maintenance
from tests.dashboards.test_collector import Bench

SINCE = "kontrast_alert_since_timestamp_seconds"


@pytest.fixture
def bench() -> Bench:
    return Bench()


def labels_of(samples: dict[tuple, float], *names: str) -> dict[tuple, float]:
    return {tuple(dict(labels)[name] for name in names): value for labels, value in samples.items()}


def alerts_open(bench) -> dict[tuple, float]:
    return labels_of(bench.samples("kontrast_alerts_open"), "alert", "severity", "state")


def test_unresolved_alerts_are_counted_by_kind_and_named_by_subject(bench, rows):
    bench.apply(
        rows.gauges(),
        rows.alert("a", subject="partition orders-0", since_ms=1_000),
        rows.alert("b", subject="partition orders-1", since_ms=2_000),
        rows.alert("c", alert="GhostController", subject="cluster north", severity=Severity.WARN),
    )
    assert alerts_open(bench) == {("PartitionsOffline", "page", "open"): 2, ("GhostController", "warn", "open"): 1}
    named = labels_of(bench.samples(SINCE), "alert", "severity", "subject")
    assert named["PartitionsOffline", "page", "partition orders-1"] == 2
    assert len(named) == 3
    bench.apply(rows.alert("a", state="resolved"), rows.alert("c", state="resolved"))
    assert alerts_open(bench) == {("PartitionsOffline", "page", "open"): 1}
    assert len(bench.samples(SINCE)) == 1


def test_an_alert_of_which_nothing_can_be_said_is_neither_open_nor_gone(bench, rows):
    bench.apply(rows.gauges(), rows.alert("a"), rows.alert("a", state="unknown"))
    assert alerts_open(bench) == {("PartitionsOffline", "page", "unknown"): 1}
    assert len(bench.samples(SINCE)) == 1
    bench.apply(rows.alert("a", severity=Severity.INFO))
    assert alerts_open(bench) == {("PartitionsOffline", "info", "open"): 1}


def test_two_alerts_about_one_subject_are_one_series_for_prometheus_refuses_two(bench, rows):
    bench.apply(rows.gauges(), rows.alert("late", since_ms=5_000), rows.alert("early", since_ms=3_000))
    assert list(bench.samples(SINCE).values()) == [3]
    assert bench.value("kontrast_alert_detail_dropped") == 0


def test_too_many_alerts_are_capped_the_oldest_are_named_and_the_rest_is_counted(rows):
    bench = Bench(alerts=3)
    bench.apply(rows.gauges(), *(rows.alert(f"{n}", subject=f"partition t-{n}", since_ms=n) for n in range(10, 0, -1)))
    named = labels_of(bench.samples(SINCE), "subject")
    assert set(named) == {("partition t-1",), ("partition t-2",), ("partition t-3",)}
    assert bench.value("kontrast_alert_detail_dropped") == 7
    assert sum(alerts_open(bench).values()) == 10


def test_alerts_are_named_before_further_brokers_which_are_never_dropped_alerts(rows):
    bench = Bench(alerts=2)
    bench.apply(
        rows.gauges(),
        rows.alert("rack", subject="broker 3", broker=3, brokers=(2, 3, 4), since_ms=1),
        rows.alert("late", subject="broker 9", broker=9, severity=Severity.WARN, since_ms=9),
    )
    assert set(labels_of(bench.samples(SINCE), "broker", "other_broker")) == {("3", ""), ("9", "")}
    assert bench.value("kontrast_alert_detail_dropped") == 0
    bench.apply(rows.alert("later", subject="broker 8", broker=8, since_ms=10))
    assert bench.value("kontrast_alert_detail_dropped") == 1


def test_what_a_broker_s_own_partitions_lack_is_counted_by_their_leader(bench, rows):
    lacking = {"under_replicated_by_broker": {1: 3}, "under_min_isr_by_broker": {2: 2}, "at_min_isr_by_broker": {1: 1}}
    bench.apply(rows.broker(1), rows.broker(2), rows.gauges(**lacking))
    assert bench.value("kontrast_broker_partitions_under_replicated", broker="1") == 3
    assert bench.value("kontrast_broker_partitions_under_replicated", broker="2") == 0
    assert bench.value("kontrast_broker_partitions_under_min_isr", broker="2") == 2
    assert bench.value("kontrast_broker_partitions_at_min_isr", broker="1") == 1


def test_a_broker_that_only_has_replicas_is_named_as_not_registered(bench, rows):
    bench.apply(rows.gauges(replicas_by_broker={7: 4}, leaders_by_broker={}))
    assert bench.value("kontrast_broker_registered", broker="7") == 0
    assert bench.value("kontrast_broker_replicas", broker="7") == 4


def test_too_many_brokers_are_capped_registered_ones_first_and_the_rest_is_counted(rows):
    bench = Bench(brokers=4)
    gone = [rows.broker(number, registered=False) for number in range(100)]
    bench.apply(
        *gone, rows.broker(500), rows.broker(501), rows.gauges(replicas_by_broker={80: 1}, leaders_by_broker={})
    )
    named = {int(broker) for (broker,) in labels_of(bench.samples("kontrast_broker_registered"), "broker")}
    assert named == {500, 501, 80, 0}
    assert bench.value("kontrast_broker_detail_dropped") == 98


def test_bombs_stay_within_the_caps(rows):
    bench = Bench(partitions=50, brokers=100, alerts=50)
    counts = dict.fromkeys(range(1_000), 10)
    bench.apply(rows.gauges(leaders_by_broker=counts, replicas_by_broker=counts, under_replicated_by_broker=counts))
    for number in range(2_000):
        bench.memory.apply(rows.offline("bomb", number))
        bench.memory.apply(rows.alert(f"{number}", subject=f"partition bomb-{number}"))
    for number in counts:
        bench.memory.apply(rows.broker(number))
    text = generate_latest(bench.registry).decode()
    # 7 figures of 100 brokers, 2 of 50 partitions, 50 alerts, and the aggregates.
    assert text.count("\n") < 1_300
    assert bench.value("kontrast_partition_detail_dropped") == 1_950
    assert bench.value("kontrast_alert_detail_dropped") == 1_950
    assert bench.value("kontrast_broker_detail_dropped") == 900
    assert bench.value("kontrast_alerts_open", alert="PartitionsOffline", severity="page", state="open") == 2_000


def test_the_lag_has_the_zxid_of_a_change_in_openmetrics_only(bench, rows):
    bench.reading.lag("north", 0.2, zxid=(5 << 32) + 16, at_seconds=1_700_000_000.25)
    bench.reading.lag("north", 0.2, zxid=-1, at_seconds=1_700_000_001)
    bench.reading.lag("north", 7.0, zxid=(5 << 32) + 17, at_seconds=1_700_000_002)
    families = {family.name: family for family in parse_openmetrics(generate_openmetrics(bench.registry).decode())}
    samples = families["kontrast_end_to_end_lag_seconds"].samples
    shown = {s.labels["le"]: s.exemplar for s in samples if s.exemplar is not None}
    assert {le: exemplar.labels for le, exemplar in shown.items()} == {
        "0.25": {"zxid": "0x500000010"},
        "10.0": {"zxid": "0x500000011"},
    }
    assert (shown["0.25"].value, float(shown["0.25"].timestamp)) == (0.2, 1_700_000_000.25)
    assert b"zxid=" not in generate_latest(bench.registry)


def test_what_pages_is_named_before_what_is_older(rows):
    bench = Bench(alerts=2)
    bench.apply(
        rows.gauges(),
        rows.alert("old", subject="old", severity=Severity.WARN, since_ms=1),
        rows.alert("older", subject="older", severity=Severity.INFO, since_ms=0),
        rows.alert("page", subject="page", since_ms=5),
    )
    assert set(labels_of(bench.samples(SINCE), "subject")) == {("page",), ("older",)}


def test_an_alert_has_alertmanagers_labels_and_stays_during_a_complete_read(bench, rows):
    bench.apply(rows.gauges(), rows.alert("a", alert="BrokerCrashed", subject="broker 3", group="broker 3", broker=3))
    (before,) = bench.samples(SINCE)
    assert dict(before) == {
        "kafka_cluster": "north",
        "alert": "BrokerCrashed",
        "severity": "page",
        "component": "broker",
        "subject": "broker 3",
        "group": "broker 3",
        "topic": "",
        "partition": "",
        "broker": "3",
        "other_broker": "",
        "news": "",
        "rank": "007",
    }
    bench.memory.forget("alerts", "north")
    bench.apply(rows.gauges(ready=False))
    assert list(bench.samples(SINCE)) == [before]


def test_a_maintenance_in_force_is_named_by_broker_with_its_end(bench, rows):
    windows = (
        Maintenance(brokers=(1, 2), until_ms=60_000),
        Maintenance(brokers=(2,), until_ms=90_000, reason="disks"),
        Maintenance(brokers=(), until_ms=30_000),
    )
    bench.apply(rows.gauges(maintenance=windows))
    assert labels_of(bench.samples("kontrast_maintenance_until_timestamp_seconds"), "broker") == {
        ("1",): 60,
        ("2",): 90,
        ("all",): 30,
    }
    bench.apply(rows.gauges(maintenance=()))
    assert bench.samples("kontrast_maintenance_until_timestamp_seconds") == {}
