"""Differences between two sides of a cluster, the worst for clients first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from controller.contract.ids import NO_LEADER
from controller.rules.states import PartitionState
from questions.diff.side import Fields, Kind, Side, Subject, Value
from wording.said import Said, line
from wording.sentences import counted, joined

_NAMED: Final = 20
PRESENCE: Final = "presence"
"""Name of the difference of a subject that only one side has."""

# Worst first. A subject has the place of its worst field.
_WORST_FIRST: Final = (
    (Kind.CONTROLLER, "broker"),
    (Kind.BROKER, "registered"),
    (Kind.BROKER, PRESENCE),
    (Kind.PARTITION, "leader"),
    (Kind.PARTITION, PRESENCE),
    (Kind.PARTITION, "isr"),
    (Kind.PARTITION, "state"),
    (Kind.PARTITION, "deleting"),
    (Kind.PARTITION, "replicas"),
)
_PLACES: Final = {what: place for place, what in enumerate(_WORST_FIRST)}
_OFFLINE: Final = (("leader", NO_LEADER), ("state", PartitionState.OFFLINE.word))


class Field(msgspec.Struct, frozen=True):
    """Field that differs, with both values."""

    name: str
    a: Value
    b: Value


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Subject with different fields. `only_in` names the only side that has it."""

    kind: str
    subject: str
    only_in: str | None = None  # the side's name
    fields: tuple[Field, ...] = ()

    @property
    def words(self) -> str:
        """Return the difference without its subject."""
        if self.only_in is not None:
            return f"only in {self.only_in}"
        return ", ".join(f"{_words(field.name)} {_value(field.a)} → {_value(field.b)}" for field in self.fields)


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a comparison, worst difference first.

    `compared` and `differing` count subjects by kind. `fields` counts the differences of each field, such as "partition
    leader".
    """

    a: str
    b: str
    compared: Mapping[str, int]
    differing: Mapping[str, int]
    fields: Mapping[str, int]
    differences: tuple[Difference, ...]

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object for each difference, and a last object with the counts."""
        sides = {"a": self.a, "b": self.b}
        for one in self.differences:
            yield {"object": "difference", **sides, **msgspec.to_builtins(one)}
        counts = {"compared": self.compared, "differing": self.differing, "fields": self.fields}
        yield {"object": "compared", **sides, **counts}

    def said(self, *, is_all: bool) -> Said:
        """Yield the number of differences, and the worst or all. Subjects with equal differences share a line."""
        title = (f"{self.a} → {self.b}", "strong")
        parts = [_share(kind, count, self.compared[kind]) for kind, count in self.differing.items() if count]
        if not parts:
            compared = ", ".join(counted(count, kind) for kind, count in self.compared.items() if count)
            yield line(title, ": ", ("the same", "ok"), f" ({compared or 'nothing to compare'})")
            return
        yield line(title, f": differences in {', '.join(parts)}")
        alike: dict[str, list[str]] = {}
        for one in self.differences:
            alike.setdefault(one.words, []).append(one.subject)
        named = list(alike.items())[: None if is_all else _NAMED]
        for words, subjects in named:
            yield line(f"{joined(subjects, most=len(subjects) if is_all else _NAMED)}: {words}", indent=2)
        if left := len(self.differences) - sum(len(subjects) for _, subjects in named):
            fields = ", ".join(f"{name} {count}" for name, count in sorted(self.fields.items()))
            yield line(f"and {left} more, which --all names (in all: {fields})", indent=2)


def _share(kind: str, differing: int, compared: int) -> str:
    return "the controller" if kind == Kind.CONTROLLER.value else f"{differing} of {counted(compared, kind)}"


def _words(name: str) -> str:
    return name.replace("_", " ") if name != "isr" else "ISR"


def _value(value: Value) -> str:
    match value:
        case tuple():
            return f"[{','.join(map(str, value))}]"
        case bool():
            return "yes" if value else "no"
        case None | -1:
            return "none"
    return str(value)


def diff(a: Side, b: Side, topics: Collection[str] = (), lasting: Differences | None = None) -> Differences:
    """Return the differences of the sides, for partitions only those of `topics` if given.

    With an earlier result in `lasting`, return only differences that it also had, with the same value of `a`.
    """
    subjects = [subject for subject in a.subjects.keys() | b.subjects.keys() if _is_asked(subject, topics)]
    found = {subject: _differing(a.subjects.get(subject), b.subjects.get(subject)) for subject in subjects}
    if lasting is not None:
        earlier = {(one.subject, field.name, field.a) for one in lasting.differences for field in one.fields}
        found = {
            subject: tuple(field for field in fields if (str(subject), field.name, field.a) in earlier)
            for subject, fields in found.items()
        }
    found = {subject: fields for subject, fields in found.items() if fields}
    ordered = sorted(found, key=lambda subject: (*_place(subject, found[subject]), _name_of(subject)))
    return Differences(
        a=a.name,
        b=b.name,
        compared=_counts(subjects),
        differing=_counts(found),
        fields=Counter(f"{subject.kind.value} {field.name}" for subject in ordered for field in found[subject]),
        differences=tuple(_difference(subject, found[subject], a, b) for subject in ordered),
    )


def _is_asked(subject: Subject, topics: Collection[str]) -> bool:
    return not topics or subject.kind is not Kind.PARTITION or subject.topic in topics


def _differing(a: Fields | None, b: Fields | None) -> tuple[Field, ...]:
    if a is None or b is None:
        return (Field(PRESENCE, a is not None, b is not None),)
    return tuple(Field(name, a[name], b[name]) for name in a if name in b and not _same(name, a[name], b[name]))


def _same(name: str, a: Value, b: Value) -> bool:
    if name == "isr" and isinstance(a, tuple) and isinstance(b, tuple):
        return set(a) == set(b)  # the order of an ISR does not count
    return a == b


def _place(subject: Subject, fields: tuple[Field, ...]) -> tuple[int, int]:
    """Return the sort key. Partitions that one side has offline come first, then the worst field decides."""
    is_offline = any((field.name, value) in _OFFLINE for field in fields for value in (field.a, field.b))
    return not is_offline, min(_PLACES.get((subject.kind, field.name), len(_PLACES)) for field in fields)


def _name_of(subject: Subject) -> tuple[str, str, int]:
    return subject.kind.value, subject.topic, subject.number


def _difference(subject: Subject, fields: tuple[Field, ...], a: Side, b: Side) -> Difference:
    alone = next((a.name if field.a else b.name for field in fields if field.name == PRESENCE), None)
    return Difference(kind=subject.kind.value, subject=str(subject), only_in=alone, fields=fields)


def _counts(subjects: Collection[Subject]) -> dict[str, int]:
    counts = Counter(subject.kind.value for subject in subjects)
    return {kind.value: counts[kind.value] for kind in Kind}
