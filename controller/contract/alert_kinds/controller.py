"""Alerts on the controller: none, stuck, or fenced; epochs, elections."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, SECOND_MS, AlertKind
from controller.contract.alert_row import Severity

NO_CONTROLLER: Final = AlertKind(
    name="NoController",
    severity=Severity.PAGE,
    meaning="No broker is controller: dead leaders are not replaced, topics are neither created nor deleted.",
    action="Look at the brokers' connections to ZooKeeper and at their logs: any live broker should make /controller.",
    expected="a live broker makes /controller at once",
    patience_ms=10 * SECOND_MS,
)
CONTROLLER_MOVED: Final = AlertKind(
    name="ControllerMoved",
    severity=Severity.INFO,
    meaning="Another broker became controller, or a KRaft controller.",
    action="Nothing, if it happens once; look at why the last controller lost /controller.",
    lasts_ms=5 * MINUTE_MS,
)
CONTROLLER_FLAPPING: Final = AlertKind(
    name="ControllerFlapping",
    severity=Severity.PAGE,
    meaning="Controllers follow one another. Four within a minute are a warning. Five or more page: none stays long "
    "enough to replace dead leaders.",
    action="Look at the brokers' logs for what ends their terms; a /admin/preferred_replica_election that names a "
    "partition without a state must be deleted.",
)
GHOST_CONTROLLER: Final = AlertKind(
    name="GhostController",
    severity=Severity.PAGE,
    meaning="No broker acts as controller, and none will: /controller names a broker that never took over. Or the "
    "controller is not registered, and brokers do not find it.",
    action="Delete /controller, so that the brokers elect one. Restart a broker that lives and is not registered.",
    expected="nothing: nobody who could act knows that it is asked to",
    patience_else="after 10 s where it was elected and only its broker's registration is missing",
)
CONTROLLER_OVERDUE: Final = AlertKind(
    name="ControllerOverdue",
    severity=Severity.PAGE,
    meaning="The controller has not written what it must: it is slow, stuck, or paused.",
    action="Look at its broker for long pauses and at its log. If it is stuck, delete /controller or restart that "
    "broker.",
    # A broker's session lasts for 18 s by default (zookeeper.session.timeout.ms from 2.5 on): a pause that is shorter
    # is over by itself, and a longer one makes another broker controller.
    patience_ms=20 * SECOND_MS,
    patience_else="after 10 s where it has written what came later",
)
CONTROLLER_POISONED: Final = AlertKind(
    name="ControllerPoisoned",
    severity=Severity.PAGE,
    meaning="The controller's process can move no replica (KAFKA-12315): an earlier term ended among removals from an "
    "ISR, or it writes on and passes them over. Dead replicas stay in ISRs, and deletions do not end.",
    action="Restart that broker.",
    expected="to drop dead replicas from their ISRs, which it cannot",
)
BROKER_POISONED: Final = AlertKind(
    name="BrokerPoisoned",
    severity=Severity.WARN,
    meaning="A broker must not be controller again before it is restarted: its last term ended among removals from an "
    "ISR, and its process could move no replica (KAFKA-12315). As a broker it works.",
    action="Restart that broker, before it is elected.",
    patience_ms=MINUTE_MS,
)
CONTROLLER_NOT_PREFERRED: Final = AlertKind(
    name="ControllerNotPreferred",
    severity=Severity.WARN,
    meaning="A broker that was not chosen for it is controller.",
    action="Delete /controller at a quiet moment; the next election may take several tries.",
    patience_ms=MINUTE_MS,
)
STALE_CONTROLLER: Final = AlertKind(
    name="StaleController",
    severity=Severity.WARN,
    meaning="A controller of an older epoch went on writing: brokers may follow either of two.",
    action="Look at that broker for long pauses; restart it if it goes on. Releases from 2.1 on fence these writes.",
    several="a deposed controller wrote {count} partitions{names}: brokers may follow either controller",
    lasts_ms=10 * MINUTE_MS,
    divergence="stale_controller_epoch",
)
CONTROLLER_EPOCH_WENT_BACK: Final = AlertKind(
    name="ControllerEpochWentBack",
    severity=Severity.PAGE,
    meaning="/controller_epoch went back: it was edited, or ZooKeeper was restored from an old copy. Brokers refuse "
    "what a controller of an older epoch asks of them.",
    action="Find out who wrote it. Set it to what it was or higher, then delete /controller: the next controller takes "
    "one more than that.",
    lasts_ms=30 * MINUTE_MS,
    divergence="controller_epoch_went_back",
)
DUPLICATE_TOPIC_ID: Final = AlertKind(
    name="DuplicateTopicId",
    severity=Severity.PAGE,
    meaning="Two topics have the same id: no broker can become controller.",
    action="Give each topic's znode the id that its replicas have on disk (partition.metadata): the brokers elect on "
    "and on, and the next one can load it.",
)
ELECTION_STORM: Final = AlertKind(
    name="ElectionStorm",
    severity=Severity.WARN,
    meaning="Leaders are elected over and over: more elections in a minute than twice the number of partitions, and "
    "more than 100.",
    action="Look for brokers that come and go, and for tools that ask for elections.",
)
NOTIFICATION_BACKLOG: Final = AlertKind(
    name="NotificationBacklog",
    severity=Severity.WARN,
    meaning="The controller does not read notifications of ISR changes: brokers and clients know old ISRs.",
    action="Look at the controller's broker; moving the controller drops them.",
    expected="to read and remove them within seconds",
    patience_ms=30 * SECOND_MS,
)
