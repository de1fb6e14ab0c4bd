"""Show whether a broker may be restarted now, with every reason against it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from cli.commands.question_command import question_of, question_options
from cli.printing.standard_output import print_answer, print_line
from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.settings.parameters import HIGHEST_ID
from cli.sources.asking import Repetition, ask_question, wait_options
from cli.sources.options import Chosen, source_options
from questions.whatif.may_restart import MayRestart, Restartable, Verdict

if TYPE_CHECKING:
    from questions.picture import Picture

_EPILOG: Final = """\b
Examples:
  kontrast restartable 7 --zookeeper zk1:2181/kafka
  kontrast restartable 7 --zookeeper zk1:2181/kafka --wait 10m && systemctl restart kafka
  kontrast restartable --from journal:/var/lib/kontrast/outputs --cluster orders --broker 7 --json

\b
Exit codes:
  0  the broker may be restarted now
  1  it may not, for the printed reasons
  2  a flag, a setting or the address is wrong, or the broker does not exist
  3  unknown, because Kontrast does not see the present or cannot reach the cluster

\b
With --probe, as monitoring plugins end:
  0 OK, 1 WARNING (it may not), 2 CRITICAL (a flag is wrong), 3 UNKNOWN
"""
_CODES: Final = {Verdict.YES: ExitCode.OK, Verdict.NO: ExitCode.FAILED, Verdict.UNKNOWN: ExitCode.UNAVAILABLE}


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@click.argument("broker_id", type=click.IntRange(0, HIGHEST_ID), required=False, metavar="[N]")
@source_options
@click.option("--broker", type=click.IntRange(0, HIGHEST_ID), metavar="N", help="Broker to restart, in place of N.")
@wait_options(until="the answer is yes", every="Interval of --wait.")
@question_options(MayRestart, leave_out=("broker",))
@click.option("--probe", is_flag=True, help="Print the one line of a Nagios or Icinga plugin.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def restartable(  # noqa: PLR0913 (one parameter an option)
    *,
    broker_id: int | None,
    broker: int | None,
    patience: timedelta | None,
    every_seconds: float,
    probe: bool,
    as_json: bool,
    chosen: Chosen,
    **flags: Any,  # noqa: ANN401 (click's own)
) -> int:
    """Answer whether broker N may be restarted now, with every reason against it.

    The controller's own rules decide which partitions would go offline or reject acks=all. Brokers that are down or
    catch up, a busy controller, reassignments and deletions are reasons to wait.
    """
    question = question_of(MayRestart, flags, broker=_one_of(broker_id, broker))
    if probe and as_json:
        raise click.UsageError("--probe and --json exclude each other.")
    if probe and patience is not None:
        raise click.UsageError("--probe answers at once. Leave out --wait.")

    def show(found: Restartable, _: Picture) -> int:
        if not probe:
            print_answer([found], found.said(), as_json=as_json)
        else:
            from cli.printing.probe import ProbeState, plugin_line

            print_line(plugin_line(ProbeState(_CODES[found.verdict]), found.one_line))
        return _CODES[found.verdict]

    repeated = Repetition(
        patience, every_seconds, lambda found: found[0].verdict is Verdict.YES, lambda found: found[0].one_line
    )
    return ask_question(chosen, question, show, repeated, is_probe=probe, warns=False)


def _one_of(*named: int | None) -> int:
    given = [each for each in named if each is not None]
    if len(given) != 1:
        raise click.UsageError("Which broker? Give its number, or --broker.")
    return given[0]
