"""Steps that led to a state, from the rows of a history or, without one, from the znodes' own times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from controller.contract.effect_rows import FINAL, WITHDRAWN, Transition
from controller.contract.ids import NO_LEADER, BrokerId, LeaderEpoch, PartitionId, TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import NOT_KNOWN_MS, Row
from questions.explain.explanation import Cause, Certainty
from questions.explain.partition_changes import PartitionChange, PartitionChanges
from questions.picture import Picture
from wording.facts import replicas_in_words

_NAMED: Final = 20
_BEFORE_IT: Final = 3  # kept steps before the trouble began

Keeps = Callable[[Row], bool]


def about_partition(tp: TopicPartition) -> Keeps:
    """Return a choice of the rows of the partition, and of the brokers and controllers that may have changed it."""

    def keeps(row: Row) -> bool:
        if isinstance(row, Transition):
            return (row.topic, row.partition) == (tp.topic, tp.partition) or row.subject in ("broker", "controller")
        return isinstance(row, PartitionRow) and (row.topic, row.partition) == (tp.topic, tp.partition)

    return keeps


def about_topic(topic: str) -> Keeps:
    """Return a choice of the rows of the topic itself."""
    return lambda row: isinstance(row, Transition) and row.subject == "topic" and row.topic == topic


def about_broker(broker: BrokerId) -> Keeps:
    """Return a choice of the rows of the broker, as broker and as controller."""
    return lambda row: isinstance(row, Transition) and row.broker == broker and row.subject in ("broker", "controller")


def about_controller(row: Row) -> bool:
    """Return whether the row is about a controller, or a failover between two."""
    return isinstance(row, Transition) and row.subject == "controller"


class Happening(NamedTuple):
    """Row of the past with its step, if any, and its partition's row before it."""

    row: Row
    cause: Cause | None
    before: PartitionRow | None = None
    change: PartitionChange | None = None  # of a step that is a partition's row


def happenings(rows: Sequence[Row]) -> Iterator[Happening]:
    """Yield each row with its steps, a transition that moved a state or a change of a partition's ISR or replicas.

    A transition of a replica is no step, because it only names the event behind a change of an ISR or of replicas.
    """
    final = {row.effect for row in rows if isinstance(row, Transition) and row.status is FINAL}
    withdrawn = {row.effect for row in rows if isinstance(row, Transition) and row.status is WITHDRAWN}
    known: dict[tuple[str, PartitionId], PartitionRow] = {}
    changes = PartitionChanges(rows)
    for row in rows:
        if isinstance(row, Transition):
            changes.note(row)
            is_repeated = row.status is not FINAL and row.effect in final
            moves = (row.from_state != row.to_state or row.leader is not None) and row.subject != "replica"
            stands = moves and not is_repeated and row.effect not in withdrawn
            before = None if row.topic is None or row.partition is None else known.get((row.topic, row.partition))
            yield Happening(row, _step(row) if stands else None, before)
        elif isinstance(row, PartitionRow):
            before = known.get((row.topic, row.partition))
            found = () if before is None else tuple(changes.between(before, row))
            yield from (Happening(row, _changed(row, each), before, each) for each in found)
            if not found:
                yield Happening(row, None, before)
            known[row.topic, row.partition] = row
        else:
            yield Happening(row, None)


def causes_of(rows: Sequence[Row] | None, brokers: Iterable[BrokerId] | None = None) -> tuple[Cause, ...] | None:
    """Return the steps in these rows, oldest first, from shortly before the present trouble.

    `brokers` limits the brokers' steps. Without rows the steps are unknown, and the result is None.
    """
    if rows is None:
        return None
    wanted = None if brokers is None else set(brokers)
    steps: list[Cause] = []
    began = 0
    for row, cause, *_ in happenings(rows):
        is_other = (
            wanted is not None and isinstance(row, Transition) and row.subject == "broker" and row.broker not in wanted
        )
        if cause is not None and not is_other:
            steps.append(cause)
        if isinstance(row, PartitionRow) and row.problem is None:
            began = len(steps)
    kept = steps[max(0, began - _BEFORE_IT) :]
    return tuple(kept[-_NAMED:])


def _step(row: Transition) -> Cause:
    who = f"broker {row.broker}: " if row.subject in ("broker", "controller") and row.broker is not None else ""
    written = "" if row.leader is None else f", {_leadership(row.leader, row.leader_epoch, row.isr or ())}"
    moves = f"{row.from_state} -> {row.to_state}" if row.from_state != row.to_state else row.to_state
    return Cause(row.time_ms, row.zxid, f"{who}{moves}{written}", row.cause, _certainty(row), row.inferred_by)


def _certainty(row: Transition) -> Certainty:
    if row.inferred_by:
        return Certainty.INFERRED
    return Certainty.SEEN if row.status is FINAL else Certainty.EXPECTED


def _changed(row: PartitionRow, change: PartitionChange) -> Cause:
    rule = "" if change.by is None else change.by.inferred_by
    certainty = Certainty.INFERRED if rule else Certainty.EXPECTED if change.is_due else Certainty.SEEN
    return Cause(row.time_ms, row.zxid, f"{change.alike} ({change.says})", change.why, certainty, rule)


def _leadership(leader: BrokerId, epoch: LeaderEpoch | None, isr: tuple[BrokerId, ...]) -> str:
    return f"leader {'none' if leader == NO_LEADER else leader} (epoch {epoch}), {replicas_in_words(isr)}"


def last_writes(picture: Picture, paths: Iterable[tuple[str, str]]) -> tuple[Cause, ...]:
    """Return the last write of each of these znodes, the only trace of an unwatched past."""
    return tuple(sorted(_last_writes(picture, paths), key=lambda cause: (cause.time_ms, cause.zxid)))


def _last_writes(picture: Picture, paths: Iterable[tuple[str, str]]) -> Iterator[Cause]:
    for path, meaning in paths:
        record = (picture.records or {}).get(path)
        time_ms = picture.written_ms.get(path, NOT_KNOWN_MS)
        if record is not None and time_ms != NOT_KNOWN_MS:
            yield Cause(time_ms, record.mzxid, meaning, f"last write of {path}", Certainty.SEEN)
