"""Controller and its term, and the possible actions of former controllers."""

from __future__ import annotations

from enum import Enum

import msgspec

from controller.contract.ids import NO_BROKER, BrokerEpoch, ControllerEpoch
from controller.contract.znodes import ReassignmentEntry
from controller.model.event import StoredEvent
from controller.model.leadership import AnyAction


class Ownership(Enum):
    """Ownership of /controller, by the way in which its broker got there."""

    ELECTED = "elected"
    OVERWRITTEN = "overwritten"  # the znode was edited by hand, and its broker never took over
    KRAFT = "kraft"  # a KRaft controller owns it


class InItsName(msgspec.Struct, frozen=True, array_like=True):
    """Edit of /controller by another session that names the active controller, which therefore stays active."""

    mzxid: int
    session: int  # the owner of the znode


class Term(msgspec.Struct, array_like=True):
    """Controller in /controller, and the term of the last one that took over."""

    since_ms: int = 0  # when /controller began to name it
    session: int = 0  # the owner of /controller
    ownership: Ownership = Ownership.ELECTED
    in_its_name: InItsName | None = None  # the present /controller, where it is an edit and no election's
    epoch_zxid: int = -1  # of the write of /controller_epoch
    epoch: ControllerEpoch = ControllerEpoch(-1)  # the newest whose controller took over
    began_ms: int = 0  # when it took over, 0 if before the last complete read
    broker: int = NO_BROKER  # the controller of that epoch
    active: bool = False  # it has not resigned or failed
    heard_ms: int = 0  # when its session last wrote anything
    duplicate_topic_ids: tuple[tuple[str, str, str], ...] = ()  # id, and two topics that have it
    controller_zxid: int = -1  # of the write of /controller
    raised_epoch: int = -1  # written to /controller_epoch under a controller, by hand unless it elected one
    removed_replicas: bool = False  # it took a replica out of an ISR, which a poisoned controller cannot
    changed_isr_ms: int = 0  # when it last changed an ISR at its leader's request, as from 2.7 on
    registration: BrokerEpoch = BrokerEpoch(-1)  # of its broker when it took over, else -1
    acted_ms: int = 0  # when it last wrote a partition's state or removed a request


class Unfinished(msgspec.Struct, frozen=True, array_like=True):
    """Reassignments that a former controller remembers, while its broker has this registration."""

    epoch: BrokerEpoch
    entries: tuple[ReassignmentEntry, ...]


class UnfencedController(msgspec.Struct, frozen=True, array_like=True):
    """Deposed controller that may resume unfenced, with its remaining work (see `events/unfenced_controller.py`)."""

    broker: int
    epoch: ControllerEpoch
    since_ms: int
    events: dict[int, StoredEvent]
    queues: tuple[tuple[str, int, tuple[AnyAction, ...]], ...]  # by topic and partition
    lost_ms: int = 0  # when its live session lost /controller, 0 if it ended with its session


class FencedController(msgspec.Struct, frozen=True, array_like=True):
    """Deposed controller that has continued to its first write if it lived (see `events/fenced_controller.py`).

    The topics have its actions of that time.
    """

    broker: int
    session: int
    lost_ms: int  # when /controller was taken from it
    event: StoredEvent  # with the batches of requests before the write


class FormerControllers(msgspec.Struct, array_like=True):
    """Facts about former controllers that outlive their term."""

    deposed: int = NO_BROKER  # the last controller, while it may not know yet that it was deposed
    unfenced: dict[int, UnfencedController] = {}  # by broker, only in releases that do not fence a controller's writes
    poisoned: dict[int, BrokerEpoch] = {}  # KAFKA-12315: broker -> epoch of its registration
    unfinished: dict[int, Unfinished] = {}  # by the former controller's broker (see `Profile.forgets_reassignments`)
    changes: int = 0
    terms_since_ms: tuple[int, ...] = ()  # when the newest controllers took over
    deposed_ms: int = 0  # when a live session lost /controller, 0 if it ended with its session
    slowest_load_ms: int = 0  # from a controller's election to the first write of its failover, the longest seen
    poisoned_by: dict[int, str] = {}  # the evidence, a sentence by broker
    deposed_session: int = 0  # the deposed controller's own
    fenced: tuple[FencedController, ...] = ()  # whose survival is not known yet
    poisoned_and_awake: tuple[int, ...] = ()  # poisoned brokers with more evidence than the end of a term

    def note_poisoned(self, broker: int, registration: BrokerEpoch, evidence: str) -> None:
        """Note that the process of this registration of the broker can move no replica any more."""
        self.poisoned = {**self.poisoned, broker: registration}
        self.poisoned_by = {**self.poisoned_by, broker: evidence}

    def confirm_poisoned(self, broker: int) -> None:
        """Note that the poisoned process continued.

        A sleeping process would have lost its session and dropped the rest of its batch.
        """
        self.poisoned_and_awake = tuple(sorted({*self.poisoned_and_awake, broker}))

    def follow_poisoned(self, broker: int, registration: BrokerEpoch) -> None:
        """Note the new registration of a process that lost its session and lives on."""
        if broker in self.poisoned_and_awake:
            self.poisoned = {**self.poisoned, broker: registration}
        else:
            self.forget_poisoned(broker)

    def forget_poisoned(self, broker: int) -> None:
        """Forget the notes on a poisoned broker, which moved a replica after all, or whose process ended."""
        self.poisoned = {key: epoch for key, epoch in self.poisoned.items() if key != broker}
        self.poisoned_by = {key: shown for key, shown in self.poisoned_by.items() if key != broker}
        self.poisoned_and_awake = tuple(key for key in self.poisoned_and_awake if key != broker)
