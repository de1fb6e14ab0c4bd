"""Derive the controller's actions from the files of a ZooKeeper server."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.printing import standard_error
from cli.printing.replay_lines import RowWriter
from cli.printing.standard_output import READER_LEFT, flush, is_terminal, reader_has_left
from cli.running import ExitCode, run_until_stopped
from cli.settings.keys import read_pairs
from cli.settings.parameters import MOMENT, ZXID, Parsed, chroot_option, files_option
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.outputs import OUTPUTS
from controller.rules.releases import Profile, profile_of, read_release
from controller.rules.settings import GivenSettings, read_settings
from questions.moments import TIMES
from wording.sentences import counted

if TYPE_CHECKING:
    from controller.view.types import Context
    from ingest.files.data_directory import Until
    from ingest.files.history import FileHistory

_PROGRESS_EVERY_RECORDS: Final = 200


def _read_outputs(text: str) -> frozenset[str]:
    chosen = frozenset(filter(None, (name.strip() for name in text.split(","))))
    unknown = sorted(chosen - set(OUTPUTS))
    if unknown or not chosen:
        raise ValueError(f"{', '.join(unknown) or 'nothing'!r} is not among {', '.join(OUTPUTS)}")
    return chosen


def _read_settings(_ctx: click.Context, _param: click.Parameter, pairs: tuple[str, ...]) -> GivenSettings:
    try:
        return read_settings(read_pairs(pairs))
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
@files_option("A ZooKeeper server's dataDir. Repeat it for a separate dataLogDir.", required=True)
@chroot_option("The znode that contains Kafka's znodes.")
@click.option("--cluster", default="replay", metavar="NAME", show_default=True, help="Name of the cluster.")
@click.option("--from", "start", type=ZXID, help="First transaction to print.")
@click.option("--until", type=MOMENT, help=f"Last moment: 0x1f, {TIMES}.")
@click.option(
    "--emit",
    type=Parsed("LIST", _read_outputs),
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
    type=Parsed("VERSION", lambda text: profile_of(read_release(text))),
    metavar="VERSION",
    help="The brokers' release, like 2.8. By default the znodes show it.",
)
@click.option(
    "--unchanged",
    is_flag=True,
    help="Print transitions from a state to itself without a write too, as Kafka logs them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def replay(  # noqa: PLR0913 (one parameter an option)
    *,
    directories: tuple[Path, ...],
    chroot: str,
    cluster: str,
    start: Zxid | None,
    until: Until | None,
    emit: frozenset[str],
    settings: GivenSettings,
    profile: Profile | None,
    unchanged: bool,
    as_json: bool,
) -> int:
    """Derive the controller's actions from the files of a ZooKeeper server.

    Kontrast did not have to run then. log.* and snapshot.* have every change with its zxid, time and session. The text
    ends with the incidents, one line each.
    """

    def run(stop: threading.Event) -> ExitCode:
        from controller.restore.stored_context import new_context
        from ingest.files.history import FileHistory  # not for --help

        history = FileHistory(directories, cluster, chroot=chroot, start_zxid=start, until=until)
        writer = RowWriter(emit, as_json=as_json, from_zxid=start or UNKNOWN_ZXID, unchanged=unchanged)
        _replay(history, new_context(cluster, settings, profile), writer, stop)
        flush()
        return ExitCode.OK if stop.is_set() or reader_has_left() else _tell(history, writer)

    code = run_until_stopped({"replay": run})
    return code or (READER_LEFT if reader_has_left() else ExitCode.OK)


def _replay(history: FileHistory, context: Context, writer: RowWriter, stop: threading.Event) -> None:
    from controller.step import step

    # Rows on a terminal, and a bar beside them, would disturb each other.
    with nullcontext() if is_terminal() else standard_error.progress(in_bytes=True) as show:
        for count, record in enumerate(history.records()):
            if stop.is_set() or reader_has_left():
                break
            writer.before(record, context)
            outcome = step(context, record)
            context = outcome.context
            for row in outcome.effects:
                writer.row(row)
            if show is not None and count % _PROGRESS_EVERY_RECORDS == 0:
                show(history.files.read_bytes, history.files.total_bytes)
    writer.end(context)


def _tell(history: FileHistory, writer: RowWriter) -> ExitCode:
    """Print what the files lack. A chroot without a cluster gives the exit code of a user's mistake."""
    for note in history.files.notes:
        standard_error.say(note)
    if writer.refused:
        standard_error.say(f"{counted(writer.refused, 'znode value')} could not be read (--emit refused shows them)")
    if writer.saw_znodes:
        return ExitCode.OK
    standard_error.complain(history.below.without_cluster())
    return ExitCode.USAGE
