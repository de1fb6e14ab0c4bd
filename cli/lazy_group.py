"""A group of commands that knows them by name and imports one when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from cli.interrupts import interrupt_at_ctrl_c

Sections = Mapping[str, Mapping[str, str]]
"""The commands of each section of a help page, each with its line there."""


class LazyGroup(click.Group):
    """A group whose commands are each in the module of its name in one package."""

    def __init__(self, *arguments: Any, package: str, sections: Sections, **extra: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **extra)
        self._package = package
        self._sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the help page."""
        return [name for commands in self._sections.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(importlib.import_module(f"{self._package}.{cmd_name}"), cmd_name)
        interrupt_at_ctrl_c()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of the help page."""
        for section, commands in self._sections.items():
            with formatter.section(section):
                formatter.write_dl(list(commands.items()))
