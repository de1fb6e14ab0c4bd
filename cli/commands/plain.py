"""Command of a plain question, from the question alone."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import click

from cli.printing import standard_error
from cli.printing.standard_output import print_answer
from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.settings.question_options import question_of, question_options
from cli.sources.asking import ask_question
from cli.sources.options import source_of, source_options
from questions import everywhere

if TYPE_CHECKING:
    from questions.picture import Picture
    from questions.question import PlainAnswer

_EPILOG: Final = """\b
Examples:
{examples}

\b
Exit codes:
  0  {good}
  1  {bad}
  2  a flag, a setting or the address is wrong
  3  the source cannot be reached
"""


def plain_command(name: str) -> click.Command:
    """Return the command of the plain question of this name."""
    question = everywhere.question(name)
    examples = "\n".join(f"  kontrast {name} {arguments}" for arguments in question.examples)
    epilog = _EPILOG.format(examples=examples, good=question.good, bad=question.bad)

    @click.command(name, help=inspect.getdoc(question), epilog=epilog, cls=GroupedCommand)
    @source_options
    @question_options(question)
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    def command(*, as_json: bool, **flags: Any) -> int:  # noqa: ANN401 (click's own)
        def show(answer: PlainAnswer, _: Picture) -> ExitCode:
            print_answer([answer], answer.said(), as_json=as_json)
            if answer.gap:
                standard_error.warn(answer.gap)
            return ExitCode.OK if answer.is_good else ExitCode.FAILED

        return ask_question(source_of(flags), question_of(question, flags), flags, show)

    return command
