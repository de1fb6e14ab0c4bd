"""Alerts on brokers that crashed, shut down or restarted, or whose log directory failed."""

from __future__ import annotations

from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, SECOND_MS, info, page, warn
from controller.says.remedies import reassignments
from controller.says.remedies.brokers import DELETE_REGISTRATION
from controller.says.remedies.remedy import Advice

BROKER_CRASHED: Final = page(
    name="BrokerCrashed",
    headline="{brokers} crashed",
    step="start {them}",
    advice=Advice("Look at the broker's machine and log, and start it again."),
    expected="The controller elects other leaders for its partitions, and drops it from every ISR.",
)
HANGS: Final = Advice("Restart it, because it hangs: its session expired, although its process is still there.")
BROKER_SHUT_DOWN: Final = info(
    name="BrokerShutDown",
    headline="{brokers} shut down cleanly",
    step="start {them}",
    advice=Advice("Start the broker, unless its absence is planned."),
    expected="The controller writes nothing more, because it moved the leaders before the broker left.",
)
BROKER_ABSENT: Final = warn(
    name="BrokerAbsent",
    headline="{brokers} never registered",
    step="start {them}",
    advice=Advice("Start the broker.", (reassignments.REASSIGN.given("it is gone for good"),)),
    patience_ms=10 * SECOND_MS,
)
BROKER_UNKNOWN: Final = warn(
    name="BrokerUnknown",
    headline="{brokers} never registered here",
    step="check the ids",
    advice=Advice(
        "Check the ids in the assignment. If these brokers exist, start them.",
        (reassignments.CANCEL_REASSIGNMENT.given("a reassignment has a wrong id"),),
    ),
    patience_ms=10 * SECOND_MS,
)
BROKER_WITHOUT_SESSION: Final = page(
    name="BrokerWithoutSession",
    headline="{brokers} registered without a process",
    step="delete the znode",
    advice=Advice(remedies=(DELETE_REGISTRATION,)),
)
BROKER_BOUNCED: Final = warn(
    name="BrokerBounced",
    headline="{brokers} registered again at once",
    step="read its log",
    advice=Advice("Look in the broker's log for an expired session, a long pause or a crash."),
    lasts_ms=10 * MINUTE_MS,
)
BROKER_FLAPPING: Final = page(
    name="BrokerFlapping",
    headline="{brokers} crashed again and again",
    step="find out why",
    advice=Advice(
        "Find out why the broker loses its session (long pauses, network, disk). If it is down, start it only then, "
        "because each return costs elections, and its replicas must catch up."
    ),
)
START_WILL_FAIL: Final = warn(
    name="StartWillFail",
    headline="the next start of brokers fails",
    step="correct the settings",
    advice=Advice("Restart no broker before the named settings are corrected or deleted."),
)
LOG_DIR_FAILED: Final = page(
    name="LogDirFailed",
    headline="a log directory of {brokers} failed",
    step="replace the disk",
    advice=Advice("Replace the disk, then restart the broker."),
    expected="The controller takes these replicas offline and elects others.",
    patience_ms=2 * SECOND_MS,  # because a loss that the controller writes meanwhile pages instead
    lasts_ms=30 * MINUTE_MS,
    ends_early="the broker leaves, or is registered again with its replicas in sync",
)
