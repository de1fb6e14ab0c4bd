"""Summary of a cluster's report, with failovers, time without a controller, partition-minutes and elections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from questions.report.cluster_report import ClusterReport, TopicAvailability
from questions.report.failovers import Failover
from questions.report.report import TeamAvailability
from wording.sentences import counted, minutes_of, share
from wording.times import duration, exact_moment

_NAMED: Final = 10


def summary_lines(report: ClusterReport) -> Iterator[str]:
    """Yield the summary, a few lines for each figure."""
    window = report.window
    if window.seen_from_ms is None:
        yield "summary: nothing was seen"
        return
    unseen = f", {duration(window.unseen_seconds * 1_000)} not seen" if window.unseen_seconds else ""
    span = f"{exact_moment(window.seen_from_ms)} to {exact_moment(window.seen_until_ms or 0)}"
    yield f"summary of {span}: {duration(window.seen_seconds * 1_000)} seen{unseen}"
    yield from figures(report)


def figures(report: ClusterReport) -> Iterator[str]:
    """Yield lines on failovers, partition-minutes and elections, indented."""
    yield from _failovers(report)
    yield from _offline(report)
    elections = ", ".join(f"{kind} {count:,}" for kind, count in report.elections.items())
    total = sum(report.elections.values())
    yield f"  {counted(total, 'leader election')}{f': {elections}' if elections else ''}"


def _failovers(report: ClusterReport) -> Iterator[str]:
    failovers, total = report.failovers, duration(report.without_controller_seconds * 1_000)
    ends = ":" if failovers else ""
    yield f"  {counted(len(failovers), 'failover')}, {total} without a controller in all{ends}"
    yield from (f"    {_failover(failover)}" for failover in failovers[:_NAMED])
    if len(failovers) > _NAMED:
        yield f"    and {len(failovers) - _NAMED} more"


def _failover(failover: Failover) -> str:
    began = f"{exact_moment(failover.began_ms)}  broker {failover.from_broker} ->"
    if failover.without_controller_ms is None:
        return f"{began} none yet"
    took = duration(failover.without_controller_ms)
    return f"{began} broker {failover.to_broker}, epoch {failover.to_epoch}: {took} without a controller"


def _offline(report: ClusterReport) -> Iterator[str]:
    suffered = [topic for topic in report.topics if topic.unwritable_partition_minutes]
    offline, unwritable = minutes_of(report.offline_partition_minutes), minutes_of(report.unwritable_partition_minutes)
    said = f"offline {offline}, rejecting acks=all {unwritable}, of {minutes_of(report.partition_minutes)}"
    yield f"  {said} partition-minutes{':' if suffered else ''}"
    yield from (f"    {available(topic.topic, topic)}" for topic in suffered[:_NAMED])
    if len(suffered) > _NAMED:
        yield f"    and {counted(len(suffered) - _NAMED, 'more topic')}"


def available(name: str, found: TopicAvailability | TeamAvailability) -> str:
    """Return the figures of a topic or of a team's topics in half a sentence."""
    return (
        f"{name}: offline {minutes_of(found.offline_partition_minutes)} (online {share(found.online)}), "
        f"rejecting acks=all {minutes_of(found.unwritable_partition_minutes)} (writable {share(found.writable)})"
    )
