"""The `kontrast` command with its subcommands and their errors.

A subcommand is imported only when it is called, so that no command pays for the libraries of another one. Each
subcommand is a file of its section's package, whose first line is its line of `kontrast --help`, or a plain question.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Final, NoReturn

import click

from cli.interrupts import INTERRUPTED, leave_at_ctrl_c
from cli.lazy_group import LazyGroup, Section
from cli.printing import standard_error
from cli.printing.standard_output import print_line
from cli.running import ExitCode
from cli.settings.errors import ConfigError
from wording.sentences import own_version

_EXIT_CODES: Final = """\b
Exit codes:
  0    done, or stopped by a first Ctrl-C or SIGTERM
  1    failed unexpectedly, or a check found a problem
  2    a flag, a setting or the configuration file is wrong
  3    ZooKeeper, Kafka, a journal, a checkpoint or a port cannot be used
  130  stopped by Ctrl-C, a service by a second one (143: SIGTERM)
"""


class _Kontrast(LazyGroup):
    """The group of all commands, which prints one sentence for each mistake of its user."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401 (click's own)
        """Run a command and exit. Print one sentence for a mistake of its user."""
        standard_error.configure()
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except (click.UsageError, ConfigError) as error:
            standard_error.complain(_sentence(error))
            code = ExitCode.USAGE
        except click.ClickException as error:
            standard_error.complain(error.format_message())
            code = ExitCode.FAILED
        except click.Abort:
            code = INTERRUPTED
        if threading.current_thread() is threading.main_thread():
            leave_at_ctrl_c()  # Ctrl-C during the interpreter's end would look like a failure
        sys.exit(int(code or ExitCode.OK))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Print help for an empty one. Reject arguments that no file or row can hold."""
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError as error:
                raise click.UsageError(f"The argument {argument!r} is not UTF-8.", ctx) from error
        return super().parse_args(ctx, args or ["--help"])


def _sentence(error: click.UsageError | ConfigError) -> str:
    if isinstance(error, ConfigError):
        return str(error)
    command = error.ctx.command_path if error.ctx else "kontrast"
    return f"{error.format_message()} Try '{command} --help'."


def _print_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    installed = own_version("")
    print_line(f"kontrast {installed}" if installed else "kontrast, run from a source tree that is not installed")
    ctx.exit()


@click.group(
    cls=_Kontrast,
    sections={
        "Run": Section("cli.commands.run"),
        "Ask": Section("cli.commands.ask", has_questions=True),
        "Operate": Section("cli.commands.operate"),
    },
    epilog=_EXIT_CODES,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    envvar="KONTRAST_LOG_LEVEL",
    help="Level of the log on standard error. [env: KONTRAST_LOG_LEVEL]",
)
@click.option(
    "--log-library",
    "libraries",
    type=click.Choice(standard_error.LIBRARIES),
    multiple=True,
    help="Log everything that this library does. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Log one JSON object per line.")
def main(log_level: str, libraries: tuple[str, ...], *, as_json: bool) -> None:
    """A second Kafka controller that never writes.

    It shows what a ZooKeeper-mode cluster's controller must do, and where the real one differs.
    """
    standard_error.configure(log_level.lower(), as_json=as_json, libraries=libraries)
