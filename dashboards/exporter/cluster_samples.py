"""Values of a ready cluster's metrics: ensemble, controller, brokers, topics, partitions, alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

from controller.contract.forwarder_status import Ensemble, ZooKeeperServer
from controller.contract.gauges_row import INFERENCES, INFERENCES_BY_WRITE, GaugesRow, Writes
from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import MigrationRow, PartitionRow
from controller.contract.records import RecordKind
from controller.rules.election import Strategy
from controller.rules.migration_phases import LED_BY_KRAFT, MigrationPhase
from controller.rules.states import PartitionState, ReplicaState
from controller.view.ensemble import ZXID_COUNTER, ensemble_at, voters_in_sync
from controller.view.migration import DONE, LOSES, NO, RAISE_EPOCH, YES
from dashboards.catalogue import cluster_metrics, migration_metrics, pipeline_metrics
from dashboards.catalogue.families import Sample, value_of
from dashboards.catalogue.metric import Metric
from dashboards.exporter.scrape import DetailLimits, ReadyCluster
from questions.cluster_rows import ClusterSnapshot, problem_since_ms

_Samples = Callable[[ReadyCluster, GaugesRow], Iterable[Sample]]

_PHASES = tuple(phase.value for phase in MigrationPhase)
_LED_BY_KRAFT = frozenset(phase.value for phase in LED_BY_KRAFT)
_ROLLBACK_VERDICTS = (YES, RAISE_EPOCH, LOSES, NO, DONE)
_SAFE = frozenset({YES, DONE})


def _of_row(read: Callable[[MigrationRow, DetailLimits], Iterable[Sample]]) -> _Samples:
    def samples(ready: ReadyCluster, _: GaugesRow) -> Iterator[Sample]:
        if ready.snapshot.migration is not None:
            yield from read(ready.snapshot.migration, ready.limits)

    return samples


def _migration_figure(read: Callable[[MigrationRow], float | None]) -> _Samples:
    samples = value_of(read)
    return _of_row(lambda row, _: samples(row))


def _one_of(known: tuple[str, ...], read: Callable[[MigrationRow], str]) -> _Samples:
    """Return 1 for the row's word and 0 for every other known word. An unknown word of the row is added."""

    def samples(row: MigrationRow, _: DetailLimits) -> Iterator[Sample]:
        now = read(row)
        for word in dict.fromkeys((*known, now)):
            yield (word,), word == now

    return _of_row(samples)


def _pulse_age(row: MigrationRow) -> float | None:
    """Return the pulse's age at the row's own time, so that a late pipeline does not look like a silent quorum."""
    if row.pulse_ms is None or row.phase not in _LED_BY_KRAFT:
        return None
    return max(0, row.time_ms - row.pulse_ms) / 1000


def _by_mode(row: MigrationRow) -> Mapping[str, tuple[BrokerId, ...]]:
    return {"zookeeper": row.zookeeper_brokers, "kraft": row.kraft_brokers, "missing": row.missing_brokers}


def _brokers(row: MigrationRow, limits: DetailLimits) -> Iterator[Sample]:
    named = sorted({(broker, mode) for mode, brokers in _by_mode(row).items() for broker in brokers})
    for broker, mode in named[: limits.brokers]:
        yield (str(broker), mode), 1


def _of_ensemble(read: Callable[[Ensemble], Iterable[Sample]]) -> _Samples:
    def samples(_: ReadyCluster, gauges: GaugesRow) -> Iterator[Sample]:
        ensemble = ensemble_at(gauges.ensemble, gauges.time_ms)
        if ensemble is not None:
            yield from read(ensemble)

    return samples


def _figure(read: Callable[[Ensemble], float]) -> _Samples:
    return _of_ensemble(value_of(read))


def _by_server(read: Callable[[ZooKeeperServer], float], per: int = 1) -> _Samples:
    """Return a sample for each server that reported the number."""

    def samples(ensemble: Ensemble) -> Iterator[Sample]:
        for server in ensemble.servers:
            value = read(server)
            if value >= 0:
                yield (server.address,), value / per

    return _of_ensemble(samples)


def _gauge(read: Callable[[GaugesRow], float | None]) -> _Samples:
    samples = value_of(read)
    return lambda _, gauges: samples(gauges)


def _of_zxid(part: Callable[[int], int]) -> _Samples:
    return _gauge(lambda gauges: part(gauges.zxid) if gauges.zxid >= 0 else None)


# Kafka's name of a state in the rows, and the label value that stands for it.
_STATE_LABELS: Mapping[str, str] = MappingProxyType(
    {
        state.word: state.name.lower().replace("non_existent", "nonexistent")
        for states in (PartitionState, ReplicaState)
        for state in states
    }
)

_VERDICTS = Writes.__struct_fields__
_ELECTIONS = (*(strategy.value for strategy in Strategy), f"Unclean{Strategy.OFFLINE.value}")


def _of_cluster(read: Callable[[ReadyCluster], float | None]) -> _Samples:
    samples = value_of(read)
    return lambda ready, _: samples(ready)


def _counts(read: Callable[[GaugesRow], Mapping[str, int]], *known: str) -> _Samples:
    """Return one sample per key. Known keys always have one, because `rate()` ignores a counter's first value."""

    def samples(_: ReadyCluster, gauges: GaugesRow) -> Iterator[Sample]:
        for key, count in sorted({**dict.fromkeys(known, 0), **read(gauges)}.items()):
            yield (key,), count

    return samples


def _by_broker(read: Callable[[GaugesRow], Mapping[BrokerId, int]]) -> _Samples:
    def samples(ready: ReadyCluster, gauges: GaugesRow) -> Iterator[Sample]:
        counts = read(gauges)
        for broker in ready.brokers:
            yield (str(broker),), counts.get(broker, 0)

    return samples


def _by_state(counts: Mapping[str, int], states: type[PartitionState] | type[ReplicaState]) -> dict[str, int]:
    """Return a count for every state, and for words in the row that are no known state."""
    complete = {**dict.fromkeys((state.word for state in states), 0), **counts}
    return {_STATE_LABELS.get(word, word): count for word, count in complete.items()}


def _broker_registered(ready: ReadyCluster, _: GaugesRow) -> Iterator[Sample]:
    registered = {row.broker for row in ready.snapshot.brokers if row.registered}
    for broker in ready.brokers:
        yield (str(broker),), broker in registered


def _agreement(_: ReadyCluster, gauges: GaugesRow) -> Iterator[Sample]:
    for window, agreement in (("1h", gauges.agreement_of_last_hour), ("start", gauges.agreement)):
        if agreement is not None:
            yield (window,), agreement


def _maintenance_until(_: ReadyCluster, gauges: GaugesRow) -> Iterator[Sample]:
    ends_ms: dict[str, int] = {}
    for window in gauges.maintenance:
        for broker in map(str, window.brokers) if window.brokers else ("all",):
            ends_ms[broker] = max(window.until_ms, ends_ms.get(broker, 0))
    for broker, until_ms in sorted(ends_ms.items()):
        yield (broker,), until_ms / 1000


_Partitions = Callable[[ClusterSnapshot], Sequence[PartitionRow]]
_UNUSABLE: _Partitions = attrgetter("unusable")
_REFUSING: _Partitions = attrgetter("under_min_isr")


def _of_partitions(partitions: _Partitions, read: Callable[[PartitionRow], Sample]) -> _Samples:
    """Return a sample for each of these partitions, as many as may be named. `read` gives labels after the name."""

    def samples(ready: ReadyCluster, _: GaugesRow) -> Iterator[Sample]:
        for row in partitions(ready.snapshot)[: ready.limits.partitions]:
            labels, value = read(row)
            yield (row.topic, str(row.partition), *labels), value

    return samples


def _dropped(partitions: _Partitions) -> _Samples:
    return _of_cluster(lambda ready: max(0, len(partitions(ready.snapshot)) - ready.limits.partitions))


def _joined(brokers: Iterable[BrokerId]) -> str:
    return ",".join(map(str, sorted(brokers)))


# Read as "KEY has these samples for a ready cluster".
CLUSTER_SAMPLES: Mapping[Metric, _Samples] = MappingProxyType(
    {
        cluster_metrics.CONTROLLER_INFO: lambda _, gauges: (
            [((str(gauges.controller),), 1)] if gauges.controller >= 0 else []
        ),
        cluster_metrics.CONTROLLER_ACTIVE: _gauge(lambda gauges: gauges.controller >= 0),
        cluster_metrics.CONTROLLER_EPOCH: _gauge(lambda gauges: gauges.controller_epoch),
        cluster_metrics.CONTROLLER_SINCE: _of_cluster(
            lambda ready: None if ready.snapshot.controller is None else ready.snapshot.controller.since_ms / 1000
        ),
        cluster_metrics.CONTROLLER_CHANGES: _gauge(lambda gauges: gauges.controller_changes),
        cluster_metrics.PENDING_WRITES: _gauge(lambda gauges: gauges.pending_writes),
        cluster_metrics.BROKERS: _gauge(lambda gauges: gauges.active_brokers),
        cluster_metrics.BROKER_REGISTERED: _broker_registered,
        cluster_metrics.BROKER_LEADERS: _by_broker(lambda gauges: gauges.leaders_by_broker),
        cluster_metrics.BROKER_REPLICAS: _by_broker(lambda gauges: gauges.replicas_by_broker),
        cluster_metrics.BROKER_UNDER_REPLICATED: _by_broker(lambda gauges: gauges.under_replicated_by_broker),
        cluster_metrics.BROKER_UNDER_MIN_ISR: _by_broker(lambda gauges: gauges.under_min_isr_by_broker),
        cluster_metrics.BROKER_AT_MIN_ISR: _by_broker(lambda gauges: gauges.at_min_isr_by_broker),
        cluster_metrics.BROKER_SOLE_IN_SYNC: _by_broker(lambda gauges: gauges.sole_in_sync_by_broker),
        cluster_metrics.REASSIGNING: _gauge(lambda gauges: gauges.reassigning_partitions),
        cluster_metrics.BROKER_DETAIL_DROPPED: _of_cluster(lambda ready: ready.brokers_dropped),
        cluster_metrics.TOPICS: _gauge(lambda gauges: gauges.topics),
        cluster_metrics.PARTITIONS: _counts(lambda gauges: _by_state(gauges.partitions_by_state, PartitionState)),
        cluster_metrics.REPLICAS: _counts(lambda gauges: _by_state(gauges.replicas_by_state, ReplicaState)),
        cluster_metrics.OFFLINE: _gauge(lambda gauges: gauges.offline_partitions),
        cluster_metrics.LEADERLESS: _gauge(lambda gauges: gauges.leaderless_partitions),
        cluster_metrics.UNDER_REPLICATED: _gauge(lambda gauges: gauges.under_replicated_partitions),
        cluster_metrics.UNDER_MIN_ISR: _gauge(lambda gauges: gauges.under_min_isr_partitions),
        cluster_metrics.AT_MIN_ISR: _gauge(lambda gauges: gauges.at_min_isr_partitions),
        cluster_metrics.PREFERRED_IMBALANCE: _gauge(lambda gauges: gauges.preferred_replica_imbalance),
        cluster_metrics.TOPICS_TO_DELETE: _gauge(lambda gauges: gauges.topics_to_delete),
        cluster_metrics.REPLICAS_TO_DELETE: _gauge(lambda gauges: gauges.replicas_to_delete),
        cluster_metrics.TOPICS_INELIGIBLE: _gauge(lambda gauges: gauges.topics_ineligible_to_delete),
        cluster_metrics.REPLICAS_INELIGIBLE: _gauge(lambda gauges: gauges.replicas_ineligible_to_delete),
        pipeline_metrics.RECORDS: _counts(lambda gauges: gauges.records, *(kind.value for kind in RecordKind)),
        cluster_metrics.ELECTIONS: _counts(lambda gauges: gauges.elections, *_ELECTIONS),
        cluster_metrics.ISR_CHANGES: _counts(lambda gauges: gauges.isr_changes, "shrink", "expand"),
        pipeline_metrics.REFUSED: _gauge(lambda gauges: gauges.refused),
        cluster_metrics.DIVERGENCES: _counts(lambda gauges: gauges.divergences),
        cluster_metrics.WRITES: _counts(lambda gauges: gauges.writes, *_VERDICTS),
        cluster_metrics.INFERRED_WRITES: _counts(lambda gauges: gauges.inferences, *INFERENCES_BY_WRITE),
        cluster_metrics.INFERRED_EVENTS: _counts(lambda gauges: gauges.inferred_events, *INFERENCES),
        cluster_metrics.AGREEMENT: _agreement,
        cluster_metrics.ALERTS_OPEN: lambda ready, _: sorted(ready.snapshot.alert_counts.items()),
        cluster_metrics.MAINTENANCE_UNTIL: _maintenance_until,
        cluster_metrics.OFFLINE_SINCE: _of_partitions(
            _UNUSABLE, lambda row: ((str(row.problem),), problem_since_ms(row) / 1000)
        ),
        # A partition without a first leader needs any of its replicas.
        cluster_metrics.BROUGHT_BACK_BY: _of_partitions(
            _UNUSABLE, lambda row: ((_joined(row.isr or row.replicas),), 1)
        ),
        cluster_metrics.DETAIL_DROPPED: _dropped(_UNUSABLE),
        cluster_metrics.UNDER_MIN_ISR_SINCE: _of_partitions(_REFUSING, lambda row: ((), problem_since_ms(row) / 1000)),
        cluster_metrics.IN_SYNC_LACKING: _of_partitions(
            _REFUSING, lambda row: ((_joined(row.in_sync_candidates),), row.in_sync_lacking)
        ),
        cluster_metrics.UNDER_MIN_ISR_DROPPED: _dropped(_REFUSING),
        migration_metrics.MIGRATION_PHASE: _one_of(_PHASES, lambda row: row.phase),
        migration_metrics.MIGRATION_PHASE_SINCE: _migration_figure(lambda row: row.since_ms / 1000),
        migration_metrics.MIGRATION_PULSE_AGE: _migration_figure(_pulse_age),
        migration_metrics.MIGRATION_OFFSET: _migration_figure(lambda row: row.offset),
        migration_metrics.MIGRATION_ROLLBACK_SAFE: _migration_figure(lambda row: row.rollback in _SAFE),
        migration_metrics.MIGRATION_ROLLBACK: _one_of(_ROLLBACK_VERDICTS, lambda row: row.rollback),
        migration_metrics.MIGRATION_ROLLBACK_EPOCH: _migration_figure(lambda row: row.rollback_epoch),
        migration_metrics.MIGRATION_HIGHEST_EPOCH: _migration_figure(lambda row: row.highest_state_epoch),
        migration_metrics.MIGRATION_NEVER_ELECTED: _migration_figure(lambda row: row.never_elected_partitions),
        migration_metrics.MIGRATION_BROKERS: _of_row(
            lambda row, _: [((mode,), len(set(brokers))) for mode, brokers in _by_mode(row).items()]
        ),
        migration_metrics.MIGRATION_BROKER: _of_row(_brokers),
        migration_metrics.MIGRATION_LEFTOVER: _of_row(
            lambda row, limits: [((each,), 1) for each in tuple(dict.fromkeys(row.leftovers))[: limits.partitions]]
        ),
        migration_metrics.MIGRATION_ADVICE: _of_row(lambda row, _: [((row.rollback_sentence, row.next_step), 1)]),
        cluster_metrics.ZOOKEEPER_SERVER_UP: _by_server(
            lambda server: -1 if not server.mode and server.silent_ms < 0 else bool(server.mode)
        ),
        cluster_metrics.ZOOKEEPER_SERVER_MODE: _of_ensemble(
            lambda ensemble: [((server.address, server.mode), 1) for server in ensemble.servers if server.mode]
        ),
        cluster_metrics.ZOOKEEPER_REFUSED: _of_ensemble(
            lambda ensemble: [
                ((server.address, word), 1) for server in ensemble.servers for word in dict.fromkeys(server.refused)
            ]
        ),
        cluster_metrics.ZOOKEEPER_VOTERS: _figure(lambda ensemble: ensemble.voters),
        cluster_metrics.ZOOKEEPER_VOTERS_IN_SYNC: _figure(voters_in_sync),
        cluster_metrics.ZOOKEEPER_ANSWER: _by_server(lambda server: server.answer_ms, 1_000),
        cluster_metrics.ZOOKEEPER_LATENCY: _by_server(lambda server: server.latency_ms, 1_000),
        cluster_metrics.ZOOKEEPER_FSYNC: _by_server(lambda server: server.fsync_ms, 1_000),
        cluster_metrics.ZOOKEEPER_OUTSTANDING: _by_server(lambda server: server.outstanding),
        cluster_metrics.ZOOKEEPER_CONNECTIONS: _by_server(lambda server: server.connections),
        cluster_metrics.ZOOKEEPER_ZNODES: _by_server(lambda server: server.znodes),
        cluster_metrics.ZOOKEEPER_DATA: _by_server(lambda server: server.data_bytes),
        cluster_metrics.ZOOKEEPER_ZXID_LEFT: _of_zxid(lambda zxid: ZXID_COUNTER - (zxid & ZXID_COUNTER)),
        cluster_metrics.ZOOKEEPER_ZNODE_BYTES: _of_ensemble(
            lambda ensemble: [((znode.path,), znode.size_bytes) for znode in ensemble.large_znodes]
        ),
        cluster_metrics.ZOOKEEPER_JUTE_MAXBUFFER: _figure(lambda ensemble: ensemble.jute_maxbuffer_bytes),
        pipeline_metrics.ZXID_EPOCH: _of_zxid(lambda zxid: zxid >> 32),
        pipeline_metrics.ZXID_SEQUENCE: _of_zxid(lambda zxid: zxid & 0xFFFFFFFF),
    }
)
