"""The steps that led to a state: from the rows of a history, or, where there is none, from the znodes' own times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from controller.contract.effect_rows import FINAL, WITHDRAWN, Transition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import Row
from controller.model.leadership import NO_LEADER
from controller.model.topics import TopicPartition
from questions.explain.explanation import Cause, Certainty, listed
from questions.picture import NOT_KNOWN_MS, Picture

_NAMED: Final = 20
_BEFORE_IT: Final = 3  # steps that are kept of the time when nothing was wrong

Keeps = Callable[[Row], bool]


def about_partition(tp: TopicPartition) -> Keeps:
    """The rows of the partition, and of the brokers and controllers that may have changed it."""

    def keeps(row: Row) -> bool:
        if isinstance(row, Transition):
            of_it = (row.topic, row.partition) == (tp.topic, tp.partition) and row.subject == "partition"
            return of_it or row.subject in ("broker", "controller")
        return isinstance(row, PartitionRow) and (row.topic, row.partition) == (tp.topic, tp.partition)

    return keeps


def about_topic(topic: str) -> Keeps:
    """The rows of the topic itself."""
    return lambda row: isinstance(row, Transition) and row.subject == "topic" and row.topic == topic


def about_broker(broker: int) -> Keeps:
    """The rows of the broker, as broker and as controller."""
    return lambda row: isinstance(row, Transition) and row.broker == broker and row.subject in ("broker", "controller")


def about_controller(row: Row) -> bool:
    """The rows of controllers, and of the failovers between them."""
    return isinstance(row, Transition) and row.subject == "controller"


def causes_of(rows: Sequence[Row], brokers: Iterable[int] | None = None) -> tuple[Cause, ...]:
    """The steps in these rows, the oldest first, from shortly before the present trouble began.

    Of brokers only these (None: all).
    """
    wanted = None if brokers is None else set(brokers)
    final = {row.effect for row in rows if isinstance(row, Transition) and row.status is FINAL}
    withdrawn = {row.effect for row in rows if isinstance(row, Transition) and row.status is WITHDRAWN}
    steps: list[Cause] = []
    began = 0
    before: PartitionRow | None = None
    for row in rows:
        if isinstance(row, Transition):
            is_repeated = row.status is not FINAL and row.effect in final
            is_other = row.subject == "broker" and wanted is not None and row.broker not in wanted
            moves = row.from_state != row.to_state or row.leader is not None
            if moves and not is_repeated and not is_other and row.effect not in withdrawn:
                steps.append(_step(row))
        elif isinstance(row, PartitionRow):
            if before is not None and _leader_changed_isr(before, row):
                steps.append(_isr_change(row))
            if row.problem is None:
                began = len(steps)
            before = row
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


def _leader_changed_isr(before: PartitionRow, now: PartitionRow) -> bool:
    """Whether the leader itself wrote another ISR: in its own epoch, as nobody else does."""
    return before.isr != now.isr and before.leader_epoch == now.leader_epoch and now.leader != NO_LEADER


def _isr_change(row: PartitionRow) -> Cause:
    says = f"in sync {listed(row.isr)} of {listed(row.replicas)}"
    return Cause(row.time_ms, row.zxid, says, f"leader {row.leader} changed its ISR", Certainty.SEEN)


def _leadership(leader: int, epoch: int | None, isr: tuple[int, ...]) -> str:
    return f"leader {'none' if leader == NO_LEADER else leader} (epoch {epoch}), in sync {listed(isr)}"


def last_writes(picture: Picture, paths: Iterable[tuple[str, str]]) -> tuple[Cause, ...]:
    """The last write of each of these znodes, which have a meaning each; all that is left of a past nobody watched."""
    return tuple(sorted(_last_writes(picture, paths), key=lambda cause: (cause.time_ms, cause.zxid)))


def _last_writes(picture: Picture, paths: Iterable[tuple[str, str]]) -> Iterator[Cause]:
    for path, meaning in paths:
        record = picture.records.get(path)
        time_ms = picture.written_ms.get(path, NOT_KNOWN_MS)
        if record is not None and time_ms != NOT_KNOWN_MS:
            yield Cause(time_ms, record.mzxid, meaning, f"last write of {path}", Certainty.SEEN)
