"""Summary of a cluster's report, with failovers, time without a controller, partition-minutes and elections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cli.printing.answers import time_of
from questions.report.cluster_report import ClusterReport, TopicAvailability
from questions.report.failovers import Failover
from wording.sentences import counted, minutes_of, plural, share

_NAMED: Final = 10


def summary_lines(report: ClusterReport) -> Iterator[str]:
    """Yield the summary, a few lines for each figure."""
    window = report.window
    if window.seen_from_ms is None:
        yield "summary: nothing was seen"
        return
    unseen = f", {window.unseen_seconds:.1f} s not seen" if window.unseen_seconds else ""
    span = f"{time_of(window.seen_from_ms)} to {time_of(window.seen_until_ms or 0)}"
    yield f"summary of {span}: {window.seen_seconds:.1f} s seen{unseen}"
    yield from figures(report)


def figures(report: ClusterReport) -> Iterator[str]:
    """Failovers, partition-minutes and elections, indented."""
    yield from _failovers(report)
    yield from _offline(report)
    elections = ", ".join(f"{kind} {count:,}" for kind, count in report.elections.items())
    total = sum(report.elections.values())
    yield f"  {total:,} leader {plural(total, 'election', 'elections')}{f': {elections}' if elections else ''}"


def _failovers(report: ClusterReport) -> Iterator[str]:
    failovers, total_seconds = report.failovers, report.without_controller_seconds
    ends = ":" if failovers else ""
    yield f"  {counted(len(failovers), 'failover')}, {total_seconds:.3f} s without a controller in all{ends}"
    yield from (f"    {_failover(failover)}" for failover in failovers[:_NAMED])
    if len(failovers) > _NAMED:
        yield f"    and {len(failovers) - _NAMED} more"


def _failover(failover: Failover) -> str:
    began = f"{time_of(failover.began_ms)}  broker {failover.from_broker} ->"
    if failover.without_controller_ms is None:
        return f"{began} none yet"
    took = f"{failover.without_controller_ms / 1000:.3f} s"
    return f"{began} broker {failover.to_broker}, epoch {failover.to_epoch}: {took} without a controller"


def _offline(report: ClusterReport) -> Iterator[str]:
    suffered = [topic for topic in report.topics if topic.unwritable_partition_minutes]
    offline, unwritable = minutes_of(report.offline_partition_minutes), minutes_of(report.unwritable_partition_minutes)
    said = f"offline {offline}, refusing acks=all {unwritable}, of {minutes_of(report.partition_minutes)}"
    yield f"  {said} partition-minutes{':' if suffered else ''}"
    yield from (f"    {_topic(topic)}" for topic in suffered[:_NAMED])
    if len(suffered) > _NAMED:
        yield f"    and {counted(len(suffered) - _NAMED, 'more topic')}"


def _topic(topic: TopicAvailability) -> str:
    return (
        f"{topic.topic}: offline {minutes_of(topic.offline_partition_minutes)} (online {share(topic.online)}), "
        f"refusing acks=all {minutes_of(topic.unwritable_partition_minutes)} (writable {share(topic.writable)})"
    )
