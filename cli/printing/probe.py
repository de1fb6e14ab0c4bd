"""Health of a cluster as the one line of a monitoring probe."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from controller.contract.alert_row import Severity
from questions.check.check import Checked, Health
from questions.check.state import State
from transport.printable import printable


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


def probe_state(health: Checked) -> ProbeState:
    """Return the state for a monitoring system, which asks for the present."""
    state = _PROBE_STATES[health.state.state]
    return ProbeState.UNKNOWN if state is ProbeState.OK and health.doubts else state


def health_line(health: Checked) -> str:
    """Return the state with its main reason on one line."""
    state = health.state
    urgent = (f"{each.alert}: {each.cause}" for each in health.findings if each.severity is not Severity.INFO)
    if probe_state(health) is ProbeState.OK:
        said = health.summary
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
