"""The form of a check: what it looks for, what the migration makes of it, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from migration.preflight.tree import Tree

Patch: TypeAlias = tuple[int, int, int]
"""A release with its last number, like 3.6.2."""


class Outcome(Enum):
    """What the migration makes of what is found."""

    LOSES = "loses"
    KILLS = "kills"
    STICKS = "sticks"
    BLOCKS = "blocks"
    ROLLBACK = "rollback"

    @property
    def meaning(self) -> str:
        """What it does to the cluster, in a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Outcome.LOSES: "The migration goes on, and data, settings or leaders are lost silently.",
    Outcome.KILLS: "The quorum claims /controller, fails to copy and ends, one controller after the other: nobody is "
    "controller, no leader that dies is replaced, until the znode is mended.",
    Outcome.STICKS: "The metadata is copied and the way back into ZooKeeper fails for ever: brokers in ZooKeeper mode "
    "hear of no change any more.",
    Outcome.BLOCKS: "The migration waits, or a broker or controller does not start; ZooKeeper's controller goes on, "
    "and nothing is lost.",
    Outcome.ROLLBACK: "The way there is not touched; the way back to ZooKeeper is.",
}


class Finding(NamedTuple):
    """A znode that is not as it should be, with what is wrong; never with a secret."""

    znode: str
    detail: str


def nothing_hinders(_tree: Tree) -> str:
    """No reason why a check cannot be made."""
    return ""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look for.

    `reads` are the znodes that it needs, with all below them. `hindered` says why it cannot be made of a tree, nothing
    where it can; `incomplete` says of which part nobody answered. `since` and `fixed_in` are the releases that have
    the defect, None for all. What only `advises` is no fault of the cluster.
    """

    name: str
    outcome: Outcome
    what: str
    shown_by: str
    means: str
    mend: str
    source: str
    find: Callable[[Tree], Iterable[Finding]]
    reads: tuple[str, ...] = ()
    hindered: Callable[[Tree], str] = nothing_hinders
    incomplete: Callable[[Tree], str] = nothing_hinders
    since: Patch | None = None
    fixed_in: Patch | None = None
    advises: bool = False

    def concerns(self, oldest: Patch, newest: Patch) -> bool:
        """Whether a release between these two has the defect."""
        return (self.since is None or newest >= self.since) and (self.fixed_in is None or oldest < self.fixed_in)

    @property
    def releases(self) -> str:
        """The releases that have the defect, in words."""
        parts = []
        if self.since:
            parts.append(f"from {written(self.since)}")
        if self.fixed_in:
            parts.append(f"before {written(self.fixed_in)}")
        return ", ".join(parts) or "all"


def written(release: tuple[int, ...]) -> str:
    """A release as Kafka's people write it."""
    return ".".join(map(str, release))


def nothing(_tree: Tree) -> Iterable[Finding]:
    """No findings: what no znode shows."""
    return ()
