"""Form of a check: its subject, the effect on the migration, and the fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from migration.preflight.tree import Tree

Patch: TypeAlias = tuple[int, int, int]
"""A release with all three numbers, like 3.6.2."""


class Hazard(Enum):
    """The effect of a finding on the migration."""

    LOSES = "loses"
    KILLS = "kills"
    STICKS = "sticks"
    BLOCKS = "blocks"
    ROLLBACK = "rollback"

    @property
    def meaning(self) -> str:
        """Return the effect on the cluster as a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Hazard.LOSES: "The migration goes on, and data, settings or leaders are lost silently.",
    Hazard.KILLS: "The quorum claims /controller, fails to copy and ends, one controller after the other. No "
    "broker is controller and no dead leader is replaced until the znode is fixed.",
    Hazard.STICKS: "The metadata is copied, but the copy back into ZooKeeper fails for ever. Brokers in "
    "ZooKeeper mode no longer receive changes.",
    Hazard.BLOCKS: "The migration waits, or a broker or controller does not start. ZooKeeper's controller "
    "continues, and no data is lost.",
    Hazard.ROLLBACK: "It affects only the way back to ZooKeeper.",
}


class Fault(NamedTuple):
    """A faulty znode with its fault, without secrets."""

    znode: str
    detail: str


def nothing_hinders(_tree: Tree) -> str:
    """Return an empty text, because the check is always possible."""
    return ""


def nothing(_tree: Tree) -> Iterable[Fault]:
    """Return no findings, for a fact that no znode shows."""
    return ()


@dataclass(frozen=True, slots=True)
class Check:
    """One check. As a decorator it takes its name from the function that finds faults, and `what` from its docstring.

    `reads` names the znodes that the check needs, with all znodes below them. `hindered` returns why a tree does not
    allow the check, or an empty text. `incomplete` returns which part stays open, or an empty text. The defect exists
    from the release `since` until `fixed_in`, where None is no limit. A check that only `advises` finds no fault.
    """

    outcome: Hazard
    shown_by: str
    means: str
    mend: str
    source: str
    name: str = ""
    what: str = ""
    find: Callable[[Tree], Iterable[Fault]] = nothing
    reads: tuple[str, ...] = ()
    hindered: Callable[[Tree], str] = nothing_hinders
    incomplete: Callable[[Tree], str] = nothing_hinders
    since: Patch | None = None
    fixed_in: Patch | None = None
    advises: bool = False
    loses_all: bool = False

    def __call__(self, find: Callable[[Tree], Iterable[Fault]]) -> Check:
        """Return the check that this function makes."""
        what = (find.__doc__ or "").removeprefix("Find ").removesuffix(".")
        return replace(self, name=find.__name__.replace("_", "-"), what=what, find=find)

    def concerns(self, oldest: Patch, newest: Patch) -> bool:
        """Return whether a release between these two has the defect."""
        return (self.since is None or newest >= self.since) and (self.fixed_in is None or oldest < self.fixed_in)

    @property
    def releases(self) -> str:
        """Return the releases that have the defect, in words."""
        parts = []
        if self.since:
            parts.append(f"from {written(self.since)}")
        if self.fixed_in:
            parts.append(f"before {written(self.fixed_in)}")
        return ", ".join(parts) or "all"


def written(release: tuple[int, ...]) -> str:
    """Return a release in Kafka's notation, like 3.6.2."""
    return ".".join(map(str, release))
