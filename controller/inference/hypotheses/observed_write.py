"""A written state that no expected write gives, as the rules of inference look at it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeAlias

from controller.model.leadership import LeaderAndIsr
from controller.model.topics import Partition, TopicPartition
from controller.transaction.transaction import Transaction

# Runs what the controller would have done on a trial of the step; the trial is kept if that gives the written state.
Hypothesis: TypeAlias = Callable[[Transaction], None]


class ObservedWrite(NamedTuple):
    """A partition's state as it was written, beside the one before."""

    tp: TopicPartition
    partition: Partition
    before: LeaderAndIsr | None
    written: LeaderAndIsr

    @property
    def is_next(self) -> bool:
        """Whether it is the next leader epoch: a write of the controller with none lost in between."""
        return self.before is not None and self.written.leader_epoch == self.before.leader_epoch + 1

    @property
    def moves_leader(self) -> bool:
        """Whether another broker leads than before."""
        return self.before is not None and self.written.leader != self.before.leader

    @property
    def left_isr(self) -> set[int]:
        """The brokers that are in the ISR no more."""
        return set(self.before.isr) - set(self.written.isr) if self.before is not None else set()

    def departed(self, live: Collection[int]) -> list[int]:
        """The live brokers that the partition may have lost: its leader, and those that left the ISR."""
        return sorted({self.before.leader, *self.left_isr}.intersection(live)) if self.before is not None else []
