"""A report for people, or as CSV tables in a file each."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.printing.summary_lines import available, figures
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
from wording.said import Said, line, marked
from wording.sentences import counted, minutes_of, share
from wording.times import duration, exact_moment

_NAMED: Final = 10

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


def report_lines(report: Report) -> Said:
    """Yield the objective first, then the teams by their importance, then the clusters by name."""
    if report.objective_percent is not None:
        yield from _objective(report)
    if report.teams:
        yield line("partition-minutes of each team's topics:")
        yield from (line(available(str(team), team), indent=2) for team in report.teams[:_NAMED])
    if len(report.teams) > _NAMED:
        yield line(f"and {counted(len(report.teams) - _NAMED, 'more team')}", indent=2)
    for cluster in report.clusters:
        if cluster.window.seen_from_ms is not None:
            yield from _cluster(cluster)


def _objective(report: Report) -> Said:
    topics = sum(len(cluster.topics) for cluster in report.clusters)
    missed = f"{len(report.misses)} of {counted(topics, 'topic')} missed the objective"
    yield line(f"{missed}: writable with acks=all {report.objective_percent:g} % of the time")
    for miss in report.misses[:_NAMED]:
        spent = f"{minutes_of(miss.unwritable_partition_minutes)} partition-minutes unwritable"
        allowed = f"{minutes_of(miss.allowed_partition_minutes)} allowed"
        yield line(f"{miss.cluster}  {miss.topic}: writable {share(miss.writable)}: {spent}, {allowed}", indent=2)
    if len(report.misses) > _NAMED:
        yield line(f"and {counted(len(report.misses) - _NAMED, 'more topic')}", indent=2)


def _cluster(report: ClusterReport) -> Said:
    window = report.window
    span = f"{exact_moment(window.seen_from_ms or 0)} to {exact_moment(window.seen_until_ms or 0)}"
    yield line(f"{report.cluster}: {span}, {window.seen_seconds / 3600:.2f} h seen")
    yield from (line(said) for said in figures(report))
    if report.reactions:
        yield line("the controller's reactions, from an event's cause to its last write:", indent=2)
        yield from (line(_reaction(time), indent=4) for time in report.reactions if time.to == "last_write")
    yield line(f"{counted(len(report.brokers), 'broker')} left{':' if report.brokers else ''}", indent=2)
    yield from (line(_broker(broker), indent=4) for broker in report.brokers[:_NAMED])
    if len(report.brokers) > _NAMED:
        yield line(f"and {len(report.brokers) - _NAMED} more", indent=4)
    yield line(f"{counted(sum(kind.count for kind in report.alerts), 'alert')}{':' if report.alerts else ''}", indent=2)
    for kind in report.alerts:
        still = f", {kind.still_open} still open" if kind.still_open else ""
        said = f" {kind.alert}: {kind.count}, open {duration(kind.total_seconds * 1_000)} in all"
        yield line(
            marked(kind.severity.value),
            f"{said}, {duration(kind.longest_seconds * 1_000)} the longest{still}",
            indent=4,
        )


def _reaction(time: ReactionTime) -> str:
    bounds = ((50, time.p50_at_most_ms), (95, time.p95_at_most_ms), (99, time.p99_at_most_ms))
    said = ", ".join(f"p{percent} {_bound(at_most_ms)}" for percent, at_most_ms in bounds)
    return f"{time.event}: {time.count}, mean {time.mean_ms:.0f} ms, {said}"


def _bound(at_most_ms: int | None) -> str:
    return "above 60,000 ms" if at_most_ms is None else f"at most {at_most_ms:,} ms"


def _broker(broker: BrokerFailures) -> str:
    kinds = (("crash", "crashes", broker.crashes), ("bounce", "bounces", broker.bounces))
    said = ", ".join(f"{count} {one if count == 1 else many}" for one, many, count in kinds)
    shutdowns = counted(broker.shutdowns, "clean shutdown")
    said += f", {counted(broker.unknown, 'departure')} of unknown kind" if broker.unknown else ""
    return f"broker {broker.broker}: {said}, {shutdowns}, away {minutes_of(broker.away_minutes)} minutes"


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
