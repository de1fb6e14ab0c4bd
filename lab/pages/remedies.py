"""Print `reference/remedies.md` from the remedies in `controller/says/remedies/`. `make docs` runs it."""

from __future__ import annotations

import sys
import textwrap

from controller.says.remedies import brokers, controllership, migration, partitions, reassignments, topics
from controller.says.remedies.remedy import Remedy, Way

_SUBJECTS = {
    "The controller": controllership,
    "Brokers": brokers,
    "Partitions": partitions,
    "Topics": topics,
    "Reassignments": reassignments,
    "The way to KRaft": migration,
}
SECTIONS = {
    title: tuple(remedy for remedy in vars(subject).values() if isinstance(remedy, Remedy))
    for title, subject in _SUBJECTS.items()
}

_USUALLY = ("1.1.1", "2.8.2", "3.9.2")  # releases of most trials
_WIDTH = 120

_HEAD = """# Remedies

Read this page before you follow an advice that changes a cluster. Alerts, `kontrast lint`, `kontrast
explain`, `kontrast migration check` and the runbooks take their advice from this list, so one finding has one advice.

Kontrast prints the commands of each remedy with the names of your cluster, and [the runbooks](../runbooks) have them
too. A nightly test builds each situation on real brokers, follows the commands as they are printed, and checks the
promised end. It runs on 1.1.1, 2.8.2 and 3.9.2 unless a remedy names others. A remedy that was not tried has no
command.

While the next controller would do harm, Kontrast advises against every remedy that moves the controller, and prints
first what mends the cause: an unreadable znode, a topic without its id, or a znode that only one login may write. A
step whose condition is false, such as the start of a live broker, is not printed.
"""


def remedies_page() -> str:
    """Return the page."""
    sections = ["\n".join([f"## {section}\n", *map(_entry, remedies)]) for section, remedies in SECTIONS.items()]
    return "\n".join([_HEAD, *sections]).rstrip() + "\n"


def _entry(remedy: Remedy) -> str:
    before = [f"Only if {remedy.requires}."] if remedy.requires else []
    before += [f"**This loses {remedy.loses}.**"] if remedy.loses else []
    tried = f"Tried on {', '.join(remedy.tried_on)}." if remedy.tried_on else "Not tried."
    after = [remedy.changes] if remedy.tried_on == _USUALLY else [remedy.changes, tried]
    if len({way.says for way in remedy.ways}) == 1:
        return f"### {remedy.name}\n\n{_wrapped(' '.join([*before, remedy.ways[0].says, *after]))}\n"
    ways = "\n".join(f"- {_bounds(way)}: {way.says}" for way in remedy.ways)
    return f"### {remedy.name}\n\n{_wrapped(' '.join([*before, *after]))}\n\n{ways}\n"


def _bounds(way: Way) -> str:
    """Return the releases of a way, of which the newest comes first."""
    return f"from {_word(way.since)}" if way.since else "before"


def _word(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.stdout.write(remedies_page())
