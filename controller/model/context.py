"""What the replica knows of one cluster: a small header and the topics.

Here belongs the state between two records and nothing that changes it: a step works on a `turn.Turn`. The header is
small on purpose: a heartbeat needs nothing else.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

import msgspec

from controller.contract.outputs import ReactionTimes, Severity, SlowReaction
from controller.contract.records import NOWHERE, Position
from controller.contract.znodes import ConfigZnode, MaintenanceWindow, ReassignmentEntry
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.leadership import AnyAction
from controller.model.topics import TopicPartition, Topics
from controller.model.wall_clock import WallClocks
from controller.rules.releases import NEWEST, Evidence, Profile, profile_of
from controller.rules.settings import BrokerSettings, settings_in_force

NO_BROKER = -1
UNCLEAN_ELECTION = "unclean.leader.election.enable"
LEAST_IN_SYNC = "min.insync.replicas"
_EACH_BROKER = "<default>"  # the name of the znode that holds for all brokers


class Phase(Enum):
    """How far the replica may be trusted."""

    BOOTSTRAPPING = "bootstrapping"  # no complete read was seen yet: nothing is known
    LOADING = "loading"  # a complete read is coming in: values are taken, nothing is concluded
    FOLLOWING = "following"  # changes are followed one by one


# To find a member in its enum takes Python 3.11 0.2 µs: what is asked of every change has a name of its own.
BOOTSTRAPPING, LOADING, FOLLOWING = Phase


class Standing(Enum):
    """What makes whom /controller names controller, or not."""

    ELECTED = "elected"
    OVERWRITTEN = "overwritten"  # somebody edited the znode: who it names never took over
    KRAFT = "kraft"  # a KRaft controller owns it


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """A registered broker; `epoch` is its znode's czxid, Kafka's broker epoch."""

    epoch: int
    session: int
    since_ms: int
    endpoints: tuple[str, ...] = ()
    rack: str | None = None


class Departure(msgspec.Struct, frozen=True, array_like=True):
    """When a broker's znode vanished; zxid -1 where only a later read showed it."""

    zxid: int
    time_ms: int
    in_order: bool = False  # it had asked to be shut down
    rack: str | None = None  # as it was registered
    shares_with: tuple[int, ...] = ()  # brokers that were away already and have replicas of the same partitions


class Sending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request to brokers; what it says of partitions stands in their queues, as entries with its ordinal."""

    ordinal: int
    api: str  # LeaderAndIsr | UpdateMetadata | StopReplica
    brokers: tuple[int, ...]
    partitions: int | None  # how many it was to speak of; None: of all that there are, without an entry in any queue
    deletes: bool = False  # StopReplica up to 2.5


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The requests that one pass of a state machine sends, and the live brokers then, while that is not certain."""

    at_batch: int
    requests: tuple[Sending, ...]
    live_brokers: tuple[int, ...]
    broker_epochs: tuple[int, ...]  # of the live brokers


class Event(msgspec.Struct, array_like=True):
    """Something that the controller handles, in Kafka's words, while steps of it are not certain yet.

    It runs in passes of the state machines, one after the other: what belongs to a pass is certain once the event is
    known to have begun and no earlier write of it is due. A turn changes copies of its own.
    """

    id: int
    kind: str
    cause: str
    zxid: int
    time_ms: int
    epoch: int  # the controller's
    due: list[int] = []  # writes by pass that ZooKeeper has not shown yet
    begun: bool = False  # a write of it was seen, or it has none
    pending: int = 0  # steps and batches that are not certain yet
    topics: dict[str, None] = {}  # that it concerns, in order
    batches: tuple[Batch, ...] = ()  # of requests, by pass, not certain yet
    # The broker that may have asked to be shut down once more, as the end of its session tells; or that the controller
    # may not know of yet.
    doubtful: int = NO_BROKER
    taken_up: bool = False  # nothing kept the controller from it, if it was still there
    proven_ms: int = 0  # from when on it is certain though nothing shows it; a controller may die before it acts
    failed_brokers: dict[int, Broker] = {}  # the brokers whose death it handles, as they were
    started_broker: int = NO_BROKER  # the broker whose registration it handles
    first_write_ms: int = 0  # when its first write was seen, 0 while none was
    last_write_ms: int = 0
    controller: int = NO_BROKER  # the broker that handles it
    held_by: int = -1  # the older event whose writes stand before its next batch, where those have not come

    @property
    def sentence(self) -> str:
        """The event in words, as rows give it."""
        return f"{self.kind}: {self.cause}"

    @property
    def holds_back(self) -> bool:
        """Whether it stays doubtful though it has begun: only what it writes for the broker tells."""
        return self.kind == "TopicChange" and self.doubtful != NO_BROKER and self.writes_due > 0

    @property
    def next_batch(self) -> int:
        """The first pass that still has a write due: what is before it is done."""
        for at, count in enumerate(self.due):
            if count:
                return at
        return len(self.due)

    @property
    def writes_due(self) -> int:
        """How many writes are due in all."""
        return sum(self.due)


class ShutdownAttempt(msgspec.Struct, frozen=True, array_like=True):
    """A broker's next request to be shut down."""

    due_ms: int  # when it is expected
    earliest_ms: int  # before which it cannot come
    left: int
    doubtful: bool = False  # attempts before the first that shows may have found no controller, and count all the same


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


class InItsName(msgspec.Struct, frozen=True, array_like=True):
    """What somebody else wrote to /controller in the acting controller's name, which therefore acts on."""

    mzxid: int
    session: int  # the owner of the znode


class Quarantines(msgspec.Struct, frozen=True, array_like=True):
    """How often this cluster's records could not be applied of late; see `quarantine`."""

    times: int = 0  # in a row: a complete read in between does not end it, only time without a failure
    last_ms: int = 0
    kept: tuple[str, ...] = ()  # where it failed, of the failures whose records were written to `refused`
    unkept: int = 0  # records that were not, for such a failure's are there already


class LogDirFailure(msgspec.Struct, frozen=True, array_like=True):
    """A broker's report of a failed log directory, and whether a consequence of it was seen."""

    reported_ms: int
    handled: bool = False


class IsrNotification(msgspec.Struct, frozen=True, array_like=True):
    """What leaders tell the controller of ISR changes that they wrote themselves, while it waits to be read."""

    since_ms: int
    partitions: tuple[TopicPartition, ...]


# Of topics and partitions that belong to the same, so many are named.
EXAMPLES_NAMED: Final = 10


class IssueGroup(msgspec.Struct, frozen=True, array_like=True):
    """Partitions that suffer from the same because of the same brokers; see `troubles`."""

    count: int
    since_ms: int
    examples: tuple[str, ...]


class Incident(msgspec.Struct, frozen=True, array_like=True):
    """Brokers that are away or lag for one cause; see `incidents`."""

    name: str  # stays the same while it lasts
    broker: int  # with which it began
    brokers: tuple[int, ...]  # of now, in order


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """Something that happened, and may have happened again, while it is told of; see `happenings`."""

    kind: str  # of alert
    subject: str
    broker: int | None  # that it happened to
    since_ms: int  # when first
    last_ms: int
    count: int
    cause: str  # of the last
    about: tuple[str, ...]  # the newest topics or partitions that it happened to
    evidence: tuple[str, ...]  # of the last
    concerned: int = 0  # how many there are in all
    names: dict[int, tuple[str, ...]] = {}  # of all of them, in buckets: to add one copies one bucket


class OpenAlert(msgspec.Struct, frozen=True, array_like=True):
    """An alert that is open, as it was told last."""

    kind: str
    subject: str
    group: str
    severity: Severity
    since_ms: int
    told_ms: int
    cause: str
    ending: str
    partitions: int
    broker: int | None
    unknown: bool = False  # whether it still is so cannot be known
    has_examples: bool = False
    brokers: tuple[int, ...] = ()  # all that have been part of it


class RefusedGeneration(msgspec.Struct, frozen=True, array_like=True):
    """An older generation whose heartbeats come: by their own times since when, and the newest."""

    generation: int
    first_ms: int
    last_ms: int
    followed_ms: int  # the time of what was followed when the newest came
    told: bool  # whether it has gone on for so long that somebody has to know


class ElectionPace(msgspec.Struct, frozen=True, array_like=True):
    """Leader elections: how many there had been when this minute began, and how many in the minute before."""

    since_ms: int
    total: int
    last_minute: int


class CountingRules(NamedTuple):
    """What the counts depend on beside the topics."""

    least_in_sync: int  # where a topic does not say so itself
    least_is_capped: bool  # a partition never needs more than it has replicas
    adding_need_not_lead: bool  # though they are preferred
    adding_need_not_follow: bool  # a partition is not under-replicated without them
    least_in_sync_on: tuple[tuple[int, int], ...] = ()  # on leaders that have a setting of their own

    def least_in_sync_under(self, leader: int) -> int:
        """What holds on this leader where a topic does not say so itself."""
        return (
            dict(self.least_in_sync_on).get(leader, self.least_in_sync) if self.least_in_sync_on else self.least_in_sync
        )


class Header(msgspec.Struct, array_like=True):
    """All that is known of a cluster beside its topics.

    A step changes a copy of its own, and replaces the containers in it instead of changing them.
    """

    cluster: str
    chunk_count: int
    position: Position = NOWHERE
    zxid: int = -1
    time_ms: int = 0  # the cluster's own, by which deadlines are judged: see `clock`
    phase: Phase = BOOTSTRAPPING
    session: str = "unknown"
    watch_mode: str = "unknown"
    brokers: dict[int, Broker] = {}
    departed: dict[int, Departure] = {}
    controller: int = NO_BROKER  # as /controller names it
    controller_since_ms: int = 0
    controller_epoch: int = -1  # as /controller_epoch says
    epoch_zxid: int = -1  # of the write that says so
    controller_session: int = 0  # the owner of /controller
    standing: Standing = Standing.ELECTED
    migrating: bool = False  # /migration is there: the cluster is on its way to KRaft
    duplicate_topic_ids: tuple[tuple[str, str, str], ...] = ()  # id and two topics that have it
    term_epoch: int = -1  # the newest epoch whose controller took over
    term_began_ms: int = 0  # when, 0 if that was before the last complete read
    term_broker: int = NO_BROKER  # that controller
    term_active: bool = False  # that controller is still there
    controller_changes: int = 0
    profile: Profile = profile_of(NEWEST)
    profile_is_set: bool = False  # by a person; else it follows from the evidence
    evidence: Evidence = Evidence()
    settings: BrokerSettings = BrokerSettings()  # static, in force on all brokers: what was given, else the release's
    given_settings: dict[str, bool | int] = {}  # what somebody said of them
    dynamic_settings: dict[str, dict[str, str]] = {}  # /config/brokers by broker id or <default>, what is used of it
    unclean_as_judged: bool = False  # whether unclean elections were allowed when partitions were last judged by it
    shutting_down: tuple[int, ...] = ()  # brokers whose controlled shutdown shows in what was written
    asked_to_shut_down: dict[int, int] = {}  # brokers that did in any term: broker -> epoch of its registration
    shutdown_attempts: dict[int, ShutdownAttempt] = {}  # brokers that will ask again, because they still lead something
    log_dir_failures: dict[int, LogDirFailure] = {}  # by the broker that reported one
    preferred_asked_ms: int = -1  # when a preferred election was asked for of partitions that nobody could read
    poisoned: dict[int, int] = {}  # KAFKA-12315: broker -> epoch of its registration
    terms_since_ms: tuple[int, ...] = ()  # when the last controllers took over
    reassign_znode: tuple[ReassignmentEntry, ...] | None = None  # what /admin/reassign_partitions asks for
    reassign_blind: bool = False  # the controller will not see the next one, until a failover
    preferred_znode: tuple[ReassignmentEntry, ...] | None = None  # what /admin/preferred_replica_election asks for
    rebalancing: dict[int, int] = {}  # brokers that an automatic rebalance brings leaders back to: when last
    leaked_offline: int = 0  # offline partitions of topics removed by hand, which the controller goes on counting
    ineligible_leftovers: tuple[str, ...] = ()  # deleted topics that the controller goes on calling ineligible
    halted_deletions: dict[str, int] = {}  # topics whose deletion a dead replica holds: when the others were asked
    next_event: int = 0
    last_written_event: int = -1  # the newest event of which a write was seen
    events: dict[int, Event] = {}
    counts: dict[str, int] = {}  # of what happened since this state began
    gauge_counts: dict[str, int] = {}  # of what there is, as of the last step that was followed: see `gauges`
    issues: dict[str, IssueGroup] = {}  # of partitions, by group, as of the last step that was followed
    occurrences: dict[str, Occurrence] = {}  # what happened lately, by the id of its alert
    suspected_ms: dict[str, int] = {}  # since when what may become an alert is so, by its id
    open_alerts: dict[str, OpenAlert] = {}  # by id
    reactions: dict[str, ReactionTimes] = {}  # the controller's, by kind of event
    slowest_reactions: tuple[SlowReaction, ...] = ()
    recent_elections: ElectionPace = ElectionPace(0, 0, 0)
    unordered_departures: dict[int, tuple[int, ...]] = {}  # when brokers left without having shut down
    isr_notifications: dict[str, IsrNotification] = {}  # that wait for the controller, by the znode's name
    maintenance: tuple[MaintenanceWindow, ...] = ()  # that somebody announced
    preferred_controllers: tuple[int, ...] = ()  # the brokers on which the controller should be, if that matters
    lacks_records: bool = False  # some were lost, and no complete read has come in since
    disconnected_ms: int = 0  # since when the forwarder has no session with ZooKeeper, 0 if it has one
    seen_controller: bool = False  # named by the read that is coming in
    seen_brokers: tuple[int, ...] = ()  # the same
    seen_deletions: tuple[str, ...] = ()  # the same
    heard_ms: int = 0  # when the controller's session last wrote anything
    deposed: int = NO_BROKER  # the last controller, while it may not know yet that it is none any more
    last_asked_ms: dict[int, int] = {}  # when brokers last asked to be shut down
    unfinished: dict[int, Unfinished] = {}  # by the broker that was controller: see `profile.forgets_reassignments`
    unfenced: UnfencedController | None = None  # only of releases that do not fence a controller's writes
    quarantined: str = ""  # why all that was known was given up; until a complete read has come in
    steady_ms: int = -1  # the steady clock of the newest record's forwarder, -1 where it has none
    walls: WallClocks = ()  # how `time_ms` and all moments are shown; none: as they are
    clock_of: str = ""  # whose wall clock this generation's times are by
    incidents: tuple[Incident, ...] = ()  # of now, the oldest first
    offline_by_topic: dict[str, int] = {}  # partitions that are offline, as of the last step that was followed
    refused: RefusedGeneration | None = None  # an older forwarder that goes on
    judged_by: CountingRules | None = None  # when all partitions were last judged by one and the same
    in_its_name: InItsName | None = None  # /controller as it is, where no election left it so
    quarantines: Quarantines = Quarantines()

    @property
    def acting(self) -> bool:
        """Whether a controller is there that has taken over and handles events."""
        return self.phase is FOLLOWING and self.term_active

    def witness(self, **facts: int) -> None:
        """Learn what a znode shows of the controller's release; a higher value replaces a lower one."""
        known = {name: max(value, getattr(self.evidence, name)) for name, value in facts.items()}
        if any(value != getattr(self.evidence, name) for name, value in known.items()):
            self.evidence = msgspec.structs.replace(self.evidence, **known)
            if not self.profile_is_set:
                self.expect(None)

    def expect(self, profile: Profile | None) -> None:
        """Expect of the brokers what this profile says (None: what the evidence shows), with its release's defaults."""
        self.profile_is_set = profile is not None
        self.profile = profile or self.evidence.profile()
        release = self.profile.release if profile else self.evidence.releases()[1]
        self.settings = settings_in_force(self.given_settings, release)

    @property
    def allows_unclean_election(self) -> bool:
        """Whether topics without a setting of their own allow unclean elections, on the controller's broker."""
        for name in (str(self.controller), _EACH_BROKER) if self.dynamic_settings else ():
            value = ConfigZnode(self.dynamic_settings.get(name, {})).boolean(UNCLEAN_ELECTION)
            if value is not None:
                return value
        return self.settings.unclean_leader_election_enable

    @property
    def elections(self) -> int:
        """How many leaders were elected since this state began."""
        return sum(count for key, count in self.counts.items() if key.startswith("elections/"))

    @property
    def counting_rules(self) -> CountingRules:
        """What the cluster's counts depend on beside its topics."""
        profile = self.profile
        dynamic = self._dynamic_least_in_sync() if self.dynamic_settings else {}
        return CountingRules(
            dynamic.pop(_EACH_BROKER, self.settings.min_insync_replicas),
            profile.caps_min_isr,
            profile.reassigns_in_topic_znode,
            profile.replicates_without_adding,
            tuple(sorted((int(broker), least) for broker, least in dynamic.items() if broker.isdecimal())),
        )

    def _dynamic_least_in_sync(self) -> dict[str, int]:
        found = {
            name: ConfigZnode(used).integer(LEAST_IN_SYNC, at_least=1) for name, used in self.dynamic_settings.items()
        }
        return {name: least for name, least in found.items() if least is not None}

    @property
    def is_ghost(self) -> bool:
        """Whether who /controller names never took over: it was edited, or is not owned by that broker's session."""
        if self.controller == NO_BROKER or self.standing is Standing.KRAFT:
            return False
        registered = self.brokers.get(self.controller)
        foreign = registered is not None and registered.session != self.controller_session
        return self.standing is Standing.OVERWRITTEN or foreign

    @property
    def may_act(self) -> bool:
        """Whether the cluster has a controller of its own that could take over."""
        there = self.controller != NO_BROKER and self.standing is not Standing.KRAFT and not self.is_ghost
        return there and not self.migrating and not self.duplicate_topic_ids

    @property
    def is_poisoned(self) -> bool:
        """Whether the controller's process cannot move replicas any more (KAFKA-12315)."""
        registered = self.brokers.get(self.controller)
        return registered is not None and self.poisoned.get(self.controller) == registered.epoch


class Context(msgspec.Struct, frozen=True):
    """One cluster as the replica knows it; immutable. The roster only remembers what the topics say."""

    header: Header
    topics: Topics
    replica_index: BrokerReplicaIndex | None = None
