"""Values of a cluster's migration to KRaft, from its row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import MigrationRow
from controller.rules.migration_phases import LED_BY_KRAFT, MigrationPhase
from controller.view.migration import DONE, LOSES, NO, RAISE_EPOCH, YES
from dashboards.catalogue import migration_metrics
from dashboards.catalogue.families import Sample, value_of
from dashboards.catalogue.metric import Metric
from dashboards.exporter.scrape import DetailLimits, ReadyCluster

_Read = Callable[[MigrationRow, DetailLimits], Iterator[Sample]]

_PHASES = tuple(phase.value for phase in MigrationPhase)
_LED_BY_KRAFT = frozenset(phase.value for phase in LED_BY_KRAFT)
_VERDICTS = (YES, RAISE_EPOCH, LOSES, NO, DONE)
_SAFE = frozenset({YES, DONE})


def _of_row(read: _Read) -> Callable[[ReadyCluster, GaugesRow], Iterator[Sample]]:
    def samples(ready: ReadyCluster, _: GaugesRow) -> Iterator[Sample]:
        if ready.snapshot.migration is not None:
            yield from read(ready.snapshot.migration, ready.limits)

    return samples


def _figure(read: Callable[[MigrationRow], float | None]) -> Callable[[ReadyCluster, GaugesRow], Iterator[Sample]]:
    samples = value_of(read)
    return _of_row(lambda row, _: samples(row))


def _one_of(
    known: tuple[str, ...], read: Callable[[MigrationRow], str]
) -> Callable[[ReadyCluster, GaugesRow], Iterator[Sample]]:
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


def _broker_counts(row: MigrationRow, _: DetailLimits) -> Iterator[Sample]:
    for mode, brokers in _by_mode(row).items():
        yield (mode,), len(set(brokers))


def _brokers(row: MigrationRow, limits: DetailLimits) -> Iterator[Sample]:
    named = sorted({(broker, mode) for mode, brokers in _by_mode(row).items() for broker in brokers})
    for broker, mode in named[: limits.brokers]:
        yield (str(broker), mode), 1


def _leftovers(row: MigrationRow, limits: DetailLimits) -> Iterator[Sample]:
    for leftover in tuple(dict.fromkeys(row.leftovers))[: limits.partitions]:
        yield (leftover,), 1


def _advice(row: MigrationRow, _: DetailLimits) -> Iterator[Sample]:
    yield (row.rollback_sentence, row.next_step), 1


# The samples of each metric for a ready cluster.
MIGRATION_SAMPLES: Mapping[Metric, Callable[[ReadyCluster, GaugesRow], Iterator[Sample]]] = MappingProxyType(
    {
        migration_metrics.MIGRATION_PHASE: _one_of(_PHASES, lambda row: row.phase),
        migration_metrics.MIGRATION_PHASE_SINCE: _figure(lambda row: row.since_ms / 1000),
        migration_metrics.MIGRATION_PULSE_AGE: _figure(_pulse_age),
        migration_metrics.MIGRATION_OFFSET: _figure(lambda row: row.offset),
        migration_metrics.MIGRATION_ROLLBACK_SAFE: _figure(lambda row: row.rollback in _SAFE),
        migration_metrics.MIGRATION_ROLLBACK: _one_of(_VERDICTS, lambda row: row.rollback),
        migration_metrics.MIGRATION_ROLLBACK_EPOCH: _figure(lambda row: row.rollback_epoch),
        migration_metrics.MIGRATION_HIGHEST_EPOCH: _figure(lambda row: row.highest_state_epoch),
        migration_metrics.MIGRATION_NEVER_ELECTED: _figure(lambda row: row.never_elected_partitions),
        migration_metrics.MIGRATION_BROKERS: _of_row(_broker_counts),
        migration_metrics.MIGRATION_BROKER: _of_row(_brokers),
        migration_metrics.MIGRATION_LEFTOVER: _of_row(_leftovers),
        migration_metrics.MIGRATION_ADVICE: _of_row(_advice),
    }
)
