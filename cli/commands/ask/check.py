"""`kontrast check`: a cluster's health on one screen, and as a monitoring probe."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from cli.printing import standard_error
from cli.printing.standard_output import (
    READER_LEFT,
    clear_terminal,
    is_terminal,
    print_json,
    print_line,
    print_renderables,
    reader_has_left,
)
from cli.running import ExitCode, StoppedError
from cli.settings.options import GroupedCommand
from cli.sources.options import source_of, source_options
from cli.sources.source import EVERYTHING_NOW, PROBE_PATIENCE_SECONDS, NotFoundError, Source, ask_as_long_as
from dashboards.errors import ServeError
from ingest.errors import IngestError

if TYPE_CHECKING:
    from questions.check import Health
    from questions.picture import Picture

_EPILOG: Final = """\b
Examples:
  kontrast check --zookeeper zk1:2181/kafka
  kontrast check --zookeeper zk1:2181/kafka --watch
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
@click.option(
    "--every",
    "every_seconds",
    type=click.FloatRange(min=0.5),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Interval of --watch.",
)
@click.option("--long", "is_long", is_flag=True, help="Show next steps and evidence, also for notes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(  # noqa: PLR0913 (one parameter an option)
    *, probe: bool, watch: bool, every_seconds: float, is_long: bool, as_json: bool, **flags: object
) -> int:
    """Check a cluster: its problems, worst first, with start and next step.

    Findings are the alerts of `kontrast stream`. One read of ZooKeeper has no past. It reports each problem at once and
    dates it by the znodes. Files and streams know the start and give each alert its patience.
    """
    if watch and probe:
        raise click.UsageError("--watch and --probe exclude each other.")
    source = source_of(flags, patience_seconds=PROBE_PATIENCE_SECONDS if probe else None)

    def judge(picture: Picture) -> Health:
        from questions import check as question

        return question.check(picture)

    if probe:
        return ask_as_long_as(lambda stop: _probe(source, judge, stop))
    show = _shown(is_long=is_long, as_json=as_json)
    if watch:
        return ask_as_long_as(lambda stop: _watch(source, judge, show, every_seconds, stop))

    return ask_as_long_as(lambda stop: _once(source, judge, show, stop))


def _shown(*, is_long: bool, as_json: bool) -> Callable[[Health], None]:
    from cli.printing.check_lines import health_lines

    return print_json if as_json else lambda health: print_renderables(health_lines(health, is_long=is_long))


def _once(
    source: Source, judge: Callable[[Picture], Health], show: Callable[[Health], None], stop: threading.Event
) -> ExitCode:
    health = judge(source.picture(EVERYTHING_NOW, stop))
    show(health)
    return _code(health)


def _code(health: Health) -> ExitCode:
    """Return the exit code of a state. A replayed past, or one with hidden znodes, is not known to be well now."""
    from questions.state import State

    if health.is_well:
        return ExitCode.OK
    return ExitCode.FAILED if health.state.state in (State.AFFECTED, State.DEGRADED) else ExitCode.UNAVAILABLE


def _probe(source: Source, judge: Callable[[Picture], Health], stop: threading.Event) -> int:
    from cli.printing.check_lines import ProbeState, plugin_line, probe_line, probe_state

    try:
        health = judge(source.picture(EVERYTHING_NOW, stop))
    except (NotFoundError, IngestError, ServeError) as error:
        print_line(plugin_line(ProbeState.UNKNOWN, str(error)))
        return ProbeState.UNKNOWN
    print_line(probe_line(health))
    return probe_state(health)


def _watch(
    source: Source,
    judge: Callable[[Picture], Health],
    show: Callable[[Health], None],
    every_seconds: float,
    stop: threading.Event,
) -> int:
    """Repeat the check. Replace the last one on a terminal, and print changes elsewhere."""
    before: object = None
    while not stop.is_set() and not reader_has_left():
        try:
            health = judge(source.picture(EVERYTHING_NOW, stop))
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
