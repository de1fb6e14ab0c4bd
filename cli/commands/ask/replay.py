"""`kontrast replay`: the controller's actions from the files of a ZooKeeper server."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cli.printing import standard_error
from cli.printing.replay_lines import RowWriter
from cli.printing.standard_output import READER_LEFT, flush, is_terminal, reader_has_left
from cli.running import ExitCode, run_until_stopped
from cli.settings.keys import read_pairs
from cli.settings.parameters import MomentParameter, ZxidParameter, chroot_option
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.outputs import OUTPUTS
from controller.rules.releases import Profile, profile_of, read_release
from controller.rules.settings import GivenSettings, read_settings
from questions.moments import TIMES
from wording.sentences import counted

if TYPE_CHECKING:
    from controller.view.types import Context
    from ingest.files.data_directory import Until
    from ingest.files.history import History

_PROGRESS_EVERY_RECORDS: Final = 200


class _Outputs(click.ParamType[frozenset[str]]):
    """A list of outputs."""

    name = "LIST"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        chosen = frozenset(filter(None, (name.strip() for name in str(value).split(","))))
        unknown = sorted(chosen - set(OUTPUTS))
        if unknown or not chosen:
            self.fail(f"{', '.join(unknown) or 'nothing'!r} is not among {', '.join(OUTPUTS)}.")
        return chosen


def _read_settings(_ctx: click.Context, _param: click.Parameter, pairs: tuple[str, ...]) -> GivenSettings:
    try:
        return read_settings(read_pairs(pairs))
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from error


def _read_profile(_ctx: click.Context, _param: click.Parameter, release: str | None) -> Profile | None:
    try:
        return None if release is None else profile_of(read_release(release))
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from error


_EPILOG: Final = """\b
Examples:
  kontrast replay --zk-data /var/lib/zookeeper --chroot /kafka
  kontrast replay --zk-data /var/lib/zookeeper --emit alerts --until 2024-05-01T03:12:00Z

\b
Exit codes:
  0  done
  2  a flag or the chroot is wrong
  3  the files cannot be read
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--zk-data",
    "directories",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    metavar="DIR",
    help="A ZooKeeper server's dataDir. Repeat it for a separate dataLogDir.",
)
@chroot_option("The znode that contains Kafka's znodes.")
@click.option("--cluster", default="replay", metavar="NAME", show_default=True, help="Name of the cluster.")
@click.option("--from", "start", type=ZxidParameter(), help="First transaction to print.")
@click.option("--until", type=MomentParameter(), help=f"Last moment: 0x1f, {TIMES}.")
@click.option(
    "--emit",
    type=_Outputs(),
    default="transitions,alerts",
    show_default=True,
    help=f"Rows to print, out of {','.join(OUTPUTS)}.",
)
@click.option(
    "--broker-config",
    "settings",
    multiple=True,
    callback=_read_settings,
    metavar="KEY=VALUE",
    help="Setting of the brokers' files, like min.insync.replicas=2, instead of the release's default. Repeatable.",
)
@click.option(
    "--kafka-version",
    "profile",
    callback=_read_profile,
    metavar="VERSION",
    help="The brokers' release, like 2.8. By default the znodes show it.",
)
@click.option(
    "--unchanged",
    is_flag=True,
    help="Print transitions from a state to itself without a write too, as Kafka logs them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def replay(**flags: Any) -> int:  # noqa: ANN401 (each option has its own type, see _Replay)
    """Derive the controller's actions from the files of a ZooKeeper server.

    Kontrast did not have to run then. log.* and snapshot.* have every change with its zxid, time and session. The text
    ends with the incidents, one line each.
    """
    code = run_until_stopped({"replay": _Replay(**flags).run})
    return code or (READER_LEFT if reader_has_left() else ExitCode.OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    """Replay with the options of the command line."""

    directories: tuple[Path, ...]
    chroot: str
    cluster: str
    start: Zxid | None
    until: Until | None
    emit: frozenset[str]
    settings: GivenSettings
    profile: Profile | None
    unchanged: bool
    as_json: bool

    def run(self, stop: threading.Event) -> ExitCode:
        """Print the history's rows. A chroot without a cluster gives the exit code of a user's mistake."""
        from controller.restore.stored_context import new_context
        from ingest.files.history import History  # not for --help

        history = History(self.directories, self.cluster, chroot=self.chroot, start_zxid=self.start, until=self.until)
        writer = RowWriter(
            self.emit, as_json=self.as_json, from_zxid=self.start or UNKNOWN_ZXID, unchanged=self.unchanged
        )
        _replay(history, new_context(self.cluster, self.settings, self.profile), writer, stop)
        flush()
        if stop.is_set() or reader_has_left():
            return ExitCode.OK
        _tell(history, writer)
        if writer.saw_znodes:
            return ExitCode.OK
        _complain_of_chroot(history, self.chroot)
        return ExitCode.USAGE


def _replay(history: History, context: Context, writer: RowWriter, stop: threading.Event) -> None:
    from controller.step import step

    with _progress(history) as show:
        for count, record in enumerate(history.records()):
            if stop.is_set() or reader_has_left():
                break
            writer.before(record, context)
            outcome = step(context, record)
            context = outcome.context
            for row in outcome.effects:
                writer.row(row)
            if count % _PROGRESS_EVERY_RECORDS == 0:
                show()
    writer.end(context)


@contextmanager
def _progress(history: History) -> Iterator[Callable[[], None]]:
    """Yield a bar's update. The bar is only drawn if a person sees standard error, but not the rows beside it."""
    if not sys.stderr.isatty() or is_terminal():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), DownloadColumn(), TimeElapsedColumn())
    # Rows go to standard output, so rich must not redirect it.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("replay", total=history.files.total_bytes)
        yield lambda: progress.update(task, completed=history.files.read_bytes)


def _tell(history: History, writer: RowWriter) -> None:
    for note in history.files.notes:
        standard_error.say(note)
    if writer.refused:
        standard_error.say(f"{counted(writer.refused, 'znode value')} could not be read (--emit refused shows them)")


def _complain_of_chroot(history: History, chroot: str) -> None:
    """Complain that the chroot has no cluster, and name chroots that have one."""
    others = " and ".join(sorted(history.other_chroots))
    hint = f"they have one below {others}. Give --chroot" if others else "check --zk-data"
    standard_error.complain(f"the files have no Kafka cluster below {chroot}, {hint}")
