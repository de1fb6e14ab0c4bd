"""The `kontrast` command: its subcommands, what they have in common, and how an error ends the process.

A subcommand is imported when it is called, so that none pays for another's libraries. What one does is in its own file.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Final, NoReturn

import click

from cli.interrupts import INTERRUPTED, leave_at_ctrl_c
from cli.lazy_group import LazyGroup, Section
from cli.printing import output
from cli.printing.standard_output import print_line
from cli.running import ExitCode
from cli.settings.config import ConfigError

# Each is in the module of its name in its section's package; beside it, its line in `kontrast --help`.
_SECTIONS: Final = {
    "Run": Section(
        "cli.commands.run",
        {
            "init": "Write a configuration for a cluster, by one complete read of its ZooKeeper.",
            "up": "Run watch, stream and serve of one configuration file, and start again what ends.",
            "watch": "Watch clusters' ZooKeeper and forward every change into a stream.",
            "stream": "Derive metadata, transitions, requests and alerts in a Spark job.",
            "serve": "Serve /metrics for Prometheus, deliver alerts to Alertmanager, compare the view of brokers.",
            "demo": "Play a short story on an embedded cluster.",
        },
    ),
    "Ask": Section(
        "cli.commands.ask",
        {
            "check": "Say whether a cluster is well: what is wrong, worst first, since when, and what to do.",
            "explain": "Say why a partition, a topic, a broker or the controller is as it is.",
            "timeline": "Print what happened in a cluster, in order; or write a page with a picture of it.",
            "report": "Report availability, failovers and alerts of one or hundreds of clusters over weeks.",
            "lint": "Say what lies in ZooKeeper and will hurt, what it will do, and the mend.",
            "whatif": "Say what would follow if brokers were lost, shut down or restored, or partitions reassigned.",
            "restartable": "Answer whether a broker may be restarted now, with every reason against it.",
            "diff": "Compare snapshots, moments, ZooKeeper with what must be, or with what brokers answer clients.",
            "place": "Print an assignment of replicas as reassignment JSON, and check it as `whatif` does.",
            "alerts": "Print the alerts that are open now, worst first.",
            "show": "Print the rows of an output for people.",
            "snapshot": "Print a cluster's metadata as its ZooKeeper has it now.",
            "replay": "Work out what the controller did from the files of a ZooKeeper server.",
            "migration": "Ask about a cluster's way to KRaft: what would stop, kill or spoil it.",
        },
    ),
    "Operate": Section(
        "cli.commands.operate",
        {
            "status": "Say whether watch, stream and serve are up, how far behind, and what is wrong.",
            "topics": "Compare the Kafka topics of stream and outputs with the brokers, and make or mend them.",
            "size": "Print cores, memory, disk and topic settings for a fleet.",
            "maintenance": "Say that people work on brokers; what follows from it pages nobody then.",
            "support-bundle": "Write status, settings and a recording into a file, for who helps you.",
            "forget": "Drop a cluster that is not watched any more from everything that is shown.",
        },
    ),
}

_EXIT_CODES: Final = """\b
Exit codes:
  0    done, or stopped by a first Ctrl-C or SIGTERM
  1    failed unexpectedly, or a check found something
  2    a flag, a setting or the configuration file is wrong
  3    what is needed cannot be used: ZooKeeper, Kafka, a journal, a checkpoint, a port
  130  a question that Ctrl-C stopped, another command that a second one ended (143: SIGTERM)
"""


class _Kontrast(LazyGroup):
    """The commands, and how a mistake of their user ends."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401 (click's own)
        """Run a command and exit; every mistake of its user ends as one sentence."""
        output.configure()
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except (click.UsageError, ConfigError) as error:
            output.complain(_sentence(error))
            code = ExitCode.USAGE
        except click.ClickException as error:
            output.complain(error.format_message())
            code = ExitCode.FAILED
        except click.Abort:
            code = INTERRUPTED
        if threading.current_thread() is threading.main_thread():
            leave_at_ctrl_c()  # the interpreter's end would show it as a failure
        sys.exit(int(code or ExitCode.OK))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the whole command line; refuse an argument whose bytes are not UTF-8, which no file or row can hold."""
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError as error:
                raise click.UsageError(f"The argument {argument!r} is not UTF-8.", ctx) from error
        return super().parse_args(ctx, args)


def _sentence(error: click.UsageError | ConfigError) -> str:
    if isinstance(error, ConfigError):
        return str(error)
    command = error.ctx.command_path if error.ctx else "kontrast"
    return f"{error.format_message()} Try '{command} --help'."


def _print_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    import importlib.metadata  # as long to import as all of click: not for every command

    try:
        print_line(f"kontrast {importlib.metadata.version('kontrast')}")
    except importlib.metadata.PackageNotFoundError:
        print_line("kontrast, run from a source tree that is not installed")
    ctx.exit()


@click.group(
    cls=_Kontrast,
    sections=_SECTIONS,
    epilog=_EXIT_CODES,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print it.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    envvar="KONTRAST_LOG_LEVEL",
    help="How much is logged to standard error. [env: KONTRAST_LOG_LEVEL]",
)
@click.option("--json", "as_json", is_flag=True, help="Log one JSON object a line.")
def main(log_level: str, *, as_json: bool) -> None:
    """A second Kafka controller that never writes.

    It shows what a ZooKeeper-mode cluster's controller must do, and where the real one differs.
    """
    output.configure(log_level.lower(), as_json=as_json)
