"""Alerts on a missing, stuck or fenced controller, and on epochs and elections."""

from __future__ import annotations

from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, SECOND_MS, info, page, warn
from controller.says.remedies import controllership, topics
from controller.says.remedies.remedy import Advice

NO_CONTROLLER: Final = page(
    name="NoController",
    headline="no broker is controller",
    step="look at ZooKeeper",
    advice=Advice(
        "Look at the brokers' connections to ZooKeeper and at their logs. Any live broker should create /controller."
    ),
    expected="A live broker creates /controller at once.",
    patience_ms=10 * SECOND_MS,
)
CONTROLLER_MOVED: Final = info(
    name="ControllerMoved",
    headline="another controller took over",
    advice=Advice("Find out why the last controller lost /controller, if this happens more than once."),
    lasts_ms=5 * MINUTE_MS,
)
CONTROLLER_FLAPPING: Final = page(
    name="ControllerFlapping",
    headline="controllers follow one another",
    step="read their logs",
    advice=Advice("Find in the brokers' logs why their terms end.", (controllership.DELETE_PREFERRED_REQUEST,)),
)
GHOST_CONTROLLER: Final = page(
    name="GhostController",
    headline="no broker acts as controller",
    step="look at /controller",
    advice=Advice(remedies=(controllership.MOVE_CONTROLLER,)),
    expected="The named broker does nothing, because it does not know that it is controller.",
    patience_else="after 10 s where it was elected and only its broker's registration is missing",
)
CONTROLLER_OVERDUE: Final = page(
    name="ControllerOverdue",
    headline="controller {broker} is late",
    step="look at its log",
    advice=Advice(
        "Look at the controller's log, and for long pauses of its broker. If it is stuck, restart that broker.",
        (controllership.MOVE_CONTROLLER.given("that takes too long"),),
    ),
    # A broker's session lasts for 18 s by default (zookeeper.session.timeout.ms from 2.5 on). A shorter pause ends by
    # itself, and a longer pause makes another broker controller.
    patience_ms=20 * SECOND_MS,
    patience_else="after 10 s where it has made later writes",
)
CONTROLLER_POISONED: Final = page(
    name="ControllerPoisoned",
    headline="controller {broker} can move no replica",
    step="restart it",
    advice=Advice("Restart that broker."),
    expected="The controller must drop dead replicas from their ISRs, and cannot.",
)
BROKER_POISONED: Final = warn(
    name="BrokerPoisoned",
    headline="{brokers} must not become controller",
    step="restart {them}",
    advice=Advice("Restart that broker before it is elected."),
    patience_ms=MINUTE_MS,
)
CONTROLLER_NOT_PREFERRED: Final = warn(
    name="ControllerNotPreferred",
    headline="an unwanted broker is controller",
    step="move the controller",
    advice=Advice(
        "Wait for a quiet moment. You may need several tries until a preferred broker wins.",
        (controllership.MOVE_CONTROLLER.given("no partition is offline and no broker restarts"),),
    ),
    patience_ms=MINUTE_MS,
)
STALE_CONTROLLER: Final = warn(
    name="StaleController",
    headline="a deposed controller wrote",
    step="restart its broker",
    advice=Advice(
        "Look for long pauses of that broker, and restart it if it continues. Releases from 2.1 on fence these writes."
    ),
    several="a deposed controller wrote {count} partitions{names}: brokers may follow either controller",
    lasts_ms=10 * MINUTE_MS,
    divergence="stale_controller_epoch",
)
CONTROLLER_EPOCH_WENT_BACK: Final = page(
    name="ControllerEpochWentBack",
    headline="/controller_epoch went back",
    step="raise it",
    advice=Advice(
        "Find out who wrote /controller_epoch, because ZooKeeper's other data may be old too.",
        (controllership.RAISE_EPOCH.filled(EPOCH="its former value").given("only this znode is old"),),
    ),
    lasts_ms=30 * MINUTE_MS,
    divergence="controller_epoch_went_back",
)
DUPLICATE_TOPIC_ID: Final = page(
    name="DuplicateTopicId",
    headline="topics share an id",
    step="give each its own",
    advice=Advice(
        "Compare partition.metadata on the brokers with the topics' znodes. The brokers keep electing, "
        "and the next one can load the topics.",
        (topics.PUT_ID_BACK.given("a topic's id differs from its partition.metadata"),),
    ),
)
ELECTION_STORM: Final = warn(
    name="ElectionStorm",
    headline="too many elections",
    step="find the cause",
    advice=Advice("Look for brokers that come and go, and for tools that request elections."),
)
NOTIFICATION_BACKLOG: Final = warn(
    name="NotificationBacklog",
    headline="ISR changes are not read",
    step="look at the controller",
    advice=Advice(
        "Look at the controller's broker.", (controllership.MOVE_CONTROLLER.given("the notifications do not change"),)
    ),
    expected="The controller reads and removes them within seconds.",
    patience_ms=30 * SECOND_MS,
)
