"""Every text that advises a person, by finding and face, and the remedies in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from controller.says.alert_kinds.kinds import ALERT_KINDS
from controller.says.remedies.remedy import Remedy, Way
from migration.preflight.report import CHECKS as OBSTACLES
from questions.everywhere.lint import CHECKS as LINT
from tests.remedies.table import REMEDIES

RUNBOOKS: Final = Path(__file__).parents[2] / "docs" / "runbooks"

# One finding by its names in alerts, in `lint` and in `migration check`. An alert's runbook has the alert's name.
FINDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "a topic lost its id": ("MissingTopicId", "missing-topic-id", "topic-without-id"),
    "two topics have one id": ("DuplicateTopicId", "duplicate-topic-id", "shared-topic-id"),
    "no controller can load a topic": ("TopicUnloadable", "unloadable-topic", "topic-no-json"),
    "an entry deletes no topic": ("DeletionIgnored", "deletion-of-no-topic"),
    "an assignment was edited": ("AssignmentEdited", "leader-or-isr-not-assigned"),
    "a partition's state is left": ("orphan-state", "stray-state"),
    "a topic's settings are left": ("settings-of-no-topic", "orphan-config"),
    "a broker is absent": ("BrokerAbsent", "dead-replicas"),
    "a broker never registered": ("BrokerUnknown", "replicas-of-unknown-brokers"),
    "a registration has no session": ("BrokerWithoutSession", "broker-without-session"),
    "notifications wait": ("NotificationBacklog", "notifications-not-read"),
    "a topic has one replica": ("TopicWithOneReplica", "one-replica"),
    "an earlier attempt left /migration": ("OldMigration", "earlier-attempt"),
}
_NAMES: Final = ("ZOOKEEPER", "BOOTSTRAP", "BROKER", "TOPIC", "PARTITION", "EPOCH", "CONTENT", "ASSIGNMENT", "FORMER")
_RUNS: Final = re.compile(r"(?:zookeeper-shell|kafka-[a-z-]+)\.sh [^`\n]*")
_WRITES: Final = re.compile(
    r" (set|delete|deleteall|rmr|create) /| --(alter|execute|cancel|create|delete|election-type)\b"
)


def texts() -> dict[str, str]:
    """Return the advice of each alert, each check of `lint` and each obstacle, by its name."""
    advised = {name: kind.action for name, kind in ALERT_KINDS.items()}
    advised |= {check.name: check.advice.in_words() for check in LINT}
    return advised | {check.name: check.mend for check in OBSTACLES}


def _pattern(text: str) -> re.Pattern[str]:
    escaped = re.escape(text.rstrip("."))
    for name in _NAMES:
        escaped = escaped.replace(name, ".+?")
    return re.compile(f"[{escaped[0].upper()}{escaped[0].lower()}]{escaped[1:]}", re.DOTALL)


def ways() -> Iterator[tuple[Remedy, Way]]:
    """Yield every way of every remedy."""
    for remedy in REMEDIES.values():
        for way in remedy.ways:
            yield remedy, way


def remedies_in(text: str) -> set[str]:
    """Return the names of the remedies whose sentences are in a text. A sentence within a longer one does not count."""
    found = {remedy.name: match.span() for remedy, way in ways() if (match := _pattern(way.says).search(text))}
    within = {
        name
        for name, (begin, end) in found.items()
        for other, (first, last) in found.items()
        if other != name and first <= begin and end <= last and last - first > end - begin
    }
    return found.keys() - within


def without_remedies(text: str) -> str:
    """Return the text without the sentences of remedies."""
    for _, way in sorted(ways(), key=lambda each: -len(each[1].says)):
        text = _pattern(way.says).sub("", text)
    return text


def writing_commands(page: Path) -> list[str]:
    """Return the commands of a runbook that change a cluster, each on one line."""
    text = page.read_text(encoding="utf-8").replace("\\\n", "")
    commands = [" ".join(found.group().split()) for found in _RUNS.finditer(text)]
    return [command for command in commands if _WRITES.search(command)]


def is_of_a_remedy(command: str) -> bool:
    """Return whether a command is one of a remedy, with names for the words in capitals."""
    return any(_pattern(known).fullmatch(command) for _, way in ways() for known in way.commands)
