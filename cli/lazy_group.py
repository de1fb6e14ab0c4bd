"""Group of commands that knows their names, and imports a command only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from cli.interrupts import interrupt_at_ctrl_c
from wording.suggestions import did_you_mean, near


class Section(NamedTuple):
    """A section of a help page: the package of its commands, and each command with its help line."""

    package: str
    commands: Mapping[str, str]


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
        return [name for section in self._sections.values() for name in section.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, imported now."""
        package = next((each.package for each in self._sections.values() if cmd_name in each.commands), None)
        if package is None:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"{package}.{module}"), module)
        interrupt_at_ctrl_c()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of the help page."""
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(list(section.commands.items()))
