"""Health of a cluster on one screen for people, and as the one line of a monitoring probe."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from rich.console import RenderableType

from cli.printing.answers import line, severity_word, since
from controller.contract.alert_row import Severity
from questions.check import Finding, Health
from questions.state import ClusterState, Counts, State
from transport.printable import printable
from wording.facts import Fact, event_since
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


_PROBE_STATES: Final = {
    State.WELL: ProbeState.OK,
    State.DEGRADED: ProbeState.WARNING,
    State.AFFECTED: ProbeState.CRITICAL,
    State.UNKNOWN: ProbeState.UNKNOWN,
}
_COLOURS: Final = {State.WELL: "ok", State.DEGRADED: "warn", State.AFFECTED: "page", State.UNKNOWN: "unknown"}


def health_lines(health: Health, *, is_long: bool = False) -> Iterator[RenderableType]:
    """Yield the state and its reasons, the cluster in a line, then each finding.

    A finding that only informs gets one line. `is_long` adds details.
    """
    state = health.state
    word = (state.words, severity_word(_COLOURS[state.state])[1])
    yield line(f"{health.cluster}: ", word, f"{_alerts(health)}  as of {exact_moment(health.as_of_ms)}")
    for doubt in health.doubts:
        yield line(severity_word("unknown"), f"  {doubt}")
    if state.state is not State.WELL:
        yield from _first(state, health.as_of_ms)
    yield line(_summary(health))
    if health.zookeeper:
        yield line(f"ZooKeeper: {health.zookeeper}")
    for finding in health.findings:
        yield from _finding(health, finding, is_long=is_long or finding.severity is not Severity.INFO)


def _first(state: ClusterState, as_of_ms: int) -> Iterator[RenderableType]:
    """Yield the event with its start, and the first step."""
    if state.state is not State.UNKNOWN:
        yield line(event_since(state.event, since(state.since, as_of_ms)) if state.since else state.event)
    if state.first_step:
        restores = f", which {state.restores}" if state.restores else ""
        yield line(f"first step: {state.first_step}{restores}")


def _alerts(health: Health) -> str:
    """Return how many alerts are open, in brackets."""
    counts = {
        words: sum(finding.severity is severity for finding in health.findings) for severity, words in _WORDS.items()
    }
    said = [counted(count, *words) for words, count in counts.items() if count]
    return f" ({', '.join(said)})" if said else ""


def _summary(health: Health) -> str:
    counts = health.counts
    kind = "KRaft controller" if health.led_by_kraft else "controller broker"
    who = f"{kind} {health.controller}" if health.controller >= 0 else "no controller"
    away = f" ({counts.brokers_away} down)" if counts.brokers_away else ""
    well = "all led and in sync" if counts.topics else "as in a new cluster, or after the loss of ZooKeeper's data"
    wrong = ", ".join(_wrong(counts)) or well
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
    """Return the state for a monitoring system, which asks for the present. A replayed past is not known."""
    state = _PROBE_STATES[health.state.state]
    return ProbeState.UNKNOWN if state is ProbeState.OK and health.doubts else state


def health_line(health: Health) -> str:
    """Return the state with its main reason on one line."""
    state = health.state
    urgent = (f"{each.alert}: {each.cause}" for each in health.findings if each.severity is not Severity.INFO)
    if probe_state(health) is ProbeState.OK:
        said = _summary(health)
    elif probe_state(health) is ProbeState.UNKNOWN:
        said = next(iter(health.doubts), state.reason)
    else:
        said = next(urgent, state.event)
    return f"{health.cluster}: {said}"


def probe_line(health: Health) -> str:
    """Return the one line of a monitoring plugin, with its performance data."""
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
    return f"{plugin_line(probe_state(health), health_line(health))} | {performance}"


def plugin_line(state: ProbeState, said: str) -> str:
    """Return a plugin's text without bars, because a bar would begin its performance data."""
    return f"KAFKA {state.name} - {printable(said).replace('|', '/')}"
