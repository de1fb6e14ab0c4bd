"""Group of commands that knows their names, and imports a command only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import click

from cli.interrupts import interrupt_at_ctrl_c
from wording.sentences import did_you_mean, near

_LONGEST_HELP = 120  # characters of a command's line


class Section(NamedTuple):
    """A section of a help page: the package of its commands, each with its help line, and plain questions by name."""

    package: str
    commands: Mapping[str, str]
    questions: Collection[str] = ()

    def command(self, name: str) -> click.Command | None:
        """Return the command of this name, imported now."""
        command: click.Command | None = None
        if name in self.questions:
            command = importlib.import_module("cli.commands.question_command").command_of(name)
        elif name in self.commands:
            module = name.replace("-", "_")
            command = getattr(importlib.import_module(f"{self.package}.{module}"), module)
        return command

    def help_lines(self) -> dict[str, str]:
        """Return the line of each command."""
        asked = ((name, self.command(name)) for name in self.questions)
        return {**self.commands, **{name: each.get_short_help_str(_LONGEST_HELP) for name, each in asked if each}}


class SuggestingGroup(click.Group):
    """Group that suggests similar commands after a mistyped name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the arguments. Raise UsageError."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if meant := near(args[0], self.list_commands(ctx)):
                sentence = error.message.removesuffix(".") + did_you_mean(meant)
                raise click.UsageError(sentence, ctx) from error
            raise


class LazyGroup(SuggestingGroup):
    """Group whose commands are modules in the package of their section, named like the command with _ for each -."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Section], **extra: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **extra)
        self._sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help page."""
        return [name for section in self._sections.values() for name in (*section.commands, *section.questions)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, imported now."""
        found = (section.command(cmd_name) for section in self._sections.values())
        command = next((each for each in found if each is not None), None)
        if command is not None:
            interrupt_at_ctrl_c()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of the help page."""
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(list(section.help_lines().items()))
