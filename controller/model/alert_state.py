"""Incidents, recent occurrences and open alerts, kept between heartbeats."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.alert_row import Severity
from controller.contract.ids import BrokerId

# How many topics or partitions an alert names.
EXAMPLES_NAMED: Final = 10


class Outage(msgspec.Struct, frozen=True, array_like=True):
    """Brokers that were lost together for one cause (see `alerts/incidents.py`)."""

    name: str  # stays the same until the incident ends, and no other incident gets the same name
    broker: BrokerId  # the first of the incident
    brokers: tuple[BrokerId, ...]  # its present brokers, in order
    since_ms: int = 0  # when the first was lost
    number: int = 1  # part of the name from its broker's second incident on


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """Repeatable event that is reported while its alert is open (see `alerts/occurrences.py`)."""

    kind: str  # of its alert
    subject: str
    broker: BrokerId | None  # affected
    since_ms: int  # of the first event
    last_ms: int
    count: int
    cause: str  # of the last event
    about: tuple[str, ...]  # the newest topics or partitions affected
    evidence: tuple[str, ...]  # of the last event
    concerned: int = 0  # the number of all topics or partitions affected
    names: dict[int, tuple[str, ...]] = {}  # all affected names in buckets, so that a new name copies only one bucket


class OpenAlert(msgspec.Struct, frozen=True, array_like=True):
    """Open alert, as it was last published."""

    kind: str
    subject: str
    group: str
    severity: Severity
    since_ms: int
    published_ms: int
    cause: str
    ending: str
    partitions: int
    broker: BrokerId | None
    unknown: bool = False  # the cluster is out of sight, so the alert may be over
    has_examples: bool = False
    brokers: tuple[BrokerId, ...] = ()  # all its brokers so far
    opened_ms: int = 0
    damage: tuple[str, ...] = ()  # kinds of damage that were published
    next_step: str = ""  # the next step that was published last
    news: tuple[str, ...] = ()  # a sentence for each change since the alert may have been sent
    rank: int = 0  # the smallest rank of a damaged topic that was published


class ElectionPace(msgspec.Struct, frozen=True, array_like=True):
    """Total of leader elections at the beginning of this minute, and the number in the minute before."""

    since_ms: int
    total: int
    last_minute: int


class AlertState(msgspec.Struct, array_like=True):
    """Incidents, recent occurrences, and the alerts that are open."""

    incidents: tuple[Outage, ...] = ()  # the incidents that have not ended, the oldest first
    occurrences: dict[str, Occurrence] = {}  # recent occurrences, by the id of their alert
    suspected_ms: dict[str, int] = {}  # when a condition that may become an alert began, by the alert's id
    open: dict[str, OpenAlert] = {}  # by id
    recent_elections: ElectionPace = ElectionPace(0, 0, 0)
    judged_ms: int = 0  # when all conditions were last judged
    incidents_told: dict[BrokerId, int] = {}  # by first broker, the highest number of its incidents that had an alert
