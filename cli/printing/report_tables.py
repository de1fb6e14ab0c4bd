"""A report as CSV tables in a file each."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from questions.report.cluster_report import (
    AlertsOfKind,
    BrokerFailures,
    ClusterReport,
    ReactionTime,
    ReportWindow,
    TopicAvailability,
)
from questions.report.failovers import Failover
from questions.report.report import Miss, Report, TeamAvailability

_CLUSTER_COLUMNS: Final = (
    *ReportWindow.__struct_fields__,
    *("without_controller_seconds", "partition_minutes", "offline_partition_minutes", "unwritable_partition_minutes"),
    *("agreement", "unreadable_lines"),
)
_TABLES: Final[Mapping[str, Sequence[str]]] = {
    "topics": TopicAvailability.__struct_fields__,
    "failovers": Failover.__struct_fields__,
    "elections": ("strategy", "count"),
    "reactions": ReactionTime.__struct_fields__,
    "brokers": BrokerFailures.__struct_fields__,
    "alerts": AlertsOfKind.__struct_fields__,
}


def write_tables(report: Report, directory: Path) -> None:
    """Write one file per table, each row with its cluster. Raise OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    clusters = [{"cluster": cluster.cluster, **_flat(cluster)} for cluster in report.clusters]
    _write(directory / "clusters.csv", ("cluster", *_CLUSTER_COLUMNS), clusters)
    for table, columns in _TABLES.items():
        rows = [{"cluster": cluster.cluster, **row} for cluster in report.clusters for row in _rows(cluster, table)]
        _write(directory / f"{table}.csv", ("cluster", *columns), rows)
    _write(directory / "misses.csv", Miss.__struct_fields__, map(msgspec.structs.asdict, report.misses))
    _write(directory / "teams.csv", TeamAvailability.__struct_fields__, map(msgspec.structs.asdict, report.teams))


def _flat(report: ClusterReport) -> dict[str, Any]:
    fields = msgspec.structs.asdict(report) | msgspec.structs.asdict(report.window)
    return {name: fields[name] for name in _CLUSTER_COLUMNS}


def _rows(report: ClusterReport, table: str) -> Sequence[Mapping[str, Any]]:
    if table == "elections":
        return [{"strategy": strategy, "count": count} for strategy, count in report.elections.items()]
    return [msgspec.to_builtins(row) for row in getattr(report, table)]


def _write(file: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)


def _inert(value: object) -> object:
    """Return the value so that no spreadsheet computes it, because a name in a znode may begin like a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
