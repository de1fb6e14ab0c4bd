"""Form of a remedy, with its precondition, text, commands, change and loss, and the releases where it was tried."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

Release = tuple[int, int]

_NEWEST: Final[Release] = (3, 9)
_FAILOVER: Final = "elete /controller"


class Way(msgspec.Struct, frozen=True):
    """Way to carry out a remedy in the releases from `since` on, None for all, of which the newest comes first.

    `says` has imperative sentences. `commands` run in order. Words in capitals stand for names.
    """

    says: str
    commands: tuple[str, ...] = ()
    since: Release | None = None

    def fits(self, release: Release) -> bool:
        """Return whether the release has this way."""
        return self.since is None or release >= self.since


def by_shell(says: str, *commands: str) -> tuple[Way, ...]:
    """Return the only way, by zookeeper-shell.sh."""
    return (Way(says, tuple(f"zookeeper-shell.sh ZOOKEEPER {command}" for command in commands)),)


def by_tool(says: str, since: Release, *commands: str) -> tuple[Way, ...]:
    """Return the way from `since` on, where the tool asks a broker, and the earlier one, by what replaces SERVER."""
    ways = (("--bootstrap-server BOOTSTRAP", since), ("--zookeeper ZOOKEEPER", None))
    return tuple(Way(says, tuple(each.replace("SERVER", asked) for each in commands), at) for asked, at in ways)


def by_removal(says: str, path: str) -> tuple[Way, ...]:
    """Return the ways to delete a znode with all below it."""
    verbs: tuple[tuple[str, Release | None], ...] = (("deleteall", (2, 4)), ("rmr", None))
    return tuple(Way(says, (f"zookeeper-shell.sh ZOOKEEPER {verb} {path}",), since) for verb, since in verbs)


class Need(Enum):
    """Condition of a step or remedy that an answer observes. A step whose condition is false is not printed."""

    CONTROLLER_ACTS = "the controller acts"
    BROKERS_AWAY = "one of the named brokers is away"
    BROKERS_LIVE = "all named brokers are live"


class Task(NamedTuple):
    """Step that changes no znode, such as a look or the start of a broker, and its conditions."""

    says: str
    needs: tuple[Need, ...]


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """An act that changes a cluster. A look at logs or znodes changes nothing, so it is no remedy.

    `requires` is a clause. An answer that has observed the precondition prints the remedy's `met`. Any other answer
    prints the clause too, and leaves out a remedy that loses anything. `needs` are conditions that every answer
    observes. A failover also needs a cluster in which the next controller does no harm (`view/advice.py`). `loses` is a
    noun, printed before the advice.
    """

    name: str
    ways: tuple[Way, ...]
    requires: str = ""
    needs: tuple[Need, ...] = ()
    changes: str
    loses: str = ""
    tried_on: tuple[str, ...] = ()  # releases of the clusters on which `tests/remedies` tried the remedy

    def given(self, requires: str, *needs: Need) -> Remedy:
        """Return this remedy for a situation with another precondition, which is observed if it has `needs`."""
        return replace(self, requires=requires, needs=needs)

    @property
    def met(self) -> Remedy:
        """Return this remedy without its precondition, which was observed."""
        return replace(self, requires="")

    def filled(self, **names: object) -> Remedy:
        """Return this remedy with names for the words in capitals."""
        ways = self.ways
        for word, name in names.items():
            ways = tuple(
                replace(
                    way,
                    says=way.says.replace(word, str(name)),
                    commands=tuple(command.replace(word, str(name)) for command in way.commands),
                )
                for way in ways
            )
        return replace(self, ways=ways)

    def way(self, release: Release = _NEWEST) -> Way:
        """Return the way in this release."""
        return next(way for way in self.ways if way.fits(release))

    def says(self, release: Release = _NEWEST) -> str:
        """Return the precondition, the advice and the loss in this release."""
        says = self.way(release).says
        if self.requires:
            says = f"If {self.requires}, {says[0].lower()}{says[1:]}"
        return f"{says} You lose {self.loses}." if self.loses else says

    @property
    def moves_controller(self) -> bool:
        """Return whether the remedy includes a failover, which needs znodes that the next controller can load."""
        return any(_FAILOVER in step for way in self.ways for step in (way.says, *way.commands))


class Advice(msgspec.Struct, frozen=True):
    """Advice of an answer, with harmless places to look at, steps, and the remedies in the order of the text."""

    look: str = ""
    remedies: tuple[Remedy, ...] = ()
    steps: tuple[Task, ...] = ()

    def in_words(self, release: Release = _NEWEST) -> str:
        """Return one text for a person."""
        steps, remedies = (each.says for each in self.steps), (each.says(release) for each in self.remedies)
        return " ".join(filter(None, (self.look, *steps, *remedies)))
