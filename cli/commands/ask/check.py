"""`kontrast check`: a cluster's health on one screen, and as a monitoring probe."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

import click

from cli.printing import standard_error
from cli.printing.standard_output import (
    READER_LEFT,
    clear_terminal,
    is_terminal,
    print_answer,
    print_line,
    reader_has_left,
)
from cli.running import ExitCode, StoppedError
from cli.settings.options import GroupedCommand
from cli.sources.asking import answer_of, ask_as_long_as
from cli.sources.options import source_of, source_options
from cli.sources.source import PROBE_PATIENCE_SECONDS
from cli.sources.waiting import Waiting, refuse_past, wait_options
from dashboards.errors import ServeError
from ingest.errors import IngestError
from questions.question import NotFoundError

if TYPE_CHECKING:
    from questions.check import Health

    _Look = Callable[[threading.Event], Health]

_EPILOG: Final = """\b
Examples:
  kontrast check --zookeeper zk1:2181/kafka
  kontrast check --zookeeper zk1:2181/kafka --watch
  kontrast check --zookeeper zk1:2181/kafka --wait 10m && ./next-step
  kontrast check --zk-data /var/lib/zookeeper --chroot /kafka --until 2024-05-01T03:12:00Z
  kontrast check --from journal:/var/lib/kontrast/derived --cluster orders --probe

\b
Exit codes:
  0  the cluster is well, perhaps with notes
  1  the cluster is degraded, or clients are affected
  2  a flag, a setting or the address is wrong
  3  the state is not known, for example because the source cannot be reached or its data is old

\b
With --probe, as monitoring plugins end:
  0 OK, well; 1 WARNING, degraded; 2 CRITICAL, clients affected (also for a wrong flag); 3 UNKNOWN, not known
It waits up to 5 s for a connection, unless connect_timeout_seconds is set.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@source_options
@click.option("--probe", is_flag=True, help="Print the one line of a Nagios or Icinga plugin, with performance data.")
@click.option("--watch", is_flag=True, help="Repeat until Ctrl-C.")
@wait_options(until="the cluster is well", every="Interval of --watch and --wait.")
@click.option("--long", "is_long", is_flag=True, help="Show next steps and evidence, also for notes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(  # noqa: PLR0913 (one parameter an option)
    *,
    probe: bool,
    watch: bool,
    patience: timedelta | None,
    every_seconds: float,
    is_long: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Check a cluster: its problems, worst first, with start and next step.

    Findings are the alerts of `kontrast stream`. One read of ZooKeeper has no past. It reports each problem at once and
    dates it by the znodes. Files and streams know the start and give each alert its patience.
    """
    given = [name for name, is_given in (("--watch", watch), ("--probe", probe), ("--wait", patience)) if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other.")
    source = source_of(flags, patience_seconds=PROBE_PATIENCE_SECONDS if probe else None)

    def look(stop: threading.Event) -> Health:
        from questions.check import Check

        return cast("Health", answer_of(source, Check(), flags, stop).answer)

    if probe:
        return ask_as_long_as(lambda stop: _probe(look, stop))
    show = _shown(is_long=is_long, as_json=as_json)
    if watch:
        return ask_as_long_as(lambda stop: _watch(look, show, every_seconds, stop))
    if patience is not None:
        refuse_past(source)
    until_well = _until_well(look, Waiting(patience, every_seconds))
    return ask_as_long_as(lambda stop: _code(show(until_well(stop))))


def _shown(*, is_long: bool, as_json: bool) -> Callable[[Health], Health]:
    def show(health: Health) -> Health:
        print_answer([health], health.said(is_long=is_long), as_json=as_json)
        return health

    return show


def _until_well(look: _Look, waiting: Waiting) -> _Look:
    from cli.printing.probe import health_line

    return lambda stop: waiting.until(lambda health: health.is_well, look, health_line, stop)


def _code(health: Health) -> ExitCode:
    """Return the exit code. A replayed past, or a cluster with unreadable znodes, is not known to be well now."""
    from questions.state import State

    if health.is_well:
        return ExitCode.OK
    return ExitCode.FAILED if health.state.state in (State.AFFECTED, State.DEGRADED) else ExitCode.UNAVAILABLE


def _probe(look: _Look, stop: threading.Event) -> int:
    from cli.printing.probe import ProbeState, plugin_line, probe_line, probe_state

    try:
        health = look(stop)
    except (NotFoundError, IngestError, ServeError) as error:
        print_line(plugin_line(ProbeState.UNKNOWN, str(error)))
        return ProbeState.UNKNOWN
    print_line(probe_line(health))
    return probe_state(health)


def _watch(look: _Look, show: Callable[[Health], Health], every_seconds: float, stop: threading.Event) -> int:
    """Repeat the check. On a terminal, replace the last answer. Elsewhere, print only changes."""
    before: object = None
    while not stop.is_set() and not reader_has_left():
        try:
            health = look(stop)
        except StoppedError:
            break
        except (IngestError, ServeError) as error:
            standard_error.warn(f"{error}. The last picture may be old")
        else:
            says = [(finding.severity, finding.alert, finding.cause) for finding in health.findings], health.doubts
            if is_terminal():
                clear_terminal()
                show(health)
            elif says != before:
                show(health)
            before = says
        stop.wait(every_seconds)
    return READER_LEFT if reader_has_left() else ExitCode.OK
