"""Written state that no expected write gives, as input of the rules of inference."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from controller.contract.ids import NO_LEADER, BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.topics import Partition
from controller.transaction.transaction import Transaction

# Runs the controller's handlers on a trial of the transaction, which is kept if it gives the written state.
Hypothesis: TypeAlias = Callable[[Transaction], None]


@dataclass(frozen=True, slots=True)
class WideHypothesis:
    """Hypothesis whose handlers run over many partitions. Before the `whole`, it is tried on the written one `alone`.

    A refused attempt at 3,000 partitions of one broker took 0.2 s, and a script may edit as many states at once.
    """

    alone: Hypothesis
    whole: Hypothesis

    def __call__(self, tx: Transaction) -> None:
        """Run the whole."""
        self.whole(tx)


class ObservedWrite(NamedTuple):
    """Written state of a partition, with the state before."""

    tp: TopicPartition
    partition: Partition
    before: LeaderAndIsr | None
    written: LeaderAndIsr

    @property
    def is_next(self) -> bool:
        """Return whether the write has the next leader epoch, so that no controller's write was lost in between."""
        return self.before is not None and self.written.leader_epoch == self.before.leader_epoch + 1

    @property
    def moves_leader(self) -> bool:
        """Return whether another broker leads than before."""
        return self.before is not None and self.written.leader != self.before.leader

    @property
    def elects_leader(self) -> bool:
        """Return whether a broker leads that did not lead before."""
        return self.moves_leader and self.written.leader != NO_LEADER

    @property
    def left_isr(self) -> set[BrokerId]:
        """Return the brokers that are no longer in the ISR."""
        return set(self.before.isr) - set(self.written.isr) if self.before is not None else set()

    def live_that_left_isr(self, live: Collection[BrokerId]) -> list[BrokerId]:
        """Return the live brokers that are no longer in the ISR."""
        return sorted(self.left_isr.intersection(live))

    @property
    def kept_as_last_in_isr(self) -> set[BrokerId]:
        """Return the broker that leads nothing here and stays in the ISR as its last member.

        The write repeats the state.
        """
        before, written = self.before, self.written
        repeats = before is not None and before.leader == written.leader and before.isr == written.isr
        return set(written.isr) if repeats and len(written.isr) == 1 and written.leader not in written.isr else set()

    def departed(self, live: Collection[BrokerId]) -> list[BrokerId]:
        """Return the live brokers that the partition may have lost, its former leader and brokers that left the ISR."""
        return sorted({self.before.leader, *self.left_isr}.intersection(live)) if self.before is not None else []
