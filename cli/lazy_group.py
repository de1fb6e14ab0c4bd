"""Group of commands that knows their names, and imports a command only when it is called."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import click

from cli.interrupts import interrupt_at_ctrl_c
from questions import everywhere
from wording.sentences import did_you_mean, near


class Section(NamedTuple):
    """A section of a help page: a package with a module for each command, and the plain questions if it has them."""

    package: str
    has_questions: bool = False

    def names(self) -> list[str]:
        """Return the names of its commands, in the order of the help page."""
        return sorted([*_files(self.package), *(everywhere.names() if self.has_questions else ())])

    def command(self, name: str) -> click.Command | None:
        """Return the command of this name, imported now."""
        command: click.Command | None = None
        if name in _files(self.package):
            module = name.replace("-", "_")
            command = getattr(importlib.import_module(f"{self.package}.{module}"), module)
        elif name in self.names():
            command = importlib.import_module("cli.commands.question_command").command_of(name)
        return command

    def help_line(self, name: str) -> str:
        """Return the first line of the command's file, which is not imported, or the summary of the question."""
        if file := _files(self.package).get(name):
            return (pkgutil.get_data(self.package, file) or b"").partition(b"\n")[0].decode().strip('"')
        return everywhere.question(name).summary()


@cache
def _files(package: str) -> Mapping[str, str]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return {each.name.replace("_", "-"): f"{each.name}{'/__init__' * each.ispkg}.py" for each in modules}


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
        return [name for section in self._sections.values() for name in section.names()]

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
                formatter.write_dl([(name, section.help_line(name)) for name in section.names()])
