"""The questions about what would happen: a scenario, a ranking of losses, and an order of restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from typing import Annotated, Final

import msgspec
from msgspec.structs import asdict, replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.view.types import Context
from questions.clients.groups import Impact
from questions.explain.subject import read_partition
from questions.known_brokers import UnknownBrokersError
from questions.picture import Picture
from questions.question import NotFoundError, Question, meaning
from questions.whatif.consequences import troubled_by
from questions.whatif.hypothetical_cluster import NoControllerError
from questions.whatif.rolling import Loss, RollingOrder, failing_starts, rank_losses, rolling_order
from questions.whatif.scenario import Change, Scenario, Step, brokers_in, play
from wording.said import Said, Table, line

_NAMED: Final = 10
_RANKED: Final = ("lost", "offline", "reject acks=all", "unclean", "leaders move", "most leaders then", "topics")


class PlayedScenario(Scenario, frozen=True, omit_defaults=True):
    """The steps, their common effect, and the impact of each step on consumer groups, if any is known."""

    impacts: tuple[Impact, ...] = ()

    def said(self, as_of_ms: int, *, is_all: bool) -> Said:
        """Yield each step, its impact on consumer groups if they are known, and the common effect."""
        most = None if is_all else _NAMED
        for step, impact in zip_longest(self.steps, self.impacts):
            yield from step.consequences.said(step.title, most)
            if impact is not None and impact.sentence:
                yield line((impact.sentence, "page"), f", {impact.as_of(as_of_ms)}", indent=2)
                yield from impact.said(most)
        yield line(f"In the end: {self.in_all.totals}")


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change: a loss, a return or a reassignment. A wrong one raises ValueError."""

    lose_brokers: Annotated[tuple[int, ...], meaning("Brokers that are lost at once.")] = ()
    lose_racks: Annotated[tuple[str, ...], meaning("Racks whose brokers are lost at the same time.")] = ()
    restore: Annotated[tuple[int, ...], meaning("Brokers that return and catch up.")] = ()
    reassign: Annotated[
        Mapping[str, tuple[int, ...]], meaning("Target replicas of partitions, such as {'orders-7': [1, 2]}.")
    ] = {}

    def __post_init__(self) -> None:
        """Raise ValueError for a step of two kinds or none, and for words that name no partition."""
        if sum(map(bool, (self.lose_brokers or self.lose_racks, self.restore, self.reassign))) != 1:
            raise ValueError("a step loses brokers or racks, or restores brokers, or reassigns partitions")
        self._targets()

    def in_cluster(self, context: Context, lost: Change) -> Step:
        """Return the step with the brokers of its racks. Raise UnknownBrokersError for an empty rack."""
        if self.reassign:
            return Step(Change.REASSIGN, targets=self._targets())
        if self.restore:
            return Step(Change.RESTORE, tuple(dict.fromkeys(_brokers(self.restore))))
        racks = (broker for rack in self.lose_racks for broker in brokers_in(context, rack))
        return Step(lost, tuple(dict.fromkeys((*_brokers(self.lose_brokers), *racks))))

    def _targets(self) -> dict[TopicPartition, tuple[BrokerId, ...]]:
        return {read_partition(name): _brokers(replicas) for name, replicas in self.reassign.items()}


class WhatIf(Question, frozen=True):
    """Simulate losses and returns of brokers or racks, and reassignments, by the controller's own rules.

    Each step is played to its end before the next one.
    """

    answer = PlayedScenario
    asks_clients = True

    steps: Annotated[tuple[PlannedStep, ...], meaning("The changes, one after the other."), msgspec.Meta(min_length=1)]
    controlled: Annotated[bool, meaning("Lost brokers shut down cleanly. By default they crash.")] = False

    def ask(self, picture: Picture) -> PlayedScenario:
        """Play the steps, and say whom each of them hits. Raise NotFoundError."""
        context, lost = picture.context, Change.SHUT_DOWN if self.controlled else Change.CRASH
        with _refusals():
            scenario = play(context, [step.in_cluster(context, lost) for step in self.steps])
        hit = (picture.clients.hit_by(troubled_by(step.consequences, context)) for step in scenario.steps)
        return PlayedScenario(**asdict(scenario), impacts=tuple(filter(None, hit)))


def _brokers(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


class Ranking(msgspec.Struct, frozen=True):
    """Losses of each broker and rack, the worst first."""

    cluster: str
    losses: tuple[Loss, ...]

    def said(self) -> Said:
        """Yield a table of the losses."""
        yield Table(_RANKED, [loss.cells for loss in self.losses], below=1)


class WhatIfEach(Question, frozen=True):
    """Rank every broker and rack by the effect of its loss."""

    answer = Ranking

    def ask(self, picture: Picture) -> Ranking:
        """Return the losses of the cluster. Raise NotFoundError."""
        with _refusals():
            return Ranking(picture.header.cluster, rank_losses(picture.context))


class WhatIfRolling(Question, frozen=True):
    """Propose an order of restarts without an effect on clients, and name the topics that prevent one."""

    answer = RollingOrder

    at_once: Annotated[Annotated[int, msgspec.Meta(ge=1)] | None, meaning("Restart at most N brokers at once.")] = None

    def ask(self, picture: Picture) -> RollingOrder:
        """Return the order. Raise NotFoundError."""
        with _refusals():
            order = rolling_order(picture.context, at_once=self.at_once)
        return replace(order, failing_starts=tuple(row.cause for row in failing_starts(picture)))


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn the refusal of a broker that the cluster does not have, or of every step, into NotFoundError."""
    try:
        yield
    except (UnknownBrokersError, NoControllerError) as error:
        raise NotFoundError(str(error)) from error
