"""Collectors of the metrics of the probes of brokers and of quorums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from dashboards.catalogue import migration_metrics, pipeline_metrics
from dashboards.catalogue.families import Sample, TableCollector, value_of
from dashboards.catalogue.metric import Metric
from dashboards.probe.prober import ProbedBroker, Prober
from dashboards.probe.quorum import QuorumSeen


def _differing(broker: ProbedBroker) -> Iterator[Sample]:
    if broker.findings is not None:
        for difference, count in broker.findings.counts().items():
            yield (difference.value,), count


# The samples of each metric for one broker.
_OF_BROKERS: Mapping[Metric, Callable[[ProbedBroker], Iterable[Sample]]] = MappingProxyType(
    {
        pipeline_metrics.BROKER_VIEW_DIFFERING: _differing,
        pipeline_metrics.BROKER_VIEW_SECONDS: value_of(lambda broker: broker.seconds),
        pipeline_metrics.BROKER_VIEW_PROBES: lambda broker: [
            (("answered",), broker.answers),
            (("failed",), broker.failures),
        ],
    }
)


def broker_view_collector(prober: Prober) -> TableCollector[ProbedBroker]:
    """Return a collector of the results of the probes so far."""
    return TableCollector(
        _OF_BROKERS,
        lambda: (
            ((probe.cluster, str(broker.broker)), broker) for probe in prober.probes() for broker in probe.brokers()
        ),
    )


# The samples of each metric for one quorum.
_OF_QUORUMS: Mapping[Metric, Callable[[QuorumSeen], Iterable[Sample]]] = MappingProxyType(
    {
        migration_metrics.MIGRATION_NODES: lambda seen: [
            ((mode,), count) for mode, count in sorted(seen.modes.items())
        ],
        migration_metrics.MIGRATION_HIGH_WATERMARK: value_of(
            lambda seen: None if seen.quorum is None else seen.quorum.high_watermark
        ),
        migration_metrics.MIGRATION_OFFSET_LAG: value_of(lambda seen: seen.offset_lag),
        migration_metrics.MIGRATION_LEADER_EPOCH: value_of(
            lambda seen: None if seen.quorum is None else seen.quorum.leader_epoch
        ),
        migration_metrics.MIGRATION_DIFFERING: lambda seen: [
            ((subject.value,), count) for subject, count in (seen.differing or {}).items()
        ],
    }
)


def quorum_collector(prober: Prober) -> TableCollector[QuorumSeen]:
    """Return a collector of the quorums' answers in the newest round."""
    return TableCollector(
        _OF_QUORUMS,
        # A probe's thread may set `seen` meanwhile.
        lambda: (((probe.cluster,), seen) for probe in prober.quorums() for seen in (probe.seen,) if seen is not None),
    )
