"""`kontrast whatif`: effect of the loss or return of brokers, or of a reassignment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.sources.options import source_of, source_options
from cli.sources.source import EVERYTHING_NOW, NotFoundError, ask
from controller.contract.ids import BrokerId

if TYPE_CHECKING:
    from questions.picture import Picture
    from questions.whatif.scenario import Step

_EPILOG: Final = """\b
Examples:
  kontrast whatif --zookeeper zk1:2181/kafka --lose-broker 3
  kontrast whatif --zookeeper zk1:2181/kafka --lose-rack eu-1 --then --lose-broker 7
  kontrast whatif --zookeeper zk1:2181/kafka --lose-broker 3 --controlled --restore 3
  kontrast whatif --zookeeper zk1:2181/kafka --each
  kontrast whatif --zookeeper zk1:2181/kafka --rolling

\b
Exit codes:
  0  no partition would be offline, reject acks=all, or lose acknowledged records
  1  the printed partitions would
  2  a flag, a setting, the address or a file is wrong
  3  the source cannot be reached
"""

_STEPS: Final = "kontrast.whatif.steps"


class _Said(NamedTuple):
    """An option of a step, in its place on the command line."""

    name: str
    value: Any


class _InOrder(GroupedCommand):
    """A command that remembers in which order its repeatable options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and keep the steps in the context's meta."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        left = {name: list(value) if isinstance(value, list) else [value] for name, value in values.items()}
        steps = [_Said(str(each.name), left[str(each.name)].pop(0)) for each in order if each.name in _OF_STEPS]
        ctx.meta[_STEPS] = steps
        return super().parse_args(ctx, args)


def _file(_ctx: click.Context, _param: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    for path in paths:
        if not path.is_file():
            raise click.BadParameter(f"there is no file {path}.")
    return paths


_OF_STEPS: Final = ("lose_broker", "lose_rack", "then", "restore", "reassign")


@click.command(cls=_InOrder, epilog=_EPILOG)
@source_options
@click.option("--lose-broker", type=int, multiple=True, metavar="N", help="Crash this broker. Several crash at once.")
@click.option("--lose-rack", multiple=True, metavar="RACK", help="Crash all brokers of this rack at once.")
@click.option("--then", count=True, help="Separate changes that happen one after the other.")
@click.option("--restore", type=int, multiple=True, metavar="N", help="Let this broker return and catch up.")
@click.option(
    "--reassign",
    type=click.Path(path_type=Path),
    multiple=True,
    callback=_file,
    metavar="FILE",
    help="Reassign partitions by the JSON for kafka-reassign-partitions.",
)
@click.option("--controlled", is_flag=True, help="Shut brokers down cleanly, one after the other, instead of a crash.")
@click.option("--each", is_flag=True, help="Rank every broker and rack by the effect of its loss.")
@click.option("--rolling", is_flag=True, help="Propose an order of restarts without an effect on clients.")
@click.option(
    "--at-once", type=click.IntRange(min=1), metavar="N", help="With --rolling, restart at most N brokers at once."
)
@click.option("--all", "is_all", is_flag=True, help="Print every changed partition, not only the first ones.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def whatif(  # noqa: PLR0913 (one parameter an option)
    ctx: click.Context,
    /,
    *,
    controlled: bool,
    each: bool,
    rolling: bool,
    at_once: int | None,
    is_all: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Simulate the loss, shutdown or return of brokers, or a reassignment.

    Steps happen in the order of the command line. Each is played to its end, first the controller's elections by the
    rules of this cluster's release, then the replicas that catch up.
    """
    said: Sequence[_Said] = ctx.meta[_STEPS]
    if sum((bool(said), each, rolling)) != 1:
        raise click.UsageError("Give steps (--lose-broker 3, --lose-rack eu-1, …), or --each, or --rolling.")
    if at_once is not None and not rolling:
        raise click.UsageError("--at-once is for --rolling.")
    if controlled and not any(name.startswith("lose_") for name, _ in said):
        raise click.UsageError("--controlled needs --lose-broker or --lose-rack.")
    answer = _each if each else _rolling(at_once) if rolling else _played(said, controlled=controlled, is_all=is_all)

    def answered(picture: Picture) -> int:
        from cli.known_clients import with_clients
        from questions.known_brokers import UnknownBrokersError
        from questions.whatif.hypothetical_cluster import NoControllerError

        try:
            return answer(with_clients(picture, flags), as_json)
        except (UnknownBrokersError, NoControllerError) as error:
            raise NotFoundError(str(error)) from error

    return ask(source_of(flags), EVERYTHING_NOW, answered)


_Answer = Callable[["Picture", bool], int]


def _each(picture: Picture, as_json: bool) -> int:
    from cli.printing.whatif_lines import print_ranking
    from questions.whatif.ranking import rank_losses

    losses = rank_losses(picture.context)
    print_ranking(picture.header.cluster, losses, as_json=as_json)
    return ExitCode.OK if all(loss.is_harmless for loss in losses) else ExitCode.FAILED


def _rolling(at_once: int | None) -> _Answer:
    def answer(picture: Picture, as_json: bool) -> int:
        from msgspec.structs import replace

        from cli.printing.whatif_lines import print_rolling
        from questions.restartable import failing_starts
        from questions.whatif.rolling import rolling_order

        order = rolling_order(picture.context, at_once=at_once)
        order = replace(order, failing_starts=tuple(row.cause for row in failing_starts(picture)))
        print_rolling(picture.header, order, as_json=as_json)
        return ExitCode.FAILED if order.obstacles or order.failing_starts else ExitCode.OK

    return answer


def _played(said: Sequence[_Said], *, controlled: bool, is_all: bool) -> _Answer:
    def answer(picture: Picture, as_json: bool) -> int:
        from cli.printing.whatif_lines import print_scenario
        from questions.whatif.consequences import troubled_by
        from questions.whatif.scenario import play

        scenario = play(picture.context, _steps(picture, said, controlled=controlled))
        hit = (picture.clients.hit_by(troubled_by(step.consequences, picture.context)) for step in scenario.steps)
        print_scenario(scenario, tuple(filter(None, hit)), picture.now_ms, is_all=is_all, as_json=as_json)
        return ExitCode.OK if scenario.is_harmless else ExitCode.FAILED

    return answer


def _steps(picture: Picture, said: Sequence[_Said], *, controlled: bool) -> list[Step]:
    """Return the steps. Adjacent losses are one, and `--then` separates them."""
    from questions.whatif.scenario import Change, Step, brokers_in

    lost = Change.SHUT_DOWN if controlled else Change.CRASH
    steps: list[Step] = []
    parted = True
    for name, value in said:
        if name == "then":
            parted = True
            continue
        if name == "reassign":
            step = Step(Change.REASSIGN, targets=_targets(value))
        elif name == "restore":
            step = Step(Change.RESTORE, (BrokerId(int(value)),))
        else:
            step = Step(lost, brokers_in(picture.context, value) if name == "lose_rack" else (BrokerId(int(value)),))
        last = steps[-1] if steps and not parted and step.change is not Change.REASSIGN else None
        if last is not None and last.change is step.change:
            steps[-1] = last._replace(brokers=tuple(dict.fromkeys((*last.brokers, *step.brokers))))
        else:
            steps.append(step)
        parted = False
    return steps


def _targets(path: str | Path) -> dict[Any, tuple[BrokerId, ...]]:
    from questions.reassignment_json import ReassignmentJsonError, decode_reassignment

    try:
        return decode_reassignment(Path(path).read_bytes())
    except (OSError, ReassignmentJsonError) as error:
        raise NotFoundError(f"{path}: {error}") from error
