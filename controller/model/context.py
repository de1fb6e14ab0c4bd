"""State of one cluster between two records, as a small header and the topics.

A transaction changes a copy. The header is small because a heartbeat needs only the header. Each part has its own file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

import msgspec

from controller.contract.flaw import Flaw, FoundFlaw
from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.ids import NO_BROKER, UNKNOWN_ZXID, BrokerId, ControllerEpoch, Zxid
from controller.contract.records import NOWHERE, Position
from controller.contract.znodes import ConfigZnode
from controller.model.alert_state import AlertState
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.brokers import Broker, Departures, Shutdowns
from controller.model.controllership import FormerControllers, InItsName, Ownership, Term
from controller.model.damaged_topics import DamagedTopics
from controller.model.event import StoredEvent
from controller.model.migration import Migration
from controller.model.tally import CountingRules, Reactions, Tally
from controller.model.topics import Topic, Topics
from controller.model.triggers import Deletions, Triggers
from controller.model.wall_clock import shown_ms
from controller.model.watch_state import Clocks, EnsembleState, Feed, NewestRead
from controller.rules.migration_phases import LED_BY_KRAFT
from controller.rules.releases import NEWEST, Evidence, Profile, Release, profile_of
from controller.rules.settings import BrokerSettings, GivenSettings, settings_in_force
from controller.rules.timing import CLEAN_STOP_MS, CONTEXT_LOADED, UNFINISHED, Time
from controller.rules.topic_ranks import TopicRanks


class Configuration(msgspec.Struct, array_like=True):
    """Sources of the profile and the settings in force."""

    profile_is_set: bool = False  # by the operator, otherwise it follows from the evidence
    evidence: Evidence = Evidence()
    given: dict[str, bool | int] = {}  # static settings of the brokers, from the operator
    dynamic: dict[str, dict[str, str]] = {}  # the used settings of /config/brokers, by broker id or <default>
    unparsable: dict[str, dict[str, str]] = {}  # by znode, settings in /config that some release cannot parse
    unclean_as_judged: bool = False  # whether unclean elections were allowed when partitions were last judged


UNCLEAN_ELECTION = "unclean.leader.election.enable"
LEAST_IN_SYNC = "min.insync.replicas"
THROTTLES: Final = ("follower.replication.throttled.rate", "leader.replication.throttled.rate")
LOOK: Final = "look"  # the session of one complete read without a watch
LOOK_AT_TOPICS: Final = "look at topics"  # the session of one complete read of only some topics
EACH_BROKER = "<default>"  # the znode in /config/brokers whose settings apply to all brokers


class Phase(Enum):
    """Phase of a cluster's state, which decides how far to trust the state."""

    BOOTSTRAPPING = "bootstrapping"  # before the first complete read, so the state is unknown
    LOADING = "loading"  # during a complete read, which only stores values
    FOLLOWING = "following"  # changes are followed one by one


# Python 3.11 takes 0.2 µs to find a member in its enum. These members are compared with every change, so each has its
# own name.
BOOTSTRAPPING, LOADING, FOLLOWING = Phase
_OWNED_BY_KRAFT: Final = Ownership.KRAFT


class Header(msgspec.Struct, array_like=True):
    """State of a cluster beside its topics.

    A transaction changes a copy, and replaces the containers in it instead of changing them.
    """

    cluster: str
    chunk_count: int
    position: Position = NOWHERE
    zxid: Zxid = UNKNOWN_ZXID
    time_ms: int = 0  # the cluster's own time, which decides deadlines (see `clock`)
    phase: Phase = BOOTSTRAPPING
    clocks: Clocks = msgspec.field(default_factory=Clocks)
    feed: Feed = msgspec.field(default_factory=Feed)
    read: NewestRead = msgspec.field(default_factory=NewestRead)
    brokers: dict[BrokerId, Broker] = {}  # the registered brokers, and while KRaft leads also those in KRaft mode
    departures: Departures = msgspec.field(default_factory=Departures)
    shutdowns: Shutdowns = msgspec.field(default_factory=Shutdowns)
    controller: BrokerId = NO_BROKER  # named by /controller
    controller_epoch: ControllerEpoch = ControllerEpoch(-1)  # in /controller_epoch
    term: Term = msgspec.field(default_factory=Term)
    former: FormerControllers = msgspec.field(default_factory=FormerControllers)
    preferred_controllers: tuple[BrokerId, ...] = ()  # brokers that should be controller, empty if any may be
    profile: Profile = profile_of(NEWEST)
    settings: BrokerSettings = BrokerSettings()  # static, on all brokers (given, or the release's default)
    configuration: Configuration = msgspec.field(default_factory=Configuration)
    triggers: Triggers = msgspec.field(default_factory=Triggers)
    deletions: Deletions = msgspec.field(default_factory=Deletions)
    next_event: int = 0
    last_written_event: int = -1  # the newest event of which a write was seen
    events: dict[int, StoredEvent] = {}  # the events in flight, by id
    tally: Tally = msgspec.field(default_factory=Tally)
    reactions: Reactions = msgspec.field(default_factory=Reactions)
    maintenance: tuple[MaintenanceWindow, ...] = ()  # windows that the operator gave
    alerts: AlertState = msgspec.field(default_factory=AlertState)
    cluster_id: str = ""  # the content of /cluster/id, empty while it is unknown, as before 0.10.1
    migration: Migration = msgspec.field(default_factory=Migration)
    ensemble: EnsembleState = msgspec.field(default_factory=EnsembleState)
    damaged: DamagedTopics = msgspec.field(default_factory=DamagedTopics)
    flawed: dict[str, Flaw] = {}  # by path, znodes that Kafka cannot read, up to a limit
    topic_ranks: TopicRanks = ()  # the order of topics in sentences, as the operator gave it
    besides: dict[str, FoundFlaw] = {}  # by path, flaws of znodes without records, and of several znodes together
    clean_stop_ms: int = CLEAN_STOP_MS  # how long a clean stop excuses what it takes from clients
    older: frozenset[BrokerId] = frozenset()  # whose registration is of a release before 2.7, if others are newer

    def copy(self) -> Header:
        """Return a copy of the header. A change to the copy's parts does not change this header."""
        copied = msgspec.structs.replace(
            self, **{part: msgspec.structs.replace(getattr(self, part)) for part in _PARTS}
        )
        copied.tally.happened = self.tally.happened.copy()
        return copied

    def take_over(self, copied: Header) -> None:
        """Take over the state of a copy. The header's parts stay the same objects, because handlers refer to them."""
        for name in self.__struct_fields__:
            value = getattr(copied, name)
            if name in _PARTS:
                group = getattr(self, name)
                for part in group.__struct_fields__:
                    setattr(group, part, getattr(value, part))
            else:
                setattr(self, name, value)

    def register(self, broker: BrokerId, registration: Broker) -> None:
        """Note a broker's registration."""
        self.brokers = {**self.brokers, broker: registration}
        self._find_older()

    def unregister(self, brokers: Collection[BrokerId]) -> None:
        """Note that these brokers are not registered any more."""
        self.brokers = {broker: known for broker, known in self.brokers.items() if broker not in brokers}
        self._find_older()

    def _find_older(self) -> None:
        # Where all look so old, their inter.broker.protocol.version is, and their release is not known by it.
        old = frozenset(at for at, each in self.brokers.items() if each.least_release and each.least_release < (2, 7))
        self.older = old if len(old) < len(self.brokers) else frozenset()

    @contextmanager
    def knowing(self, brokers: dict[BrokerId, Broker]) -> Iterator[None]:
        """Let the body handle an event with these brokers as the registered ones, as they were at the event."""
        now, self.brokers = self.brokers, brokers
        yield
        self.brokers = now

    @contextmanager
    def in_epoch(self, epoch: ControllerEpoch) -> Iterator[None]:
        """Let the body handle an event of the controller with this epoch."""
        now, self.controller_epoch = self.controller_epoch, epoch
        yield
        self.controller_epoch = now

    def begin_epoch(self, epoch: ControllerEpoch) -> None:
        """Note the content of /controller_epoch."""
        self.controller_epoch = epoch

    def enter(self, phase: Phase) -> None:
        """Enter a phase of the cluster's state."""
        self.phase = phase

    def forget_zxids_after(self, zxid: Zxid) -> None:
        """Go back to an earlier zxid, and forget the term, because its writes have later zxids."""
        self.zxid, self.term = zxid, Term()

    def name_controller(self, broker: BrokerId, since_ms: int, edit: InItsName | None = None) -> None:
        """Note the broker in /controller, and the edit that put it there."""
        self.controller, self.term.since_ms, self.term.in_its_name = broker, since_ms, edit

    @property
    def acting(self) -> bool:
        """Return whether there is an active controller, which has taken over and handles events."""
        return self.phase is FOLLOWING and self.term.active

    def witness(self, **facts: int) -> None:
        """Add a znode's evidence of the release. A higher value replaces a lower one."""
        highest = {name: max(value, getattr(self.configuration.evidence, name)) for name, value in facts.items()}
        if any(value != getattr(self.configuration.evidence, name) for name, value in highest.items()):
            self.configuration.evidence = msgspec.structs.replace(self.configuration.evidence, **highest)
            if not self.configuration.profile_is_set:
                self.expect(None)

    def configure(
        self,
        given: GivenSettings,
        profile: Profile | None,
        preferred_controllers: tuple[BrokerId, ...] = (),
        topic_ranks: TopicRanks = (),
        clean_stop_ms: int = CLEAN_STOP_MS,
    ) -> None:
        """Set the operator's static settings, profile (None takes the evidence), controllers, ranks and patience."""
        self.configuration.given, self.preferred_controllers = dict(given), preferred_controllers
        self.topic_ranks, self.clean_stop_ms = topic_ranks, clean_stop_ms
        self.expect(profile)

    def expect(self, profile: Profile | None) -> None:
        """Set the brokers' expected profile, with its release's defaults. None takes the profile of the evidence."""
        self.configuration.profile_is_set = profile is not None
        self.profile = profile or self.configuration.evidence.profile()
        release = self.profile.release if profile else self.configuration.evidence.releases()[1]
        self.settings = settings_in_force(self.configuration.given, release)
        self._find_older()  # of brokers that rows, or a state stored earlier, have given

    @property
    def knows_past(self) -> bool:
        """Return whether Kontrast follows changes. A single look at ZooKeeper cannot show which brokers left before."""
        return self.feed.session not in (LOOK, LOOK_AT_TOPICS)

    @property
    def knows_all_topics(self) -> bool:
        """Return whether all topics were read. If not, the counts do not cover the whole cluster."""
        return self.feed.session != LOOK_AT_TOPICS

    @property
    def releases(self) -> tuple[Release, Release]:
        """Return the oldest and newest release that the cluster may have, by the operator's word or by its znodes."""
        if self.configuration.profile_is_set:
            return self.profile.release, self.profile.release
        return self.configuration.evidence.releases()

    @property
    def allows_unclean_election(self) -> bool:
        """Return whether the controller's broker allows unclean elections in topics without a setting of their own."""
        return self.allows_unclean_election_by(self.controller)

    def allows_unclean_election_by(self, controller: BrokerId) -> bool:
        """Return whether unclean elections would be allowed if this broker were controller."""
        for name in (str(controller), EACH_BROKER) if self.configuration.dynamic else ():
            value = ConfigZnode(self.configuration.dynamic.get(name, {})).boolean(UNCLEAN_ELECTION)
            if value is not None:
                return value
        return self.settings.unclean_leader_election_enable

    def allows_unclean_election_of(self, topic: Topic | None) -> bool:
        """Return whether the topic's own setting allows unclean elections, else whether the brokers' setting does."""
        by_topic = None if topic is None else topic.unclean_election
        return self.allows_unclean_election if by_topic is None else by_topic

    @property
    def wall_ms(self) -> int:
        """Return the cluster's time as the forwarder's wall clock shows it."""
        walls = self.clocks.walls
        return self.time_ms + walls[-1].ahead_ms if walls else self.time_ms

    def wall_ms_of(self, moment_ms: int) -> int:
        """Return a known moment of the cluster's time by the forwarder's wall clock, in milliseconds since 1970."""
        return shown_ms(moment_ms, self.clocks.walls) if self.clocks.walls else moment_ms

    @property
    def partitions(self) -> int:
        """Return the number of partitions in the cluster."""
        return self.tally.gauges.partitions

    def has_passed(self, time: Time, since_ms: int) -> bool:
        """Return whether more than this time has passed in a cluster of this size."""
        return self.time_ms - since_ms > time.of(self.partitions)

    @property
    def longest_hang_ms(self) -> int:
        """Return the time after which a hung controller has lost its session, and a working one has written."""
        return max(self.settings.zookeeper_session_timeout_ms, UNFINISHED.of(self.partitions))

    def has_outlasted_a_hang(self, since_ms: int) -> bool:
        """Return whether a controller that hung at this time would have lost its session or written by now."""
        return self.time_ms - since_ms > self.longest_hang_ms

    @property
    def loaded_within_ms(self) -> int:
        """Return the time in which a new controller loads the cluster, by its size and its slowest load so far."""
        return max(CONTEXT_LOADED.of(self.partitions), self.former.slowest_load_ms)

    @property
    def elections(self) -> int:
        """Return the number of leader elections since this state was created."""
        return sum(self.tally.happened.elections.values())

    @property
    def counting_rules(self) -> CountingRules:
        """Return the rules that the cluster's gauges depend on beside its topics."""
        profile = self.profile
        dynamic = self._dynamic_least_in_sync() if self.configuration.dynamic else {}
        return CountingRules(
            dynamic.pop(EACH_BROKER, self.settings.min_insync_replicas),
            profile.caps_min_isr,
            profile.reassigns_in_topic_znode,
            profile.replicates_without_adding,
            tuple(sorted((BrokerId(int(broker)), least) for broker, least in dynamic.items() if broker.isdecimal())),
            self.topic_ranks,
            self.older if profile.caps_min_isr else frozenset(),
        )

    def _dynamic_least_in_sync(self) -> dict[str, int]:
        found = {
            name: ConfigZnode(used).integer(LEAST_IN_SYNC, at_least=1)
            for name, used in self.configuration.dynamic.items()
        }
        return {name: least for name, least in found.items() if least is not None}

    @property
    def is_ghost(self) -> bool:
        """Return whether the broker in /controller never took over, because an edit or another session wrote it."""
        if self.controller == NO_BROKER or self.term.ownership is Ownership.KRAFT:
            return False
        registered = self.brokers.get(self.controller)
        foreign = registered is not None and registered.session != self.term.session
        return self.term.ownership is Ownership.OVERWRITTEN or foreign

    @property
    def blocks_elections(self) -> bool:
        """Return whether /controller is persistent, and its broker may act, but no broker can follow it."""
        return self.controller != NO_BROKER and self.term.is_persistent and self.term.broker == self.controller

    @property
    def ghost_since_ms(self) -> int:
        """Return the moment of the edit, or of the broker's registration with another session."""
        if self.term.ownership is Ownership.OVERWRITTEN:
            return self.term.since_ms
        return max(self.term.since_ms, self.brokers[self.controller].since_ms)

    @property
    def may_act(self) -> bool:
        """Return whether /controller names a broker that can be the active controller."""
        there = self.controller != NO_BROKER and self.term.ownership is not Ownership.KRAFT and not self.is_ghost
        return there and not self.term.duplicate_topic_ids and not self.term.failed_at

    @property
    def kraft_owns_controller(self) -> bool:
        """Return whether /controller names a KRaft controller."""
        return self.term.ownership is _OWNED_BY_KRAFT and self.controller != NO_BROKER

    @property
    def led_by_kraft(self) -> bool:
        """Return whether a KRaft controller leads. Without /controller it leads until a broker takes over."""
        # Each explanation asks it four times, so the phases stand here without a call.
        return self.kraft_owns_controller or (self.phase is FOLLOWING and self.migration.phase in LED_BY_KRAFT)

    @property
    def in_kraft_mode(self) -> tuple[BrokerId, ...]:
        """Return the brokers that live in KRaft mode, in order, as ISRs and leaders show."""
        return tuple(sorted(broker for broker, known in self.brokers.items() if known.inferred))

    @property
    def is_poisoned(self) -> bool:
        """Return whether replicas are stuck in their states in the controller's process (KAFKA-12315)."""
        registered = self.brokers.get(self.controller)
        return registered is not None and self.former.poisoned.get(self.controller) == registered.epoch


# The fields that are structs of several facts, which a step changes in place.
_PARTS = tuple(
    field.name
    for field in msgspec.structs.fields(Header)
    if isinstance(field.default_factory, type) and issubclass(field.default_factory, msgspec.Struct)
)


class Context(msgspec.Struct, frozen=True):
    """Immutable state of one cluster. The broker-replica index only repeats facts from the topics."""

    header: Header
    topics: Topics
    replica_index: BrokerReplicaIndex | None = None
