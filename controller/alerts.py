"""Alerts: what a person must know of, opened once, changed, resolved.

Here belong the kinds, their severities and their sentences. What is wrong with a partition is judged by `health`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from controller.context import NO_BROKER, Standing
from controller.outputs import AlertRow, Severity
from controller.states import PartitionState
from controller.topics import Partition, TopicPartition

if TYPE_CHECKING:
    from controller.turn import Turn

# How long the cluster may be without a controller, and a write may be due, before a person is told.
NO_CONTROLLER_GRACE_MS: Final = 10_000
OVERDUE_GRACE_MS: Final = 10_000

# So many controllers in such a time are not failovers any more.
FLAPPING_TERMS: Final = 5
FLAPPING_WITHIN_MS: Final = 60_000

OPEN, RESOLVED = "open", "resolved"


def partition_alert(
    turn: Turn, tp: TopicPartition, before: Partition | None, after: Partition, reason: str | None
) -> Iterator[AlertRow]:
    """The alert that opens, changes or ends with this change of a partition.

    It stays open until the partition can be used again, not only until the controller is expected to act.
    """
    was_open = before is not None and before.alerted
    if after.alerted and reason is not None:
        if not was_open or before is None or (before.problem, before.confirmed) != (after.problem, after.confirmed):
            yield _offline(turn, tp, after, OPEN, reason, after.problem_since_ms)
    elif before is not None and was_open:
        yield _offline(turn, tp, after, RESOLVED, _ending(after), before.problem_since_ms)


def _ending(after: Partition) -> str:
    if after.state is PartitionState.NON_EXISTENT or after.confirmed is None:
        return "the topic is deleted"
    return f"broker {after.confirmed.leader} leads it in leader epoch {after.confirmed.leader_epoch}"


def _offline(turn: Turn, tp: TopicPartition, partition: Partition, state: str, cause: str, since_ms: int) -> AlertRow:
    missing = [str(replica) for replica in partition.replicas if replica not in turn.header.brokers]
    return AlertRow(
        **turn.stamp(),
        id=f"PartitionOffline/{tp}",
        alert="PartitionOffline",
        state=state,
        severity=Severity.PAGE,
        subject=f"partition {tp}",
        group=f"brokers {','.join(missing)} away" if missing else "all brokers live",
        since_ms=since_ms,
        cause=cause,
        topic=tp.topic,
        partition=tp.partition,
    )


def cluster_alerts(turn: Turn) -> None:
    """Open and resolve the alerts of the cluster itself; asked at every heartbeat, judged by the record's time."""
    header = turn.header
    absent = header.controller == NO_BROKER and header.time_ms - header.controller_since_ms >= NO_CONTROLLER_GRACE_MS
    _set(turn, "NoController", Severity.PAGE, header.controller_since_ms if absent else None,
         "no broker is controller: leaders that die are not replaced",
         f"broker {header.controller} is controller in epoch {header.controller_epoch}")  # fmt: skip
    _set_overdue(turn)
    _set_ghost(turn)
    _set_flapping(turn)
    _set_duplicate_topic_ids(turn)


def _set_overdue(turn: Turn) -> None:
    header = turn.header
    due = [
        event
        for event in header.events.values()
        if event.writes_due and header.time_ms - event.time_ms >= OVERDUE_GRACE_MS
    ]
    oldest = min(due, key=lambda event: event.id, default=None)
    overdue = sum(event.writes_due for event in due)
    opening = f"{overdue} writes of controller {header.controller} are overdue"
    if oldest is not None:
        opening += f", the oldest since {oldest.kind}: {oldest.cause}"
    since_ms = oldest.time_ms if oldest else None
    _set(turn, "ControllerOverdue", Severity.WARN, since_ms, opening, "nothing is overdue")


def _set_ghost(turn: Turn) -> None:
    header = turn.header
    how = "was edited" if header.standing is Standing.OVERWRITTEN else "is not owned by that broker's session"
    opening = (
        f"/controller names broker {header.controller}, but {how}: it never took over, "
        "and no broker acts as controller until /controller is deleted"
    )
    since_ms = header.controller_since_ms if header.is_ghost else None
    _set(turn, "GhostController", Severity.PAGE, since_ms, opening, "/controller is as an election leaves it")


def _set_flapping(turn: Turn) -> None:
    header = turn.header
    recent = [at_ms for at_ms in header.terms_since_ms if header.time_ms - at_ms <= FLAPPING_WITHIN_MS]
    opening = f"{len(recent)} controllers took over within a minute, now in epoch {header.controller_epoch}"
    if header.preferred_znode is not None:
        opening += "; /admin/preferred_replica_election is there: if it names a partition without a state, delete it"
    since_ms = recent[0] if len(recent) >= FLAPPING_TERMS else None
    _set(turn, "ControllerFlapping", Severity.PAGE, since_ms, opening, "the controller stays")


def _set_duplicate_topic_ids(turn: Turn) -> None:
    header = turn.header
    pairs = "; ".join(
        f"topic {first} and topic {second} have {topic_id}" for topic_id, first, second in header.duplicate_topic_ids
    )
    opening = f"no broker can become controller, because two topics have the same id: {pairs}"
    since_ms = header.controller_since_ms if header.duplicate_topic_ids else None
    _set(turn, "DuplicateTopicId", Severity.PAGE, since_ms, opening, "every topic has an id of its own")


def _set(turn: Turn, alert: str, severity: Severity, since_ms: int | None, opening: str, ending: str) -> None:
    header = turn.header
    was_open_since_ms = header.open_alerts.get(alert)
    if (since_ms is None) == (was_open_since_ms is None):
        return
    if since_ms is not None:
        header.open_alerts = {**header.open_alerts, alert: since_ms}
    else:
        header.open_alerts = {key: value for key, value in header.open_alerts.items() if key != alert}
    turn.effects.append(
        AlertRow(
            **turn.stamp(),
            id=alert,
            alert=alert,
            state=RESOLVED if since_ms is None else OPEN,
            severity=severity,
            subject=f"cluster {header.cluster}",
            group=alert,
            since_ms=since_ms if since_ms is not None else was_open_since_ms or 0,
            cause=ending if since_ms is None else opening,
        )
    )
