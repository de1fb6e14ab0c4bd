"""Values of the watched ZooKeeper ensemble, from its newest description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from controller.contract.forwarder_status import Ensemble, ZooKeeperServer
from controller.contract.gauges_row import GaugesRow
from controller.view.ensemble import ZXID_COUNTER, ensemble_at, voters_in_sync
from dashboards.catalogue import zookeeper_metrics
from dashboards.catalogue.families import Sample, value_of
from dashboards.catalogue.metric import Metric
from dashboards.exporter.scrape import ReadyCluster

_Samples = Callable[[ReadyCluster, GaugesRow], Iterator[Sample]]


def _of_ensemble(read: Callable[[Ensemble], Iterator[Sample]]) -> _Samples:
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


def _up(server: ZooKeeperServer) -> float:
    return -1 if not server.mode and server.silent_ms < 0 else bool(server.mode)


def _modes(ensemble: Ensemble) -> Iterator[Sample]:
    for server in ensemble.servers:
        if server.mode:
            yield (server.address, server.mode), 1


def _refused(ensemble: Ensemble) -> Iterator[Sample]:
    for server in ensemble.servers:
        for word in dict.fromkeys(server.refused):
            yield (server.address, word), 1


def _large_znodes(ensemble: Ensemble) -> Iterator[Sample]:
    for znode in ensemble.large_znodes:
        yield (znode.path,), znode.size_bytes


def _zxid_left(_: ReadyCluster, gauges: GaugesRow) -> Iterator[Sample]:
    if gauges.zxid >= 0:
        yield (), ZXID_COUNTER - (gauges.zxid & ZXID_COUNTER)


ZOOKEEPER_SAMPLES: Mapping[Metric, _Samples] = MappingProxyType(
    {
        zookeeper_metrics.ZOOKEEPER_SERVER_UP: _by_server(_up),
        zookeeper_metrics.ZOOKEEPER_SERVER_MODE: _of_ensemble(_modes),
        zookeeper_metrics.ZOOKEEPER_REFUSED: _of_ensemble(_refused),
        zookeeper_metrics.ZOOKEEPER_VOTERS: _figure(lambda ensemble: ensemble.voters),
        zookeeper_metrics.ZOOKEEPER_VOTERS_IN_SYNC: _figure(voters_in_sync),
        zookeeper_metrics.ZOOKEEPER_ANSWER: _by_server(lambda server: server.answer_ms, 1_000),
        zookeeper_metrics.ZOOKEEPER_LATENCY: _by_server(lambda server: server.latency_ms, 1_000),
        zookeeper_metrics.ZOOKEEPER_FSYNC: _by_server(lambda server: server.fsync_ms, 1_000),
        zookeeper_metrics.ZOOKEEPER_OUTSTANDING: _by_server(lambda server: server.outstanding),
        zookeeper_metrics.ZOOKEEPER_CONNECTIONS: _by_server(lambda server: server.connections),
        zookeeper_metrics.ZOOKEEPER_ZNODES: _by_server(lambda server: server.znodes),
        zookeeper_metrics.ZOOKEEPER_DATA: _by_server(lambda server: server.data_bytes),
        zookeeper_metrics.ZOOKEEPER_ZXID_LEFT: _zxid_left,
        zookeeper_metrics.ZOOKEEPER_ZNODE_BYTES: _of_ensemble(_large_znodes),
        zookeeper_metrics.ZOOKEEPER_JUTE_MAXBUFFER: _figure(lambda ensemble: ensemble.jute_maxbuffer_bytes),
    }
)
