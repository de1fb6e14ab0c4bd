"""Options of a command from the arguments of its question, and the whole command of a plain question."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cli.printing import standard_error
from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.settings.parameters import HIGHEST_ID
from cli.sources.asking import ask_question, shown
from cli.sources.options import Chosen, source_options
from questions import everywhere
from questions.question import Question, schema_of

if TYPE_CHECKING:
    from questions.picture import Picture
    from questions.question import PlainAnswer


_Decorated = Callable[..., Any]
_Question = TypeVar("_Question", bound=Question)


def question_options(
    question: type[Question], *, leave_out: Collection[str] = ()
) -> Callable[[_Decorated], _Decorated]:
    """Return a decorator that adds an option for each argument of the question.

    An argument with several values, such as `topics`, becomes the repeatable option --topic, and a truth value a flag.
    """

    def add(command: _Decorated) -> _Decorated:
        for name, schema in reversed(schema_of(question)["properties"].items()):
            if name not in leave_out:
                command = _argument_option(name, schema)(command)
        return command

    return add


def question_of(question: type[_Question], flags: Mapping[str, Any], **others: Any) -> _Question:  # noqa: ANN401 (of any type)
    """Return the question with the given options, and with `others` as further arguments. Raise UsageError."""
    named = {name: flags[name] for name in question.__struct_fields__ if flags.get(name) is not None}
    try:
        return question(**{**named, **others})
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error


def _argument_option(name: str, schema: Mapping[str, Any]) -> Callable[[_Decorated], _Decorated]:
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


_EPILOG: Final = """\b
Examples:
{examples}

\b
Exit codes:
  0  {good}
  1  {bad}
  2  a flag, a setting or the address is wrong
  3  the source cannot be reached, or nothing was found but its data is old or partly hidden by an ACL
"""


def command_of(name: str) -> click.Command:
    """Return the command of the plain question of this name."""
    question = everywhere.question(name)
    examples = "\n".join(f"  kontrast {name} {arguments}" for arguments in question.examples)
    epilog = _EPILOG.format(examples=examples, good=question.good, bad=question.bad)

    @click.command(name, help=inspect.getdoc(question), epilog=epilog, cls=GroupedCommand)
    @source_options
    @question_options(question)
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    def command(*, as_json: bool, chosen: Chosen, **flags: Any) -> int:  # noqa: ANN401 (click's own)
        def show(answer: PlainAnswer, picture: Picture) -> ExitCode:
            from questions.doubts import doubts  # the core is not for --help

            known = not (answer.is_good and doubts(picture))
            code = shown(answer, answer.said(), as_json=as_json, is_known=known, is_good=answer.is_good)
            if answer.gap:
                standard_error.warn(answer.gap)
            return code

        return ask_question(chosen, question_of(question, flags), show)

    return command
