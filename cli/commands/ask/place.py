"""Print an assignment of replicas as reassignment JSON, and check it as `whatif` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from cli.printing import standard_error
from cli.printing.standard_output import print_json_line
from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.settings.parameters import read_ids
from cli.sources.asking import ask_question
from cli.sources.options import Chosen, source_options
from controller.contract.ids import BrokerId

if TYPE_CHECKING:
    from questions.picture import Picture
    from questions.whatif.placement import Assignment, Movement

_EPILOG: Final = """\b
Examples:
  kontrast place payments --zookeeper zk1:2181/kafka --brokers 1,2,3 > payments.json
  kontrast place --from-cluster --zookeeper zk1:2181/kafka --drain 3 > drained.json
  kontrast place payments orders --from-cluster --zookeeper zk1:2181/kafka --rack-aware --replication-factor 3

\b
Use the JSON with kafka-reassign-partitions --execute --reassignment-json-file FILE, and for
kontrast whatif --reassign FILE.

\b
Exit codes:
  0  the reassignment is printed, empty if no replica has to move
  1  it is printed, and clients lose partitions or acks=all once it is done
  2  a flag, a setting or the address is wrong, or the brokers cannot meet the goal
  3  the source cannot be reached
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@click.argument("topics", nargs=-1)
@source_options
@click.option("--brokers", callback=read_ids, metavar="N,N,…", help="Brokers that may host replicas.")
@click.option(
    "--rack-aware/--no-rack-aware",
    default=None,
    help="Spread each partition over racks. By default on if every broker has a rack, as in "
    "kafka-reassign-partitions, and off with --from-cluster.",
)
@click.option("--start-index", type=click.IntRange(min=0), help="Kafka's random start, to repeat a draw.")
@click.option("--shift", type=click.IntRange(min=0), help="Kafka's random shift of followers, to repeat a draw.")
@click.option("--from-cluster", is_flag=True, help="Move as few replicas as possible.")
@click.option("--drain", callback=read_ids, metavar="N,N,…", help="Brokers that must host no replica.")
@click.option("--replication-factor", type=click.IntRange(min=1), metavar="N", help="Give every partition N replicas.")
def place(  # noqa: PLR0913 (one parameter an option)
    topics: tuple[str, ...],
    *,
    brokers: tuple[BrokerId, ...],
    rack_aware: bool | None,
    start_index: int | None,
    shift: int | None,
    from_cluster: bool,
    drain: tuple[BrokerId, ...],
    replication_factor: int | None,
    chosen: Chosen,
) -> int:
    """Print an assignment of replicas as reassignment JSON, and check it as `whatif` does.

    By default it is the result of kafka-reassign-partitions --generate for these topics and brokers. With
    --from-cluster it is the smallest movement that drains brokers, spreads over racks, or changes the replication
    factor.
    """
    if from_cluster and not (drain or replication_factor or rack_aware):
        raise click.UsageError("--from-cluster needs a goal. Give --drain, --rack-aware or --replication-factor.")
    if from_cluster and (start_index, shift) != (None, None):
        raise click.UsageError(
            "--start-index and --shift repeat Kafka's random draw. Do not combine them with --from-cluster."
        )
    if not from_cluster and (drain or replication_factor):
        raise click.UsageError("--drain and --replication-factor need --from-cluster.")
    if not from_cluster and not (topics and brokers):
        raise click.UsageError("Name topics and --brokers, or move as little as possible with --from-cluster.")
    from questions.whatif.placement import Goal, PlaceReplicas

    question = PlaceReplicas(
        topics=topics,
        brokers=brokers,
        goal=Goal(frozenset(drain), bool(rack_aware), replication_factor) if from_cluster else None,
        rack_aware=rack_aware,
        start_index=start_index or 0,
        shift=shift or 0,
    )
    return ask_question(chosen, question, _print)


def _print(found: tuple[Assignment, Movement], picture: Picture) -> ExitCode:
    """Print the JSON to standard output, and its effect to standard error."""
    from questions.whatif.hypothetical_cluster import NoControllerError
    from questions.whatif.placement import encode_reassignment
    from questions.whatif.scenario import check_reassignment

    placed, movement = found
    for line in encode_reassignment(placed).splitlines():
        print_json_line(line)
    moved = f"{len(movement.targets)} partitions change, {movement.copies} replicas are copied"
    to = ", ".join(f"broker {broker} gets {count}" for broker, count in movement.replicas_added.items())
    standard_error.say(f"{moved}{': ' if to else ''}{to}")
    if not movement.targets:
        return ExitCode.OK
    try:
        taken = check_reassignment(picture.context, movement.targets)
    except NoControllerError as error:
        standard_error.warn(f"it was not checked: {error}")
        return ExitCode.OK
    if taken.is_harmless:
        standard_error.say("once it is done, every partition can be used as now")
        return ExitCode.OK
    standard_error.warn(
        f"once it is done, {taken.offline} partitions would be offline and {taken.unwritable} "
        "would reject acks=all (see kontrast whatif --reassign)"
    )
    return ExitCode.FAILED
