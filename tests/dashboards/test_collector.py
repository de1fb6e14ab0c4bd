"""Exported metrics, which match the catalogue and never look like health before the state is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from controller.contract.job_row import ClusterProgress, JobRow
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import Message
from dashboards.alerting.registry import AlertRegistry, of_outputs
from dashboards.catalogue.metric import MetricType
from dashboards.catalogue.table import CATALOGUE
from dashboards.exporter.collector import MemoryCollector
from dashboards.exporter.scrape import DetailLimits
from outputs.reading import FOLLOWED_OUTPUTS, LAG_BUCKETS_SECONDS, ReadingCounts
from questions.memory import Memory
from tests.rows import NEVER_STALE_MS
from transport.printable import label_value

SERVED = [metric for metric in CATALOGUE if not (metric.of_watch or metric.of_pages or metric.switched_on_by)]
HOSTILE_NAMES = (
    "a\nb",
    'quo"te',
    "back\\slash\\n",
    "Grüße-日本",
    '{x="y"} 1\n# HELP',
    "a\x00b",
    " ",
    "\r\n",
    "x" * 249,
    "a\u202eb",
    r"a\u202eb",
    "<!channel>",
)


class Bench:
    """A memory, a reading that has caught up, and their scrape."""

    def __init__(self, *, partitions: int = 500, brokers: int = 500, alerts: int = 500, caught_up: bool = True) -> None:
        self.memory, self.reading = Memory(), ReadingCounts()
        self.reading.source_is(up=True)
        if caught_up:
            self.reading.caught_up()
        limits = DetailLimits(partitions=partitions, brokers=brokers, alerts=alerts)
        self.registry = CollectorRegistry()
        self._registry = AlertRegistry(AlertmanagerConfig())
        self.registry.register(
            MemoryCollector(
                self.memory, self.reading, limits, NEVER_STALE_MS, self._active_alerts, page_url="http://127.0.0.1:9642"
            )
        )

    def _active_alerts(self) -> Mapping[str, Sequence[Message]]:
        """Return the alerts of the applied rows."""
        self._registry.update([of_outputs(each, certain=each.ready) for each in self.memory.clusters()], 0, 0)
        return self._registry.active()

    def apply(self, *applied) -> None:
        for row in applied:
            self.memory.apply(row)
            if isinstance(row, JobRow):
                continue
            self.reading.row(row.cluster, row.output)
            self.reading.lag(row.cluster, 0.2, zxid=row.zxid, at_seconds=1.7e9)

    def families(self) -> dict:
        return {family.name: family for family in parse(generate_latest(self.registry).decode())}

    def samples(self, name: str) -> dict[tuple, float]:
        return {
            tuple(sample.labels.items()): sample.value
            for family in self.families().values()
            for sample in family.samples
            if sample.name == name
        }

    def value(self, name: str, **labels) -> float | None:
        wanted = {"kafka_cluster": "north", **labels}
        found = [value for given, value in self.samples(name).items() if dict(given) == wanted]
        return found[0] if found else None


@pytest.fixture
def bench() -> Bench:
    return Bench()


def exported_name(name: str) -> str:
    for suffix in ("_bucket", "_count", "_sum"):
        if name.endswith(suffix) and name.removesuffix(suffix).endswith("_seconds"):
            return name.removesuffix(suffix)
    return name


def test_the_exported_metrics_are_exactly_those_of_the_catalogue(bench, rows):
    bench.apply(*rows.of_everything())
    exported = {exported_name(s.name): s.labels.keys() for f in bench.families().values() for s in f.samples}
    assert set(exported) == {metric.name for metric in SERVED}


def test_labels_types_and_help_texts_are_the_catalogue_s(bench, rows):
    bench.apply(*rows.of_everything())
    families = {exported_name(s.name): (f, s) for f in bench.families().values() for s in f.samples}
    for metric in SERVED:
        family, sample = families[metric.name]
        assert set(sample.labels) - {"le"} == set(metric.labels), metric.name
        assert family.documentation == metric.help, metric.name
        # The plain text format has no info type.
        assert family.type == ("gauge" if metric.type is MetricType.INFO else metric.type.value), metric.name


def test_the_openmetrics_answer_parses_strictly_and_has_the_units(bench, rows):
    bench.apply(*rows.of_everything())
    families = {family.name: family for family in parse_openmetrics(generate_openmetrics(bench.registry).decode())}
    for metric in SERVED:
        family = families[metric.name.removesuffix("_total").removesuffix("_info")]
        assert (family.type, family.unit) == (metric.type.value, metric.unit)


def test_the_series_of_a_broker_that_is_forgotten_end(bench, rows):
    bench.apply(*rows.of_everything())
    bench.apply(
        rows.broker(2, registered=False, forgotten=True), rows.gauges(replicas_by_broker={1: 1}, leaders_by_broker={})
    )
    for name in ("kontrast_broker_registered", "kontrast_broker_replicas", "kontrast_broker_leaders"):
        assert {labels for labels in bench.samples(name) if "2" in str(labels)} == set(), name


def test_values_are_those_of_the_rows(bench, rows):
    bench.apply(*rows.of_everything())
    assert bench.value("kontrast_controller_active") == 1
    assert bench.value("kontrast_controller_info", broker="1") == 1
    assert bench.value("kontrast_controller_changes_total") == 2
    assert bench.value("kontrast_partitions", state="offline") == 1
    assert bench.value("kontrast_partitions", state="new") == 0
    assert bench.value("kontrast_replicas", state="deletion_ineligible") == 0
    assert bench.value("kontrast_broker_registered", broker="1") == 1
    assert bench.value("kontrast_broker_registered", broker="2") == 0
    assert bench.value("kontrast_alerts_open", alert="PartitionsOffline", severity="page", state="open") == 1
    assert bench.value("kontrast_last_zxid_epoch") == 3
    assert bench.value("kontrast_last_zxid_sequence") == 9
    assert bench.value("kontrast_heartbeat_timestamp_seconds") == pytest.approx(1_700_000_000 + rows.seq / 1000)
    labels = {"topic": "orders", "partition": "1", "reason": "no_live_in_sync_replica"}
    assert bench.value("kontrast_partition_offline_since_timestamp_seconds", **labels) == 1_700_000_000
    assert len(bench.samples("kontrast_replicas")) == 7


def test_the_job_s_own_figures_are_there_before_any_cluster_is_ready(bench, rows):
    assert bench.families()["kontrast_job_batches"].samples == []
    bench.apply(rows.job(batches=3, clusters={"north": progress(150), "south": progress(40)}))
    bench.apply(rows.job(batches=4, clusters={"south": progress(60)}))
    only = ("source", "")
    assert bench.samples("kontrast_job_batches_total") == {(only,): 4}
    assert bench.samples("kontrast_job_phase_seconds_total") == {(("phase", "addBatch"), only): 0.5}
    java = (("role", "java"), only)
    assert bench.samples("kontrast_job_processes") == {java: 1}
    assert bench.samples("kontrast_job_process_open_fds") == {java: 355}
    assert bench.samples("kontrast_job_process_max_fds") == {java: 20_000}
    assert bench.samples("kontrast_job_process_threads") == {java: 90}
    assert bench.samples("kontrast_job_process_resident_memory_bytes") == {java: 800_000_000}
    lags = bench.samples("kontrast_job_lag_seconds")
    # The newest batch had no records of north, so its older lag stays.
    assert lags == {(("kafka_cluster", "north"),): 0.15, (("kafka_cluster", "south"),): 0.06}


def progress(lag_ms):
    return ClusterProgress(records=1, observed_ms=1, lag_ms=lag_ms)


def test_what_has_not_happened_yet_is_zero_so_that_increase_sees_its_first_time(bench, rows):
    bench.apply(rows.broker(4), rows.gauges(elections={}, isr_changes={}, records={}, leaders_by_broker={}))
    assert bench.value("kontrast_leader_elections_total", strategy="UncleanOfflinePartitionLeaderElection") == 0
    assert bench.value("kontrast_isr_changes_total", operation="shrink") == 0
    assert bench.value("kontrast_records_total", kind="snapshot-begin") == 0
    assert bench.value("kontrast_broker_leaders", broker="4") == 0


def test_agreement_with_the_controller_is_by_verdict_by_rule_and_a_ratio(bench, rows):
    bench.apply(
        rows.gauges(
            writes={"expected": 7, "inferred": 2, "unexplained": 1},
            writes_of_last_hour={"expected": 1, "inferred": 1, "unexplained": 0},
            agreement=0.9,
            agreement_of_last_hour=1.0,
            inferences={"preferred-election": 2},
            inferred_events={"preferred-election": 2, "shutdown-asked-again": 3},
        )
    )
    assert bench.value("kontrast_writes_total", verdict="unexplained") == 1
    assert bench.value("kontrast_inferred_writes_total", rule="preferred-election") == 2
    assert bench.value("kontrast_inferred_events_total", rule="shutdown-asked-again") == 3
    assert bench.value("kontrast_inferred_events_total", rule="read-together") == 0  # so that rate() sees the first one
    assert bench.value("kontrast_agreement_ratio", window="start") == 0.9
    assert bench.value("kontrast_agreement_ratio", window="1h") == 1
    bench.apply(rows.gauges())
    assert bench.samples("kontrast_agreement_ratio") == {}  # without a write there is no figure, neither 0 nor 1


def test_no_controller_is_said_as_inactive_and_not_as_broker_minus_one(bench, rows):
    bench.apply(rows.gauges(controller=-1))
    assert bench.value("kontrast_controller_active") == 0
    assert bench.samples("kontrast_controller_info") == {}


def test_a_state_without_a_known_name_is_shown_and_not_dropped(bench, rows):
    bench.apply(rows.gauges(partitions_by_state={"StrangePartition": 4}))
    assert bench.value("kontrast_partitions", state="StrangePartition") == 4


def about_clusters(bench: Bench) -> set[str]:
    told = {exported_name(s.name) for f in bench.families().values() for s in f.samples}
    return told & {metric.name for metric in SERVED if not metric.before_ready}


def test_nothing_is_said_of_a_cluster_before_its_snapshot_is_complete(bench, rows):
    everything = rows.of_everything()
    bench.apply(*everything[:-1])
    assert bench.value("kontrast_ready") == 0
    assert about_clusters(bench) == set()
    bench.apply(rows.gauges(ready=False))
    assert bench.value("kontrast_ready") == 0
    assert bench.value("kontrast_zookeeper_session_connected") == 1
    assert about_clusters(bench) == set()
    bench.apply(rows.gauges(zxid=1))
    assert bench.value("kontrast_ready") == 1
    assert "kontrast_partition_offline_since_timestamp_seconds" in about_clusters(bench)


def test_nothing_is_said_of_a_cluster_while_the_past_is_still_being_read(rows):
    bench = Bench(caught_up=False)
    bench.apply(*rows.of_everything())
    assert bench.value("kontrast_ready") == 0
    assert about_clusters(bench) == set()
    bench.reading.caught_up()
    assert bench.value("kontrast_ready") == 1


def test_a_lost_session_is_not_connected(bench, rows):
    for session in ("suspended", "lost", "unknown"):
        bench.apply(rows.gauges(session=session))
        assert bench.value("kontrast_zookeeper_session_connected") == 0


def test_too_many_unusable_partitions_are_capped_and_the_rest_is_counted(rows):
    bench = Bench(partitions=3)
    bench.apply(rows.gauges(), *(rows.offline("orders", number, problem_since_ms=number) for number in range(10)))
    named = bench.samples("kontrast_partition_offline_since_timestamp_seconds")
    assert sorted(dict(labels)["partition"] for labels in named) == ["0", "1", "2"]
    assert bench.value("kontrast_partition_detail_dropped") == 7


def test_partitions_that_refuse_acks_all_are_named_with_what_they_need(rows):
    bench = Bench(partitions=2)
    many = (rows.under_min_isr("orders", number, problem_since_ms=number * 1000) for number in (7, 5, 9, 6))
    bench.apply(rows.gauges(), rows.under_min_isr("audit", 0, in_sync_lacking=2, in_sync_candidates=(4, 3)), *many)
    named = bench.samples("kontrast_partition_under_min_isr_since_timestamp_seconds")
    assert {dict(labels)["partition"]: since for labels, since in named.items()} == {"5": 5, "6": 6}
    assert bench.value("kontrast_partition_under_min_isr_detail_dropped") == 3
    needs = {"topic": "orders", "partition": "5", "brokers": "2"}
    assert bench.value("kontrast_partition_in_sync_lacking", **needs) == 1
    assert bench.samples("kontrast_partition_offline_since_timestamp_seconds") == {}
    bench.apply(*(rows.partition("orders", number) for number in (5, 6, 7)), rows.offline("orders", 9))
    assert bench.value("kontrast_partition_in_sync_lacking", topic="audit", partition="0", brokers="3,4") == 2
    assert bench.value("kontrast_partition_under_min_isr_detail_dropped") == 0
    assert len(bench.samples("kontrast_partition_offline_since_timestamp_seconds")) == 1


def test_hostile_names_survive_both_formats(bench, rows):
    bench.apply(rows.gauges(), *(rows.offline(name) for name in HOSTILE_NAMES))
    for text, parser in (
        (generate_latest(bench.registry).decode(), parse),
        (generate_openmetrics(bench.registry).decode(), parse_openmetrics),
    ):
        topics = {
            sample.labels["topic"]
            for family in parser(text)
            for sample in family.samples
            if sample.name == "kontrast_partition_offline_since_timestamp_seconds"
        }
        assert topics == set(map(label_value, HOSTILE_NAMES))
        assert len(topics) == len(HOSTILE_NAMES)
        assert all(topic.isprintable() and "<" not in topic for topic in topics)


def test_lag_falls_into_its_buckets(bench):
    for seconds in (-5.0, 0.1, 0.3, 1e9):
        bench.reading.lag("north", seconds, zxid=-1, at_seconds=1.7e9)
    assert bench.value("kontrast_end_to_end_lag_seconds_bucket", le="0.1") == 2
    assert bench.value("kontrast_end_to_end_lag_seconds_bucket", le="0.25") == 2
    assert bench.value("kontrast_end_to_end_lag_seconds_bucket", le="0.5") == 3
    assert bench.value("kontrast_end_to_end_lag_seconds_bucket", le="300.0") == 3
    assert bench.value("kontrast_end_to_end_lag_seconds_bucket", le="+Inf") == 4
    assert bench.value("kontrast_end_to_end_lag_seconds_count") == 4
    assert bench.value("kontrast_end_to_end_lag_seconds_sum") == pytest.approx(1e9 + 0.4)
    assert math.isinf(LAG_BUCKETS_SECONDS[-1])


def test_an_exporter_without_rows_says_only_that_it_runs(bench):
    assert about_clusters(bench) == set()
    assert bench.samples("kontrast_ready") == {}
    assert bench.samples("kontrast_source_up") == {(("source", ""),): 1}
    assert len(bench.samples("kontrast_bad_rows_total")) == len(FOLLOWED_OUTPUTS)


def test_the_controllers_reactions_are_a_histogram_by_kind_of_event_and_write(bench, rows):
    bench.apply(*rows.of_everything())
    first = {"event": "BrokerChange", "write": "first"}
    assert bench.value("kontrast_controller_reaction_seconds_bucket", le="0.025", **first) == 2
    assert bench.value("kontrast_controller_reaction_seconds_sum", **first) == 0.04
    last = {"event": "BrokerChange", "write": "last"}
    assert bench.value("kontrast_controller_reaction_seconds_bucket", le="0.1", **last) == 1
    assert bench.value("kontrast_controller_reaction_seconds_count", **last) == 2


def test_who_would_bring_a_partition_back_is_named_beside_it(bench, rows):
    never_created = rows.offline("orders", 2, isr=(), replicas=(4, 3), problem="no_live_replica_at_creation")
    bench.apply(*rows.of_everything(), rows.offline("orders", 1, isr=(2, 1)), never_created)
    assert bench.value("kontrast_partition_brought_back_by", topic="orders", partition="1", brokers="1,2") == 1
    assert bench.value("kontrast_partition_brought_back_by", topic="orders", partition="2", brokers="3,4") == 1
