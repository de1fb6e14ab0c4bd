"""Options of a command from the arguments of its question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import click

from cli.settings.parameters import HIGHEST_ID
from questions.question import Question, schema_of

_Command = Callable[..., Any]
_Question = TypeVar("_Question", bound=Question)


def question_options(question: type[Question], *, leave_out: Collection[str] = ()) -> Callable[[_Command], _Command]:
    """Return a decorator that adds an option for each argument of the question.

    An argument with several values, such as `topics`, becomes the repeatable option --topic, and a truth value a flag.
    """

    def add(command: _Command) -> _Command:
        for name, schema in reversed(schema_of(question)["properties"].items()):
            if name not in leave_out:
                command = _option(name, schema)(command)
        return command

    return add


def question_of(question: type[_Question], flags: Mapping[str, Any], **others: Any) -> _Question:  # noqa: ANN401 (of any type)
    """Return the question with the given options, and with `others` as further arguments. Raise UsageError."""
    named = {name: flags[name] for name in question.__struct_fields__ if flags.get(name) is not None}
    try:
        return question(**{**named, **others})
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error


def _option(name: str, schema: Mapping[str, Any]) -> Callable[[_Command], _Command]:
    says, flag = schema["description"], f"--{name.replace('_', '-')}"
    if schema.get("type") == "boolean":
        return click.option(flag.replace("--is-", "--"), name, is_flag=True, help=says)
    is_several = schema.get("type") == "array"
    one = schema["items"] if is_several else schema.get("anyOf", [schema])[0]
    if is_several:
        flag, says = flag.removesuffix("s"), f"{says} Repeatable."
    if one["type"] == "integer":
        number = click.IntRange(one.get("minimum", 0), HIGHEST_ID)
        return click.option(flag, name, type=number, multiple=is_several, metavar="N", help=says)
    metavar = flag.rpartition("-")[2].upper()
    return click.option(flag, name, multiple=is_several, metavar=metavar, help=says)
