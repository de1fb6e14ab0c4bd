"""Health of a cluster on one screen for people, and as the one line of a monitoring probe."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from rich.console import RenderableType

from cli.printing.answers import line, severity_word, since
from controller.contract.alert_row import Severity
from questions.check import Counts, Finding, Health
from transport.printable import printable
from wording.facts import Fact
from wording.sentences import counted
from wording.times import exact_moment

_EXAMPLES: Final = 5
_WORDS: Final = {Severity.PAGE: ("alert", "pages"), Severity.WARN: ("warning",), Severity.INFO: ("note",)}


class ProbeState(IntEnum):
    """The exit codes of a monitoring plugin (Nagios, Icinga, Sensu)."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


_STATES: Final = {Severity.PAGE: ProbeState.CRITICAL, Severity.WARN: ProbeState.WARNING}


def health_lines(health: Health, *, is_long: bool = False) -> Iterator[RenderableType]:
    """Return the cluster in two lines, then each finding. Notes get a line, and details with `is_long`."""
    verdict = (
        ("well", "ok") if health.is_well else (_verdict(health), health.worst.value if health.worst else "unknown")
    )
    yield line(
        f"{health.cluster}: ", (verdict[0], severity_word(verdict[1])[1]), f"  as of {exact_moment(health.as_of_ms)}"
    )
    yield line(_summary(health))
    if health.zookeeper:
        yield line(f"ZooKeeper: {health.zookeeper}")
    for doubt in health.doubts:
        yield line(severity_word("unknown"), f"  {doubt}")
    for finding in health.findings:
        yield from _finding(health, finding, is_long=is_long or finding.severity is not Severity.INFO)


def _verdict(health: Health) -> str:
    counts = {
        words: sum(finding.severity is severity for finding in health.findings) for severity, words in _WORDS.items()
    }
    said = [counted(count, *words) for words, count in counts.items() if count]
    return ", ".join(said) or "not known to be well"


def _summary(health: Health) -> str:
    counts = health.counts
    kind = "KRaft controller" if health.led_by_kraft else "controller broker"
    who = f"{kind} {health.controller}" if health.controller >= 0 else "no controller"
    away = f" ({counts.brokers_away} down)" if counts.brokers_away else ""
    wrong = ", ".join(_wrong(counts)) or "all led and in sync"
    size = f"{counted(counts.topics, 'topic')}, {counted(counts.partitions, 'partition')}"
    return f"{who}, epoch {health.controller_epoch}; {counted(counts.brokers, 'broker')}{away}; {size}: {wrong}"


def _wrong(counts: Counts) -> Iterator[str]:
    for count, word in (
        (counts.leaderless, Fact.WITHOUT_LEADER.word),
        (counts.under_min_isr, Fact.REJECTS_ACKS_ALL.word),
        (counts.under_replicated, Fact.UNDER_REPLICATED.word),
        (counts.reassigning, "being reassigned"),
    ):
        if count:
            yield f"{count:,} {word}"


def _finding(health: Health, finding: Finding, *, is_long: bool) -> Iterator[RenderableType]:
    began = since(finding.since, health.as_of_ms)
    yield line(severity_word(finding.severity.value), f"  {finding.alert} of {finding.subject}, {began}")
    yield line(finding.cause, indent=6)
    if not is_long:
        return
    for name, said in (("expected", finding.expected), ("do", finding.action)):
        if said:
            yield line(f"{name}: {said}", indent=6)
    if finding.examples:
        more = f" and {finding.partitions - _EXAMPLES:,} more" if finding.partitions > _EXAMPLES else ""
        yield line(f"partitions: {', '.join(finding.examples[:_EXAMPLES])}{more}", indent=6)
    for evidence in finding.evidence:
        yield line(f"evidence: {evidence}", indent=6)


def probe_state(health: Health) -> ProbeState:
    """Return the state for a monitoring system. Visible problems precede hidden ones."""
    found = _STATES.get(health.worst) if health.worst else None
    return found or (ProbeState.UNKNOWN if health.doubts else ProbeState.OK)


def probe_line(health: Health) -> str:
    """Return the one line of a monitoring plugin, with its performance data."""
    first = next(
        (f"{finding.alert}: {finding.cause}" for finding in health.findings if finding.severity in _STATES), ""
    )
    said = first or next(iter(health.doubts), "") or _summary(health)
    counts = health.counts
    data = {
        "brokers": counts.brokers,
        "brokers_away": counts.brokers_away,
        "leaderless": counts.leaderless,
        "under_min_isr": counts.under_min_isr,
        "under_replicated": counts.under_replicated,
        "partitions": counts.partitions,
    }
    performance = " ".join(f"{name}={value};;;0" for name, value in data.items())
    return f"{plugin_line(probe_state(health), f'{health.cluster}: {said}')} | {performance}"


def plugin_line(state: ProbeState, said: str) -> str:
    """Return a plugin's text. A bar would begin its performance data."""
    return f"KAFKA {state.name} - {printable(said).replace('|', '/')}"
