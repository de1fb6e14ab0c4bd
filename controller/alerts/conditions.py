"""Conditions, which may open an alert, and their excuses, which are controlled shutdowns or announced maintenance.

Conditions are made from the header alone, in `partition_conditions`, `broker_conditions` and `controller_conditions`.
`lifecycle` opens alerts from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from controller.alerts.occurrences import THE_CLUSTER, id_of
from controller.contract.alert_row import Severity
from controller.contract.ids import BrokerId
from controller.model.context import Header
from controller.rules.topic_ranks import UNRANKED
from controller.says.alert_kinds.kinds import AlertKind
from controller.says.remedies.remedy import Advice
from wording.facts import Left
from wording.sentences import listed

# A controlled shutdown explains lagging replicas for so long after the shutdown, and after the broker's return.
_AWAY_IN_ORDER_MS: Final = 10 * 60_000
_CATCHING_UP_MS: Final = 5 * 60_000

# An alert of this age may have been sent. The Alertmanager example waits as long for further alerts (`group_wait`).
UNSENT_MS: Final = 5_000


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """Problem that lasts. If `since_ms` is None, it began when it was first seen."""

    kind: AlertKind
    subject: str = THE_CLUSTER
    about: str = ""  # what the alert's row names, else the subject
    group: str = ""
    cause: str
    ending: str  # the sentence of its resolution
    since_ms: int | None = None
    patience_ms: int | None = None  # else the kind's
    severity: Severity | None = None  # else the kind's
    expected: str | None = None  # else the kind's
    advice: Advice | None = None  # else the kind's
    evidence: tuple[str, ...] = ()
    partitions: int = 0
    examples: tuple[str, ...] = ()
    broker: BrokerId | None = None
    brokers: tuple[BrokerId, ...] = ()  # all brokers of the condition, if there may be several
    named: tuple[BrokerId, ...] = ()  # brokers of which the advice speaks, if others than `brokers`
    replaces: tuple[AlertKind, ...] = ()  # kinds whose alert on this subject resolves into this one
    damage: Mapping[str, str] = {}  # kinds of damage to clients, with a sentence each. A further kind is news
    rank: int = UNRANKED  # the operator's smallest rank of a damaged topic. A smaller one is news
    next_step: str = ""  # for a person, in words. A changed step is news

    @property
    def id(self) -> str:
        """Return the id of the condition's alert, which stays the same while the condition lasts."""
        return id_of(self.kind, self.subject)


def explanation(brokers: Collection[BrokerId], header: Header, *, takes_partitions: bool) -> str | None:
    """Return the excuse for the absence of these brokers, None if any of these has no excuse.

    `takes_partitions` means that clients cannot use partitions for it, or not with acks=all. An evicted pod and a wrong
    `systemctl stop` are clean as well, so what clients lose needs a maintenance window.
    """
    for_ms = header.clean_stop_ms if takes_partitions else _AWAY_IN_ORDER_MS
    return excuse_of(_reason(broker, header, for_ms) for broker in sorted(brokers))


def excuse_of(reasons: Iterable[str | None]) -> str | None:
    """Join reasons, each once. Return None if one is missing or the list is empty."""
    given = list(dict.fromkeys(reasons))
    return "; ".join(reason for reason in given if reason) if given and None not in given else None


def maintained(broker: BrokerId | None, header: Header) -> str | None:
    """Return the maintenance window that covers the broker, if any. A broker of None means the whole cluster."""
    now_ms = header.wall_ms  # people announce windows by the wall clock
    for window in header.maintenance:
        if window.until_ms > now_ms and (not window.brokers or broker in window.brokers):
            return "maintenance" + (f": {window.reason}" if window.reason else "")
    return None


def _reason(broker: BrokerId, header: Header, for_ms: int) -> str | None:
    window = maintained(broker, header)
    if window is not None:
        return window
    if broker in header.shutdowns.under_way:
        return f"broker {broker} is shutting down cleanly"
    departure = header.departures.last.get(broker)
    began_ms = (incident.since_ms for incident in header.alerts.incidents if broker in incident.brokers)
    if (
        departure is not None
        and departure.in_order
        and header.time_ms - min(began_ms, default=departure.time_ms) <= for_ms
    ):
        return f"{listed((broker,))} {Left.SHUT_DOWN.value}"
    registered = header.brokers.get(broker)
    if registered is None:
        return None
    had_asked = header.shutdowns.asked.get(broker, registered.epoch) != registered.epoch
    if had_asked and header.time_ms - registered.since_ms <= _CATCHING_UP_MS:
        return f"broker {broker} is back from a clean shutdown"
    return None
