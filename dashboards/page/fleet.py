"""All clusters in a title, a headline and groups of one reason, so that two hundred fit on a screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from questions.overview.overview import Overview
from questions.state import WORDS, ClusterState, State
from wording.sentences import counted

MARKS: Final = {State.AFFECTED: "● ", State.UNKNOWN: "? ", State.DEGRADED: "▲ ", State.WELL: ""}
_TITLE_LENGTH: Final = 60
_LINES_OF_A_REASON: Final = 8  # more clusters of one reason fold into a grid
_LINES_OF_WELL: Final = 5
_LINES_OF_ALL_WELL: Final = 20


class FleetGroup(NamedTuple):
    """Clusters that are alike. Without a title each one has a line of its own."""

    clusters: Sequence[Overview]
    name: str = ""
    title: str = ""
    is_open: bool = True
    is_brief: bool = False


def title_of(state: ClusterState, cluster: str) -> str:
    """Return the title of a cluster's page, with a mark for its state."""
    what = f": {state.reason or state.event}" if state.state is not State.WELL else ""
    name = cluster if len(cluster) <= _TITLE_LENGTH else f"{cluster[:_TITLE_LENGTH]}…"
    return f"{MARKS[state.state]}{name}{what.replace('`', '')}"


def fleet_title(fleet: Sequence[Overview]) -> str:
    """Return the title of the page of all clusters."""
    bad = _bad(fleet)
    if not bad:
        return f"{counted(len(fleet), 'cluster')} · Kontrast"
    return f"{MARKS[bad[0].state.state]}{len(bad)} of {counted(len(fleet), 'cluster')}: {_headline(bad)}"


def fleet_headline(fleet: Sequence[Overview]) -> str:
    """Return the worst cluster and its event, or the clusters that are not known for one reason."""
    bad = _bad(fleet)
    if bad:
        return f"{_headline(bad)}."
    return "The cluster is well." if len(fleet) == 1 else f"All {len(fleet)} clusters are well."


def fleet_counts(fleet: Sequence[Overview]) -> str:
    """Return how many clusters are in each state."""
    counts = Counter(each.state.state for each in fleet)
    said = [f"{counts[state]} {WORDS[state]}" for state in State if counts[state]]
    return f"{counted(len(fleet), 'cluster')}: {', '.join(said)}."


def fleet_groups(fleet: Sequence[Overview]) -> list[FleetGroup]:
    """Return the clusters by reason where many have one, in the order of their worst. Well ones always fold."""
    reasons = list(map(_reason, fleet))
    alike = Counter(reasons)
    groups: dict[tuple[str, str] | None, list[Overview]] = {}
    for each, reason in zip(fleet, reasons, strict=True):
        is_alike = alike[reason] > _LINES_OF_A_REASON or each.state.state is State.WELL
        groups.setdefault(reason if is_alike else None, []).append(each)
    return [FleetGroup(found) if key is None else _folded(found, fleet) for key, found in groups.items()]


def _folded(alike: Sequence[Overview], fleet: Sequence[Overview]) -> FleetGroup:
    state, reason = alike[0].state, _reason(alike[0])[1]
    if state.state is State.WELL:
        most = _LINES_OF_WELL if len(alike) < len(fleet) else _LINES_OF_ALL_WELL
        title = f"{counted(len(alike), 'cluster', 'is')} well"
        return FleetGroup(alike, "well", title, len(alike) <= most, len(alike) > _LINES_OF_WELL)
    title = f"{counted(len(alike), 'cluster')}: {state.words}, {reason}"
    return FleetGroup(alike, f"{state.words}, {reason}", title, state.state is not State.UNKNOWN, is_brief=True)


def _reason(each: Overview) -> tuple[str, str]:
    """Return the state in words, and the reason by which clusters are alike: the worst alert of the worst incident."""
    alerts = each.incidents[0].alerts if each.incidents else each.own_alerts
    of_alert = alerts[0].alert if alerts else each.state.event
    is_plain = each.state.state in (State.WELL, State.UNKNOWN)
    return each.state.words, each.state.reason if is_plain else of_alert


def _bad(fleet: Sequence[Overview]) -> list[Overview]:
    """Return the clusters that are not well now."""
    return [each for each in fleet if each.state.state is not State.WELL]


def _headline(bad: Sequence[Overview]) -> str:
    first = bad[0].state
    alike = [each for each in bad if first.reason and each.state.reason == first.reason]
    if len(alike) > 1:
        return f"{counted(len(alike), 'cluster', 'is')} not known: {first.reason}"
    return title_of(first, bad[0].cluster).removeprefix(MARKS[first.state]).rstrip(".")
