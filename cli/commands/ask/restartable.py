"""`kontrast restartable`: whether a broker may be restarted now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from cli.printing import output
from cli.printing.standard_output import print_json, print_line, print_renderables
from cli.running import ExitCode, StoppedError
from cli.settings.duration import Duration
from cli.settings.id_lists import HIGHEST_ID
from cli.settings.options import GroupedCommand
from cli.sources.options import source_of, source_options
from cli.sources.source import EVERYTHING_NOW, PROBE_PATIENCE_SECONDS, NotFoundError, ask_as_long_as, present_ms
from dashboards.errors import ServeError
from ingest.errors import IngestError

if TYPE_CHECKING:
    from questions.restartable import Restartable

_EPILOG: Final = """\b
Examples:
  kontrast restartable --zookeeper zk1:2181/kafka --broker 7
  kontrast restartable --zookeeper zk1:2181/kafka --broker 7 --wait 10m && systemctl restart kafka
  kontrast restartable --from journal:/var/lib/kontrast/derived --cluster orders --broker 7 --json

\b
Exit codes:
  0  the broker may be restarted now
  1  it may not: the reasons are named
  2  a flag, a setting or the address is wrong, or there is no such broker
  3  unknown: Kontrast does not see the present, or the cluster cannot be reached

\b
With --probe, as monitoring plugins end:
  0 OK, 1 WARNING (it may not), 2 CRITICAL (a flag is wrong), 3 UNKNOWN
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@source_options
@click.option("--broker", type=click.IntRange(0, HIGHEST_ID), required=True, metavar="N", help="Broker to restart.")
@click.option(
    "--wait",
    "patience",
    type=Duration(),
    metavar="TIME",
    help="Repeat until the answer is yes, at most for this time, like 10m.",
)
@click.option(
    "--every",
    "every_seconds",
    type=click.FloatRange(min=0.5),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Interval of --wait.",
)
@click.option(
    "--accept-topic",
    "accepted_topics",
    multiple=True,
    metavar="PATTERN",
    help="Topics that may go offline or reject acks=all, like 'scratch-*'. Repeatable.",
)
@click.option("--probe", is_flag=True, help="Print the one line of a Nagios or Icinga plugin.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def restartable(  # noqa: PLR0913 (one parameter an option)
    *,
    broker: int,
    patience: timedelta | None,
    every_seconds: float,
    accepted_topics: tuple[str, ...],
    probe: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Answer whether a broker may be restarted now, with every reason against it.

    The controller's own rules decide which partitions would go offline or refuse acks=all. Brokers that are down or
    catch up, a busy controller, reassignments and deletions are reasons to wait.
    """
    if probe and as_json:
        raise click.UsageError("--probe and --json: give one of them.")
    if probe and patience is not None:
        raise click.UsageError("--probe answers at once: leave out --wait.")
    source = source_of(flags, patience_seconds=PROBE_PATIENCE_SECONDS if probe else None)
    if patience is not None and not source.is_live:
        raise click.UsageError("--wait needs a live source: give --zookeeper or --from.")

    def look(stop: threading.Event) -> Restartable:
        from questions import restartable as question
        from questions.whatif.scenario import UnknownBrokersError

        try:
            picture = source.picture(EVERYTHING_NOW, stop)
            return question.restartable(picture, broker, present_ms(source), accepted_topics=accepted_topics)
        except UnknownBrokersError as error:
            raise NotFoundError(str(error)) from error

    if probe:
        return ask_as_long_as(lambda stop: _probe(lambda: look(stop)))
    show = _shown(as_json=as_json)
    if patience is None:
        return ask_as_long_as(lambda stop: _code(show(look(stop))))
    deadline = time.monotonic() + patience.total_seconds()
    return ask_as_long_as(lambda stop: _code(show(_wait(lambda: look(stop), deadline, every_seconds, stop))))


def _shown(*, as_json: bool) -> Callable[[Restartable], Restartable]:
    def show(answer: Restartable) -> Restartable:
        if as_json:
            print_json(answer)
        else:
            from cli.printing.restartable_lines import restartable_lines

            print_renderables(restartable_lines(answer))
        return answer

    return show


def _code(answer: Restartable) -> ExitCode:
    codes = {"yes": ExitCode.OK, "no": ExitCode.FAILED, "unknown": ExitCode.UNAVAILABLE}
    return codes[answer.verdict.value]


def _probe(look: Callable[[], Restartable]) -> int:
    """Print one line for a monitoring system, which takes the exit codes as they are."""
    from cli.printing.check_lines import ProbeState, plugin_line
    from cli.printing.restartable_lines import one_line

    try:
        answer = look()
    except (NotFoundError, IngestError, ServeError) as error:
        print_line(plugin_line(ProbeState.UNKNOWN, str(error)))
        return ProbeState.UNKNOWN
    state = ProbeState(_code(answer))
    print_line(plugin_line(state, one_line(answer)))
    return state


def _wait(look: Callable[[], Restartable], deadline: float, every_seconds: float, stop: threading.Event) -> Restartable:
    """Repeat until the answer is yes or the time is over. Return the last answer, or raise the last error.

    A line on standard error shows each new reason to wait.
    """
    from cli.printing.restartable_lines import one_line
    from questions.restartable import Verdict

    shown = ""
    while True:
        is_last = time.monotonic() >= deadline
        try:
            answer = look()
        except (IngestError, ServeError) as error:
            if is_last:
                raise
            said = f"{error}; asking again"
        else:
            if is_last or answer.verdict is Verdict.YES:
                return answer
            said = one_line(answer)
        if said != shown:
            output.say(said)
            shown = said
        if stop.wait(min(every_seconds, max(0.0, deadline - time.monotonic()))):
            raise StoppedError
