"""Kind of an alert, with its severity, its sentences, and its patience."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from controller.contract.alert_row import Severity
from controller.says.remedies.remedy import Advice

NAME_PREFIX: Final = "Kontrast"  # of an alert in Prometheus and Alertmanager, and of its runbook
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000


class AlertKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of alert, under the name that Alertmanager groups and routes by.

    The alert of an occurrence stays open for `lasts_ms` after the newest event. The alert of a condition opens when the
    condition has lasted for `patience_ms`, and stays open while the condition lasts.
    """

    name: str
    severity: Severity
    advice: Advice  # for a person
    expected: str | None = None  # what should happen next, a sentence
    headline: str = ""  # the event in a title, with {partitions}, {brokers}, {broker} or {subject} of the alert
    step: str = ""  # the next step in a title, an imperative, with {them}, {brokers} or {broker}
    patience_ms: int = 0
    patience_else: str | None = None  # a clause, if some conditions have another patience, with when and how long
    lasts_ms: int = 0
    ends_early: str = ""  # what ends an occurrence before `lasts_ms`, as a clause
    several: str = ""  # the sentence for more than one occurrence, with the {count} and {names} of its subjects
    several_of: Mapping[str, str] = {}  # in place of `several`, by the subject, which is a kind of disagreement
    divergence: str | None = None  # the count of divergences to which each alert adds
    of_replica: bool = False  # about Kontrast itself or ZooKeeper, and so known even if the cluster is out of sight

    @property
    def action(self) -> str:
        """Return the advice as text, without a cluster whose release and state are known."""
        return self.advice.in_words()


page, warn, info = (partial(AlertKind, severity=each) for each in (Severity.PAGE, Severity.WARN, Severity.INFO))
"""Makers of kinds of each severity."""
