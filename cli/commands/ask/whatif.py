"""Simulate the loss, shutdown or return of brokers, or a reassignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.sources.asking import ask_question, shown
from cli.sources.options import Chosen, source_options
from controller.contract.ids import BrokerId

if TYPE_CHECKING:
    from questions.picture import Picture
    from questions.whatif.question import PlannedStep, PlayedScenario, Ranking
    from questions.whatif.rolling import RollingOrder

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
    """An option that is a step, with its value."""

    name: str
    value: Any


class _InOrder(GroupedCommand):
    """A command that remembers in which order its repeatable options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep the steps in the context's meta."""
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
    chosen: Chosen,
    **_steps_in_meta: object,
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
    from questions.whatif.question import WhatIf, WhatIfEach, WhatIfRolling

    question = (
        WhatIfEach()
        if each
        else WhatIfRolling(at_once=at_once)
        if rolling
        else WhatIf(steps=tuple(_steps(said)), controlled=controlled)
    )
    return ask_question(chosen, question, partial(_show, is_all=is_all, as_json=as_json))


def _show(found: PlayedScenario | Ranking | RollingOrder, picture: Picture, *, is_all: bool, as_json: bool) -> ExitCode:
    from questions.whatif.question import PlayedScenario, Ranking

    if isinstance(found, PlayedScenario):
        said, is_good = found.said(picture.now_ms, is_all=is_all), found.is_harmless
    elif isinstance(found, Ranking):
        said, is_good = found.said(), all(loss.is_harmless for loss in found.losses)
    else:
        said, is_good = found.said(picture.header), not (found.obstacles or found.failing_starts)
    return shown(found, said, as_json=as_json, is_good=is_good)


def _steps(said: Iterable[_Said]) -> Iterator[PlannedStep]:
    """Yield the steps. Adjacent losses are one step, as are adjacent returns, unless `--then` separates them."""
    from questions.whatif.question import PlannedStep

    for kind, group in groupby(said, key=lambda each: each.name.partition("_")[0]):
        values: dict[str, list[Any]] = {}
        for name, value in group:
            values.setdefault(name, []).append(int(value) if name in ("lose_broker", "restore") else value)
        if kind == "reassign":
            yield from (PlannedStep(reassign=_targets(Path(file))) for file in values["reassign"])
        elif kind == "restore":
            yield PlannedStep(restore=tuple(values["restore"]))
        elif kind == "lose":
            brokers, racks = values.get("lose_broker", ()), values.get("lose_rack", ())
            yield PlannedStep(lose_brokers=tuple(brokers), lose_racks=tuple(racks))


def _targets(path: Path) -> dict[str, tuple[BrokerId, ...]]:
    from questions.whatif.placement import ReassignmentJsonError, decode_reassignment

    try:
        return {str(tp): replicas for tp, replicas in decode_reassignment(path.read_bytes()).items()}
    except (OSError, ReassignmentJsonError) as error:
        raise click.UsageError(f"{path}: {error}.") from error
