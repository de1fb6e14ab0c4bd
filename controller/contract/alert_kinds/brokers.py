"""Alerts on brokers: crashed, shut down, restarted, a failed log directory."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, SECOND_MS, AlertKind
from controller.contract.alert_row import Severity

BROKER_CRASHED: Final = AlertKind(
    name="BrokerCrashed",
    severity=Severity.PAGE,
    meaning="A broker left without having shut down: it crashed, hangs, or is cut off from ZooKeeper.",
    action="Look at the broker's machine and log, and start it again.",
    expected="to elect other leaders for what it led, and to drop it from every ISR",
)
BROKER_SHUT_DOWN: Final = AlertKind(
    name="BrokerShutDown",
    severity=Severity.INFO,
    meaning="A broker shut down in order and is not back yet.",
    action="Nothing, if work on it is planned; else start it.",
    expected="nothing more: leaders were moved before it left",
)
BROKER_ABSENT: Final = AlertKind(
    name="BrokerAbsent",
    severity=Severity.WARN,
    meaning="A broker hosts replicas and was never seen since Kontrast follows this cluster.",
    action="Start it, or reassign its replicas to other brokers if it is gone for good.",
    patience_ms=10 * SECOND_MS,
)
BROKER_BOUNCED: Final = AlertKind(
    name="BrokerBounced",
    severity=Severity.WARN,
    meaning="A broker restarted, or lost its session, and was back at once: it registered again without having been "
    "missed.",
    action="Look at the broker's log for the reason: an expired session, a long pause, a crash.",
    lasts_ms=10 * MINUTE_MS,
)
BROKER_FLAPPING: Final = AlertKind(
    name="BrokerFlapping",
    severity=Severity.PAGE,
    meaning="A broker keeps leaving without having shut down.",
    action="Find out why it loses its session (long pauses, network, disk) before it is started again: each return "
    "costs elections and catching up.",
)
LOG_DIR_FAILED: Final = AlertKind(
    name="LogDirFailed",
    severity=Severity.PAGE,
    meaning="A log directory of a live broker failed: the replicas in it are offline.",
    action="Replace the disk, then restart the broker.",
    expected="to take its replicas for offline and to elect others",
    lasts_ms=30 * MINUTE_MS,
)
