"""Consequences of steps, the ranking of losses, and the order of restarts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from controller.view.types import Header
from questions.clients.groups import Impact
from questions.what_if import PlayedScenario, Ranking
from questions.whatif.consequences import Consequences, PartitionChange
from questions.whatif.ranking import Loss
from questions.whatif.rolling import Obstacle, RollingOrder
from wording.facts import Fact
from wording.said import Line, Said, Table, line
from wording.sentences import counted, joined, plural

_NAMED: Final = 10
_RANKED: Final = ("lost", "offline", "reject acks=all", "unclean", "leaders move", "most leaders then", "topics")


def scenario_lines(scenario: PlayedScenario, as_of_ms: int, *, is_all: bool) -> Said:
    """Show each step, its impact on consumer groups if they are known, and the common effect."""
    most = None if is_all else _NAMED
    for step, impact in zip_longest(scenario.steps, scenario.impacts):
        yield from _step(step.title, step.consequences, most)
        yield from _impact(impact, as_of_ms, most)
    yield _left(scenario.in_all)


def _step(title: str, taken: Consequences, most: int | None) -> Said:
    harmless = not (taken.newly_offline or taken.newly_unwritable or taken.unclean)
    back = f"clients can use {counted(len(taken.newly_online), 'partition')} again" if taken.newly_online else ""
    yield line((title, "strong"), ": ", (back or "no effect on clients", "ok") if harmless else back)
    who = f"broker {taken.controller} is controller" if taken.controller >= 0 else "no broker is left"
    yield line(f"{counted(len(taken.moved_leaders), 'leader')} moved, {who}", indent=2)
    yield from _named("page", "offline", taken.newly_offline, most)
    yield from _named("page", "led uncleanly (acknowledged records may be lost)", taken.unclean, most)
    yield from _named("warn", Fact.REJECTS_ACKS_ALL.word, taken.newly_unwritable, most)


def _named(meaning: str, what: str, changes: Sequence[PartitionChange], most: int | None) -> Said:
    if not changes:
        return
    yield line((f"{counted(len(changes), 'partition')} {what}", meaning), indent=2)
    for change in changes[:most]:
        led = f"leader {change.leader_before} → {change.leader}" if change.leader >= 0 else "no leader"
        yield line(f"{change.topic}-{change.partition}: {led}; {change.reason or 'in sync'}", indent=4)
    if most is not None and len(changes) > most:
        yield line(f"and {len(changes) - most} more (--all names them)", indent=4)


def _impact(impact: Impact | None, as_of_ms: int, most: int | None) -> Said:
    if impact is None or not impact.sentence:
        return
    yield line((impact.sentence, "page"), f", {impact.as_of(as_of_ms)}", indent=2)
    yield from impact.said(most)


def _left(after: Consequences) -> Line:
    return line(
        f"In the end: {after.offline} offline ({after.offline_before} now), "
        f"{after.under_min_isr} {Fact.REJECTS_ACKS_ALL.word} ({after.under_min_isr_before} now). "
        f"Leaders by broker: {_leaders(after)}"
    )


def _leaders(after: Consequences) -> str:
    brokers = sorted({*after.brokers, *after.leaders_before})
    then, now = after.leaders, after.leaders_before
    return ", ".join(f"{broker}: {now.get(broker, 0)} → {then.get(broker, 0)}" for broker in brokers)


def ranking_lines(ranking: Ranking) -> Said:
    """Show the losses, the worst first."""
    yield Table(_RANKED, [_ranked(loss) for loss in ranking.losses], below=1)


def _ranked(loss: Loss) -> tuple[str, ...]:
    more = f" and {loss.more_topics} more" if loss.more_topics else ""
    counts = (loss.offline, loss.unwritable, loss.unclean, loss.leaders_moved, loss.most_leaders)
    return (loss.lost, *map(str, counts), f"{', '.join(loss.topics)}{more}")


def rolling_lines(header: Header, order: RollingOrder) -> Said:
    """Show the batches, and the topics for which no order helps."""
    for sentence in order.failing_starts:
        yield line(("do not restart: ", "page"), sentence)
    total = sum(map(len, order.batches))
    yield line(
        f"{counted(total, 'broker')} in {counted(len(order.batches), 'batch')}. After each, wait until all are in sync:"
    )
    for number, batch in enumerate(order.batches, start=1):
        named = joined(list(map(str, batch)), most=len(batch))  # name all, because each must be restarted
        notes = ", the controller" if header.controller in batch else ""
        racks = sorted({header.brokers[broker].rack or "" for broker in batch} - {""})
        where = f" (rack {', '.join(racks)})" if racks else ""
        yield line(f"{number}. {plural(len(batch), 'broker', 'brokers')} {named}{where}{notes}")
    for obstacle in order.obstacles:
        yield from _obstacle(obstacle)


def _obstacle(obstacle: Obstacle) -> Said:
    more = f" and {obstacle.more_topics} more" if obstacle.more_topics else ""
    yield line(
        ("with a gap: ", "warn"),
        f"{counted(obstacle.partitions, 'partition')}, {obstacle.reason}. While one of their brokers restarts, "
        f"{obstacle.consequence}",
    )
    yield line(f"topics: {', '.join(obstacle.topics)}{more}", indent=4)
