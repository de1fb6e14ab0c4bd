"""The report of many clusters against an objective, as a platform team takes it to its review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from questions.report.cluster_report import ClusterReport, TopicAvailability
from wording.sentences import counted


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """Topic that missed the objective for acks=all, with its excess."""

    cluster: str
    topic: str
    writable: float
    unwritable_partition_minutes: float
    allowed_partition_minutes: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Reports of clusters by name, and the topics that missed the objective, the worst first."""

    objective_percent: float | None
    clusters: tuple[ClusterReport, ...]
    misses: tuple[Miss, ...]


def report_against(objective_percent: float | None, clusters: Sequence[ClusterReport]) -> Report:
    """Return the report of these clusters. Without an objective no topic misses it."""
    missed = () if objective_percent is None else _misses(objective_percent, clusters)
    worst_first = sorted(missed, key=lambda miss: (miss.writable, miss.cluster, miss.topic))
    return Report(objective_percent=objective_percent, clusters=tuple(clusters), misses=tuple(worst_first))


def allowed_partition_minutes(objective_percent: float, topic: TopicAvailability) -> float:
    """Return partition-minutes that the objective lets a topic reject acks=all."""
    return topic.partition_minutes * (100 - objective_percent) / 100


def _misses(objective_percent: float, clusters: Iterable[ClusterReport]) -> Iterator[Miss]:
    for report in clusters:
        for topic in report.topics:
            allowed = allowed_partition_minutes(objective_percent, topic)
            if topic.unwritable_partition_minutes > allowed:
                yield Miss(
                    cluster=report.cluster,
                    topic=topic.topic,
                    writable=topic.writable,
                    unwritable_partition_minutes=topic.unwritable_partition_minutes,
                    allowed_partition_minutes=allowed,
                )


def reasons_to_doubt(report: ClusterReport) -> Iterator[str]:
    """Return reasons to doubt a cluster's figures. Unseen time is not online time."""
    window = report.window
    named = f"cluster {report.cluster}" if report.cluster else "lines that name no cluster"
    yield from (f"{named}: {note}" for note in report.notes)
    if report.unreadable_lines:
        yield f"{named}: {counted(report.unreadable_lines, 'line')} could not be read and left out"
    if report.failed or not report.cluster:
        return
    if window.seen_from_ms is None:
        yield f"{named}: Kontrast has no data of the window, so there are no figures"
    elif window.unseen_seconds:
        share = window.unseen_seconds / (window.seen_seconds + window.unseen_seconds)
        yield (
            f"{named}: {share:.1%} of the window is missing from the data ({window.unseen_seconds / 3600:.1f} of "
            f"{(window.seen_seconds + window.unseen_seconds) / 3600:.1f} h). The figures cover the rest"
        )
