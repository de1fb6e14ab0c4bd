"""`kontrast restartable`: whether a broker may be restarted now."""

from __future__ import annotations

import getpass
import os
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from cli.printing import standard_error
from cli.printing.standard_output import print_answer, print_line
from cli.running import ExitCode
from cli.settings.config import known_clusters, read_flags, read_settings
from cli.settings.duration import Duration
from cli.settings.id_lists import HIGHEST_ID
from cli.settings.options import GroupedCommand
from cli.settings.question_options import question_of, question_options
from cli.sources.asking import answer_of, ask_as_long_as
from cli.sources.options import source_of, source_options
from cli.sources.source import PROBE_PATIENCE_SECONDS
from cli.sources.waiting import Waiting, refuse_past, wait_options
from dashboards.errors import ServeError
from ingest.errors import IngestError
from questions.may_restart import MayRestart
from questions.question import NotFoundError
from questions.restartable import Restartable, Verdict
from wording.said import line

if TYPE_CHECKING:
    from cli.sources.served_cluster import ServedCluster


_Look: TypeAlias = "Callable[[threading.Event], Restartable]"

_EPILOG: Final = """\b
Examples:
  kontrast restartable 7 --zookeeper zk1:2181/kafka
  kontrast restartable 7 --zookeeper zk1:2181/kafka --wait 10m && systemctl restart kafka
  kontrast restartable --serve https://kontrast:9642 --broker 7 --wait 10m --hold 15m
  kontrast restartable --serve https://kontrast:9642 --broker 7 --release
  kontrast restartable --from journal:/var/lib/kontrast/derived --cluster orders --broker 7 --json

\b
Exit codes:
  0  the broker may be restarted now
  1  it may not, for the printed reasons, or --release found no such lease
  2  a flag, a setting or the address is wrong, or the broker does not exist
  3  unknown, because Kontrast does not see the present or cannot reach the cluster

\b
With --probe, as monitoring plugins end:
  0 OK, 1 WARNING (it may not), 2 CRITICAL (a flag is wrong), 3 UNKNOWN
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@click.argument("broker_id", type=click.IntRange(0, HIGHEST_ID), required=False, metavar="[N]")
@source_options
@click.option("--broker", type=click.IntRange(0, HIGHEST_ID), metavar="N", help="Broker to restart, in place of N.")
@wait_options(until="the answer is yes", every="Interval of --wait.")
@question_options(MayRestart, leave_out=("broker",))
@click.option(
    "--serve",
    "url",
    metavar="URL",
    help="Ask this `kontrast serve`, with the login of [serve]. --hold and --release ask the "
    "configured one by default.",
)
@click.option(
    "--serve-ca-file",
    "ca_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Trusted authorities of --serve (PEM). The system's if unset.",
)
@click.option(
    "--hold",
    type=Duration(),
    metavar="TIME",
    help="Take the cluster's lease if the answer is yes, for 10s to 1h. Until it ends, other holders get no yes.",
)
@click.option("--release", is_flag=True, help="Release the lease.")
@click.option("--holder", metavar="NAME", help="Holder of the lease, by default USER@HOST.")
@click.option("--probe", is_flag=True, help="Print the one line of a Nagios or Icinga plugin.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def restartable(  # noqa: PLR0913 (one parameter an option)
    *,
    broker_id: int | None,
    broker: int | None,
    patience: timedelta | None,
    every_seconds: float,
    hold: timedelta | None,
    release: bool,
    probe: bool,
    as_json: bool,
    **flags: Any,  # noqa: ANN401 (click's own)
) -> int:
    """Answer whether broker N may be restarted now, with every reason against it.

    The controller's own rules decide which partitions would go offline or reject acks=all. Brokers that are down or
    catch up, a busy controller, reassignments and deletions are reasons to wait. A lease in `kontrast serve` keeps two
    automations from restarting two brokers at once.
    """
    question = question_of(MayRestart, flags, broker=_one_of(broker_id, broker))
    waits, holds = patience is not None, hold is not None
    _refuse_combinations(waits=waits, holds=holds, release=release, probe=probe, as_json=as_json)
    look: _Look
    if flags["url"] is not None or holds or release:
        served = _served(flags)
        if release:
            return ask_as_long_as(lambda _: _released(served, question.broker, as_json=as_json))
        seconds = None if hold is None else round(hold.total_seconds())

        look = lambda _: served.ask(question, seconds)  # noqa: E731
    else:
        look = _own_look(flags, question, probe=probe, waits=waits)
    if probe:
        return ask_as_long_as(lambda stop: _probe(lambda: look(stop)))
    show = _shown(as_json=as_json)
    waiting = Waiting(patience, every_seconds)
    is_yes = lambda answer: answer.verdict is Verdict.YES  # noqa: E731
    return ask_as_long_as(lambda stop: _code(show(waiting.until(is_yes, look, lambda answer: answer.one_line, stop))))


def _one_of(*named: int | None) -> int:
    given = [each for each in named if each is not None]
    if len(given) != 1:
        raise click.UsageError("Which broker? Give its number, or --broker.")
    return given[0]


def _refuse_combinations(*, waits: bool, holds: bool, release: bool, probe: bool, as_json: bool) -> None:
    if probe and as_json:
        raise click.UsageError("--probe and --json exclude each other.")
    if probe and waits:
        raise click.UsageError("--probe answers at once. Leave out --wait.")
    if probe and (holds or release):
        raise click.UsageError("--probe only reads. Leave out --hold and --release.")
    if release and (holds or waits):
        raise click.UsageError("--release ends a lease. Leave out --hold and --wait.")


def _own_look(flags: Mapping[str, Any], question: MayRestart, *, probe: bool, waits: bool) -> _Look:
    """Return a function that asks the question to the source that the flags name."""
    if flags["holder"] is not None or flags["ca_file"] is not None:
        raise click.UsageError("--holder and --serve-ca-file need --serve, --hold or --release.")
    source = source_of(flags, patience_seconds=PROBE_PATIENCE_SECONDS if probe else None)
    if waits:
        refuse_past(source)
    return lambda stop: answer_of(source, question, flags, stop).answer


def _served(flags: Mapping[str, Any]) -> ServedCluster:
    """Return the client of the `kontrast serve` that the flags or the configuration name."""
    from cli.sources.served_cluster import ServedCluster, serve_url  # brings an HTTP client

    if flags["directories"] or flags["stream"] or "zookeeper" in read_flags("watch", flags):
        raise click.UsageError("kontrast serve has its own source. Leave out --zookeeper, --zk-data and --from.")
    settings = read_settings(flags["config_file"], os.environ)
    clusters = known_clusters(settings)
    cluster = flags["cluster"] or (clusters[0] if len(clusters) == 1 else None)
    holder = flags["holder"] or f"{getpass.getuser()}@{socket.gethostname()}"
    return ServedCluster(flags["url"] or serve_url(settings), settings, cluster, holder, flags["ca_file"])


def _released(served: ServedCluster, broker: int, *, as_json: bool) -> ExitCode:
    from cli.sources.served_cluster import NoLeaseError

    try:
        lease = served.release(broker)
    except NoLeaseError as error:
        standard_error.complain(str(error))
        return ExitCode.FAILED
    told = line(f"{lease.holder} released the lease to restart broker {lease.broker}")
    print_answer([lease], [told], as_json=as_json)
    return ExitCode.OK


def _shown(*, as_json: bool) -> Callable[[Restartable], Restartable]:
    def show(answer: Restartable) -> Restartable:
        print_answer([answer], answer.said(), as_json=as_json)
        return answer

    return show


def _code(answer: Restartable) -> ExitCode:
    codes = {"yes": ExitCode.OK, "no": ExitCode.FAILED, "unknown": ExitCode.UNAVAILABLE}
    return codes[answer.verdict.value]


def _probe(look: Callable[[], Restartable]) -> int:
    """Print one line for a monitoring system. Return the exit code of a monitoring plugin."""
    from cli.printing.probe import ProbeState, plugin_line

    try:
        answer = look()
    except (NotFoundError, IngestError, ServeError) as error:
        print_line(plugin_line(ProbeState.UNKNOWN, str(error)))
        return ProbeState.UNKNOWN
    state = ProbeState(_code(answer))
    print_line(plugin_line(state, answer.one_line))
    return state
