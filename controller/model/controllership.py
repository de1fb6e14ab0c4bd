"""Controller and its term, and the possible actions of former controllers."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from controller.contract.ids import NO_BROKER, UNKNOWN_ZXID, BrokerEpoch, BrokerId, ControllerEpoch, PartitionId, Zxid
from controller.contract.znodes import ReassignmentEntry
from controller.model.event import StoredEvent
from controller.model.leadership import AnyAction

_TERMS_KEPT: Final = 10


class Ownership(Enum):
    """Ownership of /controller, by the way in which its broker got there."""

    ELECTED = "elected"
    OVERWRITTEN = "overwritten"  # the znode was edited by hand, and its broker never took over
    KRAFT = "kraft"  # a KRaft controller owns it


class InItsName(msgspec.Struct, frozen=True, array_like=True):
    """Edit of /controller by another session that names the active controller, which therefore stays active."""

    mzxid: Zxid
    session: int  # the owner of the znode


class Term(msgspec.Struct, array_like=True):
    """Controller in /controller, and the term of the last controller that took over."""

    since_ms: int = 0  # when /controller began to name its broker
    session: int = 0  # the owner of /controller
    ownership: Ownership = Ownership.ELECTED
    in_its_name: InItsName | None = None  # the edit that wrote the present /controller, None without one
    epoch_zxid: Zxid = UNKNOWN_ZXID  # of the write of /controller_epoch
    epoch: ControllerEpoch = ControllerEpoch(-1)  # the newest epoch whose controller took over
    began_ms: int = 0  # when that controller took over, 0 if before the last complete read
    broker: BrokerId = NO_BROKER  # the controller of that epoch
    active: bool = False  # it has not resigned or failed
    heard_ms: int = 0  # when its session last wrote anything
    duplicate_topic_ids: tuple[tuple[str, str, str], ...] = ()  # id, and two topics that have it
    failed_at: tuple[str, ...] = ()  # topics whose znode it could not load
    controller_zxid: Zxid = UNKNOWN_ZXID  # of the write of /controller
    raised_epoch: ControllerEpoch = ControllerEpoch(-1)  # to which /controller_epoch rose, by hand or in an election
    removed_replicas: bool = False  # it took a replica out of an ISR, which a poisoned controller cannot
    changed_isr_ms: int = 0  # when it last changed an ISR at its leader's request, as from 2.7 on
    registration: BrokerEpoch = BrokerEpoch(-1)  # of its broker when it took over, -1 if unknown
    acted_ms: int = 0  # when it last wrote a partition's state or removed a request
    is_found_again: bool = False  # the last complete read found the controller of this term, which was known before
    named_zxid: Zxid = UNKNOWN_ZXID  # of the write of /controller when the term began

    def own(self, session: int, ownership: Ownership) -> None:
        """Note who owns /controller now."""
        self.session, self.ownership = session, ownership

    @property
    def is_persistent(self) -> bool:
        """Return whether no session owns /controller, so that the znode stays when its broker goes."""
        edit = self.in_its_name
        return edit.session == 0 if edit is not None else self.ownership is Ownership.OVERWRITTEN and self.session == 0

    def note_edit(self, edit: InItsName) -> None:
        """Note an edit of /controller that leaves the active controller in office."""
        self.in_its_name = edit

    def end_edit(self, edit: InItsName) -> None:
        """Let only the edited /controller count from now on, because its controller is gone."""
        self.in_its_name, self.session = None, edit.session
        if edit.session == 0:  # no election made it
            self.ownership = Ownership.OVERWRITTEN

    def note_controller_written(self, zxid: Zxid) -> None:
        """Note the write of /controller."""
        self.controller_zxid = zxid

    def note_epoch_written(self, epoch: ControllerEpoch, zxid: Zxid, *, is_raised: bool) -> None:
        """Note the write of /controller_epoch, and whether it was raised under a controller."""
        self.epoch_zxid = zxid
        if is_raised:
            self.raised_epoch = epoch

    def begin(self, epoch: ControllerEpoch, time_ms: int, broker: BrokerId, registration: BrokerEpoch) -> None:
        """Begin the term of this epoch in a broker's process. The time is 0 if the beginning is not known."""
        is_known = (self.epoch, self.broker) == (epoch, broker) and epoch > 0
        self.is_found_again = is_known and time_ms == 0
        self.epoch, self.began_ms, self.named_zxid = epoch, time_ms, self.controller_zxid
        self.broker, self.registration, self.removed_replicas = broker, registration, False

    def note_duplicate_topic_ids(self, duplicates: tuple[tuple[str, str, str], ...]) -> None:
        """Note ids that two topics have. Every broker fails while it loads them, and passes the controllership on."""
        self.duplicate_topic_ids = duplicates

    def note_failed_at(self, topics: tuple[str, ...]) -> None:
        """Note topics whose znode ends every broker that loads it as controller."""
        self.failed_at = topics

    def claimed_by_kraft(self, controller: BrokerId) -> None:
        """Note the KRaft controller that took /controller."""
        self.broker = controller

    def take_epoch(self, epoch: ControllerEpoch) -> None:
        """Note that the term of this epoch has begun."""
        self.epoch = epoch

    def activate(self, *, active: bool) -> None:
        """Note whether the controller is active."""
        self.active = active

    def note_act(self, time_ms: int) -> None:
        """Note a write that shows the controller at work, or the removal of a request."""
        self.acted_ms = time_ms

    def note_removal(self) -> None:
        """Note that the controller took a replica out of an ISR."""
        self.removed_replicas = True

    def note_isr_change(self, time_ms: int) -> None:
        """Note an ISR change at the leader's request."""
        self.changed_isr_ms = time_ms

    def note_sign_of_life(self, time_ms: int) -> None:
        """Note any write of the controller's session."""
        self.heard_ms = time_ms


class Unfinished(msgspec.Struct, frozen=True, array_like=True):
    """Reassignments that a former controller remembers, while its broker has this registration."""

    epoch: BrokerEpoch
    entries: tuple[ReassignmentEntry, ...]


class UnfencedController(msgspec.Struct, frozen=True, array_like=True):
    """Deposed controller that may resume unfenced, with its remaining work (see `events/unfenced_controller.py`)."""

    broker: BrokerId
    epoch: ControllerEpoch
    since_ms: int
    events: dict[int, StoredEvent]
    queues: tuple[tuple[str, PartitionId, tuple[AnyAction, ...]], ...]  # by topic and partition
    lost_ms: int  # when its live session lost /controller, 0 if it ended with its session


class FencedController(msgspec.Struct, frozen=True, array_like=True):
    """Deposed controller that, if it lived, went on up to its first write (see `events/fenced_controller.py`).

    Its actions until then are in `Topic.unproven`.
    """

    broker: BrokerId
    session: int
    lost_ms: int  # when /controller was taken from it
    event: StoredEvent  # with the batches of requests before the write


class FormerControllers(msgspec.Struct, array_like=True):
    """Facts about former controllers that outlive their term."""

    deposed: BrokerId = NO_BROKER  # the last controller, while it may not know yet that it was deposed
    unfenced: dict[BrokerId, UnfencedController] = {}  # only in releases that do not fence a controller's writes
    poisoned: dict[BrokerId, BrokerEpoch] = {}  # KAFKA-12315: broker -> epoch of its registration
    unfinished: dict[BrokerId, Unfinished] = {}  # by the former controller (see `Profile.forgets_reassignments`)
    changes: int = 0
    terms_since_ms: tuple[int, ...] = ()  # when the newest controllers took over
    deposed_ms: int = 0  # when a live session lost /controller, 0 if it ended with its session
    slowest_load_ms: int = 0  # the longest time from a controller's election to the first write of its failover
    poisoned_by: dict[BrokerId, str] = {}  # by broker, a sentence with the evidence
    deposed_session: int = 0  # the session of the deposed controller
    fenced: tuple[FencedController, ...] = ()  # whose survival is not known yet
    poisoned_and_awake: tuple[BrokerId, ...] = ()  # poisoned brokers with more evidence than the end of a term

    def note_deposed(self, broker: BrokerId, session: int, lost_ms: int) -> None:
        """Note a controller that may not know yet that it was deposed."""
        self.deposed, self.deposed_session, self.deposed_ms = broker, session, lost_ms

    def forget_deposed(self) -> None:
        """Forget the last controller, whose fate is known."""
        self.deposed = NO_BROKER

    def note_change(self) -> None:
        """Count another controller in /controller."""
        self.changes += 1

    def note_load(self, took_ms: int) -> None:
        """Note the time from a controller's election to the first write of its failover."""
        self.slowest_load_ms = max(self.slowest_load_ms, took_ms)

    def remember(self, broker: BrokerId, unfinished: Unfinished) -> None:
        """Note reassignments that a controller resumes once it is elected again."""
        self.unfinished = {**self.unfinished, broker: unfinished}

    def keep_unfenced(self, broker: BrokerId, deposed: UnfencedController) -> None:
        """Note a deposed controller that may resume its events."""
        self.unfenced = {**self.unfenced, broker: deposed}

    def forget_unfenced(self, broker: BrokerId) -> None:
        """Forget a deposed controller that does not resume its events."""
        self.unfenced = {key: deposed for key, deposed in self.unfenced.items() if key != broker}

    def hold_back(self, fenced: FencedController) -> None:
        """Note a deposed controller whose survival is not known yet."""
        self.fenced = (*self.fenced, fenced)

    def hold_back_no_more(self, event_id: int) -> None:
        """Forget the deposed controller of this event, whose survival is known."""
        self.fenced = tuple([other for other in self.fenced if other.event.id != event_id])

    def note_term(self, time_ms: int) -> None:
        """Note that another controller took over."""
        self.note_change()
        self.terms_since_ms = (*self.terms_since_ms, time_ms)[-_TERMS_KEPT:]

    def note_poisoned(self, broker: BrokerId, registration: BrokerEpoch, evidence: str) -> None:
        """Note that the process of this registration of the broker can move no replica any more."""
        self.poisoned = {**self.poisoned, broker: registration}
        self.poisoned_by = {**self.poisoned_by, broker: evidence}

    def confirm_poisoned(self, broker: BrokerId) -> None:
        """Note that the poisoned process continued.

        A sleeping process would have lost its session and dropped the rest of its batch.
        """
        self.poisoned_and_awake = tuple(sorted({*self.poisoned_and_awake, broker}))

    def follow_poisoned(self, broker: BrokerId, registration: BrokerEpoch) -> None:
        """Note the new registration of a process that lost its session and lives on."""
        if broker in self.poisoned_and_awake:
            self.poisoned = {**self.poisoned, broker: registration}
        else:
            self.forget_poisoned(broker)

    def forget_poisoned(self, broker: BrokerId) -> None:
        """Forget the notes on a poisoned broker, which moved a replica after all, or whose process ended."""
        self.poisoned = {key: epoch for key, epoch in self.poisoned.items() if key != broker}
        self.poisoned_by = {key: shown for key, shown in self.poisoned_by.items() if key != broker}
        self.poisoned_and_awake = tuple(key for key in self.poisoned_and_awake if key != broker)
