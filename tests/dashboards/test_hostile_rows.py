"""Rows with any field at any extreme, refused on reading or shown on pages that parse to their end."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from controller.contract.gauges_row import GaugesRow
from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import BeginningRow, PartitionRow
from controller.contract.outputs import BadRowError, OutputRow, decode_row, encode_row
from controller.contract.row import Row
from outputs.reading import FOLLOWED_OUTPUTS
from tests.dashboards.test_collector import Bench
from tests.extremes import any_change, as_json, changes
from tests.lanes import in_gate
from tests.rows import Rows

KINDS = tuple(kind for kind in OutputRow.__args__ if kind.output in FOLLOWED_OUTPUTS and kind is not BeginningRow)
EVERYTHING = Rows().of_everything()


def sample_of(kind: type) -> dict[str, Any]:
    """Return a row of this kind as JSON has it."""
    return json.loads(encode_row(next(row for row in reversed(EVERYTHING) if type(row) is kind)))


def shown(lines: Iterable[bytes]) -> int:
    """Read the lines as the exporter does, and parse every page to its end. Return the number of rows."""
    bench = Bench(partitions=10_000, brokers=10_000, alerts=10_000)
    read = 0
    for line in lines:
        with suppress(BadRowError):
            row = decode_row(line)
            read += 1
            bench.apply(row)
            if isinstance(row, Row) and not isinstance(row, GaugesRow):
                bench.apply(Rows().gauges(cluster=row.cluster))  # without them the cluster has no metrics
    for text, parser in (
        (generate_latest(bench.registry), parse),
        (generate_openmetrics(bench.registry), parse_openmetrics),
    ):
        for family in parser(text.decode()):
            series = [(sample.name, *sorted(sample.labels.items())) for sample in family.samples]
            assert len(series) == len(set(series)), "Prometheus refuses a page that has a series twice"
    return read


@pytest.mark.parametrize("kind", OutputRow.__args__, ids=lambda kind: kind.__name__)
def test_no_row_has_a_number_without_an_end(kind):
    base = sample_of(kind) if kind in KINDS else {}
    for name, changed in changes(kind, base):
        if str(10**400) in str(changed):
            with pytest.raises(BadRowError):
                decode_row(as_json({**changed, "kind": kind.__struct_config__.tag}))
            assert name


def with_extremes(kind: type) -> Iterator[bytes]:
    """Yield rows with each readable extreme of each field, one of every field at a time. Clusters come on their own."""
    base, read = sample_of(kind), defaultdict[str, list[dict[str, Any]]](list)
    tried = list(changes(kind, base))
    for name, changed in tried:
        with suppress(BadRowError):
            decode_row(as_json(changed))
            read[name].append(changed)
    clusters = [] if kind is JobRow else read.pop("cluster")
    yield from map(as_json, clusters)
    for number, extremes in enumerate(zip_longest(*read.values())):
        given = {name: changed for name, changed in zip(read, extremes, strict=True) if changed is not None}
        together = {name: value for name, value in base.items() if name not in given or name in given[name]}
        together |= {name: changed[name] for name, changed in given.items() if name in changed}
        own = {} if kind is JobRow else {"cluster": f"c-{number}"}
        try:
            decode_row(as_json(together))
            yield as_json({**together, **own})
        except BadRowError:  # these do not fit together
            yield from (
                as_json({**changed, **({"cluster": f"c-{number}-{name}"} if own else {})})
                for name, changed in given.items()
            )
    assert len(clusters) + sum(map(len, read.values())) > len(tried) / 4, "nearly all were refused: what was tried?"


QUICK_KINDS = [kind for kind in KINDS if kind not in {GaugesRow, PartitionRow}]


@pytest.mark.parametrize("kind", in_gate(*QUICK_KINDS, of=KINDS), ids=lambda kind: kind.__name__)
def test_each_field_at_each_extreme(kind):
    rows = list(with_extremes(kind))
    together = 1 if kind is JobRow else len(rows)  # of the job there is one row
    for first in range(0, len(rows), together):
        some = rows[first : first + together]
        try:
            assert shown(some) == len(some)
        except Exception as error:
            raise AssertionError(first_that_fails(some)) from error


def first_that_fails(rows: list[bytes]) -> str:
    for line in rows:
        try:
            shown([line])
        except Exception as error:
            return f"{error!r}: {line[:2000]!r}"
    return "only all together"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_fields_at_extremes(kind, data):
    rows = data.draw(st.lists(any_change(kind, sample_of(kind)), max_size=6))
    shown(map(as_json, rows))
