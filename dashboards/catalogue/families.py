"""Metrics of the catalogue with their samples in prometheus-client's form, one by one or as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric as Family,
)
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from dashboards.catalogue.metric import Metric, MetricType
from transport.forwarding import Lag
from transport.printable import label_value

_Source = TypeVar("_Source")

Sample = tuple[tuple[str, ...], float]  # label values in the catalogue's order, and the value


def family(metric: Metric, samples: Iterable[Sample]) -> Family:
    """Return a gauge, counter or info with these samples, if any."""
    if metric.type is MetricType.INFO:
        info = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=())
        for values, _ in samples:
            info.add_metric((), dict(zip(metric.labels, map(label_value, values), strict=True)))
        return info
    kind = CounterMetricFamily if metric.type is MetricType.COUNTER else GaugeMetricFamily
    built = kind(metric.name, metric.help, labels=metric.labels, unit=metric.unit)
    for values, value in samples:
        built.add_metric([*map(label_value, values)], float(value))
    return built


def lag_family(metric: Metric, lags: Mapping[tuple[str, ...], Lag]) -> Family:
    """Return a histogram for each label values. In OpenMetrics each bucket has an exemplar."""
    # prometheus-client's Histogram counts by itself, but these counts come ready from rows and forwarders.
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels, unit=metric.unit)
    for labels, lag in sorted(lags.items()):
        reached = 0
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        for bound, count, example in zip(lag.bounds_seconds, lag.counts, lag.examples, strict=True):
            reached += count
            bucket = (floatToGoString(bound), reached)  # type: ignore[no-untyped-call]
            if example is not None:
                shown = Exemplar({"zxid": f"{example.zxid:#x}"}, example.lag_seconds, example.at_seconds)
            buckets.append(bucket if example is None else (*bucket, shown))
        family.add_metric(labels, buckets, lag.sum_seconds)
    return family


@dataclass(frozen=True, slots=True, eq=False)  # a registry keeps collectors as keys
class TableCollector(Collector, Generic[_Source]):
    """Collector of a table of samples. At each scrape, `sources` returns the sources with their first labels."""

    _table: Mapping[Metric, Callable[[_Source], Iterable[Sample]]]
    _sources: Callable[[], Iterable[tuple[tuple[str, ...], _Source]]]

    def collect(self) -> Iterator[Family]:
        """Yield every family of the table, in its order."""
        sources = tuple(self._sources())
        for metric, read in self._table.items():
            samples = (((*first, *rest), value) for first, source in sources for rest, value in read(source))
            yield family(metric, samples)


def value_of(read: Callable[[_Source], float | None]) -> Callable[[_Source], Iterator[Sample]]:
    """Return a reader that yields the source's value without further labels, and no sample if the value is None."""

    def samples(source: _Source) -> Iterator[Sample]:
        value = read(source)
        if value is not None:
            yield (), value

    return samples
