"""Teams that own topics, consumer groups and transactional ids, by patterns of their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

import msgspec

from controller.rules.topic_ranks import UNRANKED, Rank, TopicRanks
from wording.sentences import joined


class Team(msgspec.Struct, frozen=True):
    """A team with its contact, such as a channel or a telephone number."""

    team: str
    contact: str = ""

    def __str__(self) -> str:
        return f"{self.team} ({self.contact})" if self.contact else self.team


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a pattern in `[topics]`."""

    team: str = ""
    contact: str = ""
    rank: Rank = UNRANKED

    def __post_init__(self) -> None:
        if self.contact and not self.team:
            raise ValueError("contact needs team")


class Teams:
    """The patterns in the order of the file. The first pattern that matches a name decides."""

    def __init__(self, entries: Mapping[str, _Entry] | None = None) -> None:
        self._entries = dict(entries or {})
        self.ranks: TopicRanks = tuple((pattern, entry.rank) for pattern, entry in self._entries.items())
        self.team_of = lru_cache(10_000)(self._team_of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Teams) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self.ranks)

    def teams_of(self, names: Iterable[str]) -> dict[Team | None, list[str]]:
        """Return the names by team, the most important team first. Names of no team come last, under None."""
        by_team: dict[Team | None, list[str]] = {}
        for name in names:
            by_team.setdefault(self.team_of(name), []).append(name)
        by_rank = sorted(self._entries.values(), key=lambda entry: entry.rank)
        order = list(dict.fromkeys(Team(each.team, each.contact) for each in by_rank if each.team))
        return {team: by_team[team] for team in (*order, None) if team in by_team}

    def _team_of(self, name: str) -> Team | None:
        entry = next((entry for pattern, entry in self._entries.items() if fnmatchcase(name, pattern)), None)
        return Team(entry.team, entry.contact) if entry is not None and entry.team else None


NO_TEAMS: Final = Teams()


def read_teams(table: Mapping[str, Any]) -> Teams:
    """Return the teams of the table `[topics]`. Raise ValueError with the pattern and the expected form."""
    entries = {}
    for pattern, value in table.items():
        try:
            entries[pattern] = msgspec.convert(value, _Entry)
        except msgspec.ValidationError as error:
            raise ValueError(f'"{pattern}": {error}. Expected {{ team = "NAME", contact = "…", rank = 1 }}') from None
    return Teams(entries)


def named(teams: Iterable[Team | None]) -> str:
    """Return the teams in a sentence, or an empty text without one: "teams payments (#pay) and audit"."""
    known = [str(team) for team in teams if team is not None]
    return f"team{'s' if len(known) > 1 else ''} {joined(known)}" if known else ""
