"""Who is controller, since when, and what former controllers may still do."""

from __future__ import annotations

from enum import Enum

import msgspec

from controller.contract.znodes import ReassignmentEntry
from controller.model.brokers import NO_BROKER
from controller.model.event import Event
from controller.model.leadership import AnyAction


class Standing(Enum):
    """What makes whom /controller names controller, or not."""

    ELECTED = "elected"
    OVERWRITTEN = "overwritten"  # somebody edited the znode: who it names never took over
    KRAFT = "kraft"  # a KRaft controller owns it


class InItsName(msgspec.Struct, frozen=True, array_like=True):
    """What somebody else wrote to /controller in the acting controller's name, which therefore acts on."""

    mzxid: int
    session: int  # the owner of the znode


class Term(msgspec.Struct, array_like=True):
    """The controller as /controller names it, and the term of the last one that took over."""

    since_ms: int = 0  # /controller names it
    session: int = 0  # the owner of /controller
    standing: Standing = Standing.ELECTED
    in_its_name: InItsName | None = None  # /controller as it is, where no election left it so
    epoch_zxid: int = -1  # of the write of /controller_epoch
    epoch: int = -1  # the newest whose controller took over
    began_ms: int = 0  # when, 0 if that was before the last complete read
    broker: int = NO_BROKER  # that controller
    active: bool = False  # that controller is still there
    heard_ms: int = 0  # when its session last wrote anything
    migrating: bool = False  # /migration is there: the cluster is on its way to KRaft
    duplicate_topic_ids: tuple[tuple[str, str, str], ...] = ()  # id and two topics that have it


class Unfinished(msgspec.Struct, frozen=True, array_like=True):
    """What a former controller was reassigning and has not forgotten, while its broker has this registration."""

    epoch: int
    entries: tuple[ReassignmentEntry, ...]


class UnfencedController(msgspec.Struct, frozen=True, array_like=True):
    """A deposed controller that may go on as if it still were one, and what it was still to do; see `deposed`."""

    broker: int
    epoch: int
    since_ms: int
    events: dict[int, Event]
    queues: tuple[tuple[str, int, tuple[AnyAction, ...]], ...]  # by topic and partition


class FormerControllers(msgspec.Struct, array_like=True):
    """What outlives a term."""

    deposed: int = NO_BROKER  # the last controller, while it may not know yet that it is none any more
    unfenced: UnfencedController | None = None  # only of releases that do not fence a controller's writes
    poisoned: dict[int, int] = {}  # KAFKA-12315: broker -> epoch of its registration
    unfinished: dict[int, Unfinished] = {}  # by the broker that was controller: see `Profile.forgets_reassignments`
    changes: int = 0
    terms_since_ms: tuple[int, ...] = ()  # when the last controllers took over
