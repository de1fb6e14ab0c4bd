"""State of alerts: incidents, occurrences, open alerts."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.alert_row import Severity

# How many topics or partitions an alert names.
EXAMPLES_NAMED: Final = 10


class Incident(msgspec.Struct, frozen=True, array_like=True):
    """Brokers that are away or lag for one cause; see `incidents`."""

    name: str  # stays the same while it lasts
    broker: int  # with which it began
    brokers: tuple[int, ...]  # of now, in order


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """A moment that has an alert for a while, with its repetitions; see `alerts/occurrences`."""

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
    """An open alert, as published last."""

    kind: str
    subject: str
    group: str
    severity: Severity
    since_ms: int
    published_ms: int
    cause: str
    ending: str
    partitions: int
    broker: int | None
    unknown: bool = False  # whether it still is so cannot be known
    has_examples: bool = False
    brokers: tuple[int, ...] = ()  # all that have been part of it


class ElectionPace(msgspec.Struct, frozen=True, array_like=True):
    """Leader elections: how many there had been when this minute began, and how many in the minute before."""

    since_ms: int
    total: int
    last_minute: int


class AlertState(msgspec.Struct, array_like=True):
    """Incidents, recent occurrences, and the alerts that are open."""

    incidents: tuple[Incident, ...] = ()  # of now, the oldest first
    occurrences: dict[str, Occurrence] = {}  # what happened lately, by the id of its alert
    suspected_ms: dict[str, int] = {}  # since when what may become an alert is the case, by its id
    open: dict[str, OpenAlert] = {}  # by id
    recent_elections: ElectionPace = ElectionPace(0, 0, 0)
