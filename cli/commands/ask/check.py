"""List the problems of one cluster or all, worst first, with start and next step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from cli.printing import standard_error
from cli.printing.standard_output import (
    READER_LEFT,
    flush,
    is_terminal,
    print_answer,
    print_json,
    print_line,
    reader_has_left,
    screen,
)
from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.sources import PROBE_PATIENCE_SECONDS, Source
from cli.sources.asking import Repetition, ask_as_long_as, or_unknown, refuse_past, wait_options
from cli.sources.options import Chosen, source_options
from dashboards.errors import ServeError
from ingest.errors import IngestError, StoppedError
from wording.said import Said, line, marked
from wording.sentences import counted

if TYPE_CHECKING:
    from questions.check.check import Checked

_IN_UTC: Final = "%H:%M:%SZ"  # as every other time of the answer
_EPILOG: Final = """\b
Examples:
  kontrast check --zookeeper zk1:2181/kafka
  kontrast check --zookeeper zk1:2181/kafka --watch
  kontrast check --zookeeper zk1:2181/kafka --wait 10m && ./next-step
  kontrast check --zk-data /var/lib/zookeeper --chroot /kafka --until 2024-05-01T03:12:00Z
  kontrast check --from journal:/var/lib/kontrast/outputs --watch
  kontrast check --from journal:/var/lib/kontrast/outputs --cluster orders --probe

\b
Exit codes:
  0  every cluster is well, perhaps with notes
  1  a cluster is degraded, or its clients are affected
  2  a flag, a setting or the address is wrong
  3  a state is not known, for example because the source cannot be reached or its data is old

\b
With --probe, as monitoring plugins end:
  0 OK, well; 1 WARNING, degraded; 2 CRITICAL, clients affected (also for a wrong flag); 3 UNKNOWN, not known
It waits up to 5 s for a connection, unless connect_timeout_seconds is set.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@source_options
@click.option("--probe", is_flag=True, help="Print the one line of a Nagios or Icinga plugin, with performance data.")
@click.option("--watch", is_flag=True, help="Follow changes until Ctrl-C, on one screen or as a line for each.")
@wait_options(until="every cluster is well", every="Interval of --watch and --wait.")
@click.option("--long", "is_long", is_flag=True, help="Show next steps and evidence, also for notes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each cluster.")
def check(  # noqa: PLR0913 (one parameter an option)
    *,
    probe: bool,
    watch: bool,
    patience: timedelta | None,
    every_seconds: float,
    is_long: bool,
    as_json: bool,
    chosen: Chosen,
) -> int:
    """Check a cluster, or every cluster of the source: its problems, worst first, with start and next step.

    Findings are the alerts of `kontrast stream`. One read of ZooKeeper has no past. It reports each problem at once and
    dates it by the znodes. Files and streams know the start and give each alert its patience.
    """
    given = [name for name, is_given in (("--watch", watch), ("--probe", probe), ("--wait", patience)) if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other.")
    source = chosen.of_all().source(patience_seconds=PROBE_PATIENCE_SECONDS if probe else None)
    if probe:
        return ask_as_long_as(or_unknown(lambda stop: _probe(source, stop)))
    if watch:
        return ask_as_long_as(lambda stop: _watch(source, every_seconds, stop, is_long=is_long, as_json=as_json))
    if patience is not None:
        refuse_past(source)

    from questions.check.check import check_each

    def look(stop: threading.Event) -> Sequence[Checked]:
        with source.looking(stop) as look_now:
            return check_each(look_now())

    def ask(stop: threading.Event) -> int:
        found = Repetition(patience, every_seconds, _are_well, _in_a_line).until(look, stop)
        return _show(found, is_long=is_long, as_json=as_json)

    return ask_as_long_as(ask)


def _show(found: Sequence[Checked], *, is_long: bool, as_json: bool) -> ExitCode:
    """Print the clusters, and return the exit code. One with unreadable znodes is not known to be well."""
    from questions.check.check import said_together
    from questions.check.state import State

    print_answer(found, said_together(found, is_long=is_long), as_json=as_json)
    if _are_well(found):
        return ExitCode.OK
    is_bad = any(each.state.state in (State.AFFECTED, State.DEGRADED) for each in found)
    return ExitCode.FAILED if is_bad else ExitCode.UNAVAILABLE


def _are_well(found: Sequence[Checked]) -> bool:
    return all(each.is_well for each in found)


def _in_a_line(found: Sequence[Checked]) -> str:
    from cli.printing.probe import health_line

    unwell = sum(not each.is_well for each in found)
    return health_line(found[0]) + (f", and {counted(unwell - 1, 'more cluster')}" if unwell > 1 else "")


def _probe(source: Source, stop: threading.Event) -> int:
    from cli.printing.probe import probe_line, probe_state
    from questions.check.check import check as checked
    from questions.question import EVERYTHING_NOW

    health = checked(source.picture(EVERYTHING_NOW, stop))
    print_line(probe_line(health))
    return probe_state(health)


def _watch(source: Source, every_seconds: float, stop: threading.Event, *, is_long: bool, as_json: bool) -> int:
    """Show the clusters until `stop` is set, on a terminal as one screen, elsewhere as a line for each change."""
    from questions.check.check import check_each

    found: Sequence[Checked] = ()
    with source.looking(stop) as look, screen() if is_terminal() and not as_json else nullcontext() as draw:
        while not stop.is_set() and not reader_has_left():
            before, doubt = found, ""
            try:
                found = check_each(look())
            except StoppedError:
                break
            except (IngestError, ServeError) as error:
                doubt = f"{error}. The last picture may be old"
            if draw is not None:
                draw(_drawn(found, doubt, is_long=is_long))
            elif doubt:
                standard_error.warn(doubt)
            else:
                _print_changes(before, found, as_json=as_json)
            stop.wait(every_seconds)
    return READER_LEFT if reader_has_left() else ExitCode.OK


def _drawn(found: Sequence[Checked], doubt: str, *, is_long: bool) -> Said:
    from questions.check.check import said_together

    yield line(f"{time.strftime(_IN_UTC, time.gmtime())}  (Ctrl-C ends this)")
    if doubt:
        yield line(marked("unknown"), f"  {doubt}")
    if found:
        yield from said_together(found, is_long=is_long)


def _print_changes(before: Sequence[Checked], found: Sequence[Checked], *, as_json: bool) -> None:
    known = {each.cluster: each for each in before}
    for each in found:
        changes = list(_changes(known.get(each.cluster), each))
        if as_json and changes:
            print_json(each, flush=False)
        for change in () if as_json else changes:
            print_line(f"{time.strftime(_IN_UTC, time.gmtime())}  {each.cluster}  {change}", flush=False)
    flush()


def _changes(before: Checked | None, now: Checked) -> Iterator[str]:
    """Yield a line for another state, and for each alert that opened, changed or ended."""
    if before is None or (before.state.words, before.state.reason) != (now.state.words, now.state.reason):
        yield ": ".join(filter(None, (now.state.words, now.state.reason)))
    was, is_now = (
        {(found.alert, found.subject): found for found in each.findings} if each else {} for each in (before, now)
    )
    for key, found in is_now.items():
        if key not in was or (was[key].severity, was[key].cause) != (found.severity, found.cause):
            yield f"open      {found.in_a_line}"
    for key, found in was.items():
        if key not in is_now:
            yield f"resolved  {found.in_a_line}"
