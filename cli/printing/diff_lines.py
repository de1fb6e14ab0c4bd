"""Differences between two sides of a cluster, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from rich.console import RenderableType

from cli.printing.answers import line
from cli.printing.standard_output import print_json, print_renderables
from questions.diff.differences import Difference, Differences
from questions.diff.side import Kind, Value
from wording.sentences import counted

_NAMED: Final = 20


def print_differences(differences: Differences, *, is_all: bool) -> None:
    """Print the number of differences, and the worst or all."""
    print_renderables(_lines(differences, None if is_all else _NAMED))


def print_json_lines(differences: Differences) -> None:
    """Print one JSON object a difference, and last one with the counts."""
    sides = {"a": differences.a, "b": differences.b}
    for one in differences.differences:
        print_json({"object": "difference", **sides, **msgspec.to_builtins(one)})
    counts = {name: getattr(differences, name) for name in ("compared", "differing", "fields")}
    print_json({"object": "compared", **sides, **counts})


def _lines(differences: Differences, most: int | None) -> Iterator[RenderableType]:
    title = (f"{differences.a} → {differences.b}", "bold")
    parts = [_share(kind, count, differences.compared[kind]) for kind, count in differences.differing.items() if count]
    if not parts:
        compared = ", ".join(counted(count, kind) for kind, count in differences.compared.items() if count)
        yield line(title, ": ", ("the same", "green"), f" ({compared or 'nothing to compare'})")
        return
    yield line(title, f": differences in {', '.join(parts)}")
    named = differences.differences[:most]
    for one in named:
        yield line(f"{one.subject}: {_said(one)}", indent=2)
    if left := len(differences.differences) - len(named):
        fields = ", ".join(f"{name} {count}" for name, count in sorted(differences.fields.items()))
        yield line(f"and {left} more, which --all names (in all: {fields})", indent=2)


def _share(kind: str, differing: int, compared: int) -> str:
    return "the controller" if kind == Kind.CONTROLLER.value else f"{differing} of {counted(compared, kind)}"


def _said(one: Difference) -> str:
    if one.only_in is not None:
        return f"only in {one.only_in}"
    return ", ".join(f"{_words(field.name)} {_value(field.a)} → {_value(field.b)}" for field in one.fields)


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
