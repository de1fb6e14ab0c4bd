"""The partitions of a cluster by topic, each with one state, now and at the moments that people ask for next.

The moments are before the incident, after the next brokers have started, and after one more is lost. A map reads rows
and no context, because a context of 200,000 partitions takes seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from controller.contract.ids import NO_LEADER, BrokerId, PartitionId
from controller.contract.metadata_rows import PartitionRow, TopicRow
from controller.contract.problem import Problem
from controller.view.returns import is_restored
from controller.view.types import Header
from questions.check.damage import PROBLEMS_OF_CLIENTS, cause_of, needs_of
from questions.clients.groups import Clients, readers_by_topic, readers_in_words
from questions.clients.teams import Team
from questions.cluster_rows import ClusterSnapshot, TopicRows, problem_since_ms
from questions.whatif.representatives import Alike, Judge
from wording.facts import Fact
from wording.sentences import listed

LINES: Final = 24  # topics on a map at most
FOLDED_ABOVE: Final = 60  # a topic with more partitions has counts in place of squares


class SquareState(Enum):
    """State of a partition on the map, the worst first."""

    OFFLINE = Fact.OFFLINE.word
    WITHOUT_LEADER = Fact.WITHOUT_LEADER.word
    REJECTS_ACKS_ALL = Fact.REJECTS_ACKS_ALL.singular
    UNDER_REPLICATED = Fact.UNDER_REPLICATED.word
    IN_DELETION = "in deletion"
    COMES_BACK = "comes back"
    USABLE = "usable"

    def of(self, count: int) -> str:
        """Return this number of partitions in the words of a table: 4 offline, 6 reject acks=all."""
        rejects = self is SquareState.REJECTS_ACKS_ALL
        return f"{count:,} {Fact.REJECTS_ACKS_ALL.predicate(count) if rejects else self.value}"


AFFECTED: Final = (SquareState.OFFLINE, SquareState.WITHOUT_LEADER, SquareState.REJECTS_ACKS_ALL)
_BEYOND_A_LOSS: Final = (*AFFECTED[:2], SquareState.IN_DELETION)  # the loss of a broker takes nothing more
_STATES: Final[Mapping[str | None, SquareState]] = {
    None: SquareState.USABLE,
    Problem.UNDER_REPLICATED.value: SquareState.UNDER_REPLICATED,
    Problem.UNDER_MIN_ISR.value: SquareState.REJECTS_ACKS_ALL,
    Problem.NO_LIVE_IN_SYNC_REPLICA.value: SquareState.OFFLINE,
    Problem.NO_LIVE_REPLICA_AT_CREATION.value: SquareState.OFFLINE,
    Problem.ELECTION_DUE.value: SquareState.WITHOUT_LEADER,
    Problem.LEADERLESS.value: SquareState.WITHOUT_LEADER,
    Problem.NOT_YET_CREATED.value: SquareState.WITHOUT_LEADER,
    Problem.STATE_UNREADABLE.value: SquareState.UNDER_REPLICATED,
}


class Moment(Enum):
    """A moment of the map, as addresses name it."""

    BEFORE = "before"  # before the incident
    NOW = "now"  # now, or the shown moment of the past
    FIRST = "first"  # after the first broker has started
    SECOND = "second"  # after the second broker has started, too
    LOSS = "loss"  # after one more broker is lost


class Choice(msgspec.Struct, frozen=True):
    """A moment that the map can show, and how many partitions are affected then."""

    moment: Moment
    says: str
    affected: int


class Square(msgspec.Struct, frozen=True, omit_defaults=True):
    """A partition on the map; `leader` -1 is none. `since_ms` is the start of its problem."""

    partition: PartitionId
    state: SquareState
    leader: BrokerId
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    since_ms: int | None = None


class CauseOnMap(msgspec.Struct, frozen=True):
    """Affected partitions of a topic with one state and one cause."""

    state: SquareState
    says: str
    partitions: tuple[PartitionId, ...]


class MapLine(msgspec.Struct, frozen=True):
    """A topic on the map. A topic with many partitions has counts in place of squares."""

    topic: str
    partitions: int
    counts: dict[SquareState, int]
    says: str
    causes: tuple[CauseOnMap, ...]
    squares: tuple[Square, ...]
    team: Team | None = None  # that owns the topic
    groups: int = 0  # known consumer groups that read it
    readers: str = ""  # these groups in half a sentence


class ImpactMap(msgspec.Struct, frozen=True, kw_only=True):
    """The map of one moment, and the moments that can be chosen."""

    shown: Moment
    choices: tuple[Choice, ...]
    lines: tuple[MapLine, ...]  # the most important topic first
    more_affected: int  # affected topics without a line
    others: int  # topics without a line that are not affected
    starts: tuple[BrokerId, ...] = ()  # brokers that are up at the shown moment, though they are away now
    lost: tuple[BrokerId, ...] = ()  # brokers that are lost at the shown moment

    @property
    def states(self) -> tuple[SquareState, ...]:
        """Return the states on the map, the worst first."""
        seen = {state for line in self.lines for state, count in line.counts.items() if count}
        return tuple(state for state in SquareState if state in seen)


_StateOf = Callable[[PartitionRow], SquareState]
Rank = Callable[[str, TopicRow | None], tuple[object, ...]]


class Asked(NamedTuple):
    """Request of a map. Without a header the map cannot show a loss, and without `before` no earlier moment."""

    header: Header | None = None
    before: ClusterSnapshot | None = None
    returns: Sequence[BrokerId] = ()  # brokers that restore partitions, in their order
    moment: Moment = Moment.NOW


def impact_map(now: ClusterSnapshot, rank: Rank, asked: Asked = Asked()) -> ImpactMap:  # noqa: B008 (immutable)
    """Return the map of a cluster with all its topics. It shows the present if it cannot show the asked moment."""
    judge = None if asked.header is None or asked.header.led_by_kraft else Judge(asked.header)
    loss = None if judge is None else _worst_loss(now, judge)
    choices = tuple(_choices(now, asked, loss))
    shown = asked.moment if any(asked.moment is each.moment for each in choices) else Moment.NOW
    rows = _rows_of(now, asked, shown, judge, loss)
    lines, more = _lines(rows, now, rank)
    return ImpactMap(
        shown=shown,
        choices=choices,
        lines=lines,
        more_affected=more,
        others=len(rows.source.topics) - len(lines) - more,
        starts=rows.starts,
        lost=rows.lost,
    )


def with_clients(impact: ImpactMap, clients: Clients) -> ImpactMap:
    """Return the map with the team and the consumer groups of each topic."""
    by_topic = readers_by_topic(clients.known, {line.topic for line in impact.lines})

    def named(line: MapLine) -> MapLine:
        groups = by_topic[line.topic]
        readers = readers_in_words(groups, clients) if groups else ""
        return replace(line, team=clients.teams.team_of(line.topic), groups=len(groups), readers=readers)

    return replace(impact, lines=tuple(map(named, impact.lines)))


class _ShownRows(NamedTuple):
    """The rows of the shown moment, with the function that gives a partition's state then."""

    source: ClusterSnapshot
    state_of: _StateOf
    starts: tuple[BrokerId, ...] = ()
    lost: tuple[BrokerId, ...] = ()
    hit: Collection[str] = ()  # topics that are affected only at the shown moment


def _rows_of(now: ClusterSnapshot, asked: Asked, shown: Moment, judge: Judge | None, loss: _Worst | None) -> _ShownRows:
    if shown is Moment.BEFORE and asked.before is not None:
        up = tuple(row.broker for row in asked.before.brokers if row.registered)
        return _ShownRows(asked.before, state_of_partition, up)
    if shown in (Moment.FIRST, Moment.SECOND):
        starts = tuple(asked.returns[: 1 if shown is Moment.FIRST else 2])
        return _ShownRows(now, _state_after_return(starts), starts)
    if shown is Moment.LOSS and judge is not None and loss is not None and loss.broker is not None:
        return _ShownRows(now, _state_after_loss(judge, loss.broker, now.topics), (), (loss.broker,), loss.topics)
    return _ShownRows(now, state_of_partition)


def hosted_map(now: ClusterSnapshot, rank: Rank, broker: BrokerId) -> ImpactMap:
    """Return the map of the broker's partitions. The snapshot has all topics."""
    hosted = {
        name: TopicRows(topic.row, rows)
        for name, topic in now.topics.items()
        if (rows := {number: row for number, row in topic.partitions.items() if broker in row.replicas})
    }
    affected = {row.topic for row in (*now.unusable, *now.under_min_isr) if broker in row.replicas}
    names = _shown_topics(affected, hosted, rank)
    lines = tuple(_line(name, hosted[name].partitions, state_of_partition) for name in names[:LINES])
    more = len(affected - set(names[:LINES]))
    return ImpactMap(
        shown=Moment.NOW, choices=(), lines=lines, more_affected=more, others=len(hosted) - len(lines) - more
    )


class _Worst(NamedTuple):
    """The broker whose loss takes most from clients, None if no loss takes anything."""

    broker: BrokerId | None
    affected: int  # partitions that were not affected before
    topics: Collection[str]


def _choices(now: ClusterSnapshot, asked: Asked, loss: _Worst | None) -> Iterator[Choice]:
    affected = (*now.unusable, *now.under_min_isr)
    if asked.before is not None:
        yield Choice(Moment.BEFORE, "before", len(asked.before.unusable) + len(asked.before.under_min_isr))
    yield Choice(Moment.NOW, "now", len(affected))
    for moment, brokers in ((Moment.FIRST, asked.returns[:1]), (Moment.SECOND, asked.returns[:2])):
        if len(brokers) == (1 if moment is Moment.FIRST else 2):
            left = sum(not is_restored(*needs_of(row), brokers) for row in affected)
            yield Choice(moment, f"if {listed(brokers, 'starts')}", left)
    if loss is not None:
        lost = "one more broker" if loss.broker is None else f"broker {loss.broker}"
        yield Choice(Moment.LOSS, f"if {lost} is lost", len(affected) + loss.affected)


def _worst_loss(now: ClusterSnapshot, judge: Judge) -> _Worst:
    """Return the worst loss as `rank_losses` orders them: offline partitions first, then those that reject acks=all."""
    offline: Counter[BrokerId] = Counter()
    rejecting: Counter[BrokerId] = Counter()
    newly: Counter[BrokerId] = Counter()
    topics: dict[BrokerId, set[str]] = defaultdict(set)
    for name, topic in now.topics.items():
        enough = judge.most_needed(None if topic.row is None else topic.row.min_insync_replicas)
        for row in topic.partitions.values():
            if len(row.isr) > enough or state_of_partition(row) in _BEYOND_A_LOSS:
                continue
            alike = _alike(judge, row, topic.row)
            for broker in alike.isr:
                fate = alike.after(judge.live - {broker})
                if fate.leader == NO_LEADER:
                    offline[broker] += 1
                elif fate.rejects and len(alike.isr) >= alike.needed:
                    rejecting[broker] += 1
                else:
                    continue
                newly[broker] += row.problem != Problem.UNDER_MIN_ISR.value
                topics[broker].add(name)
    led = {} if now.gauges is None else now.gauges.leaders_by_broker

    def order(broker: BrokerId) -> tuple[object, ...]:
        moved = led.get(broker, 0) - offline[broker]
        return -offline[broker], -rejecting[broker], -moved, f"broker {broker}"

    worst = min(topics, key=order, default=None)
    return _Worst(worst, 0 if worst is None else newly[worst], () if worst is None else topics[worst])


def state_of_partition(row: PartitionRow) -> SquareState:
    """Return the state of the partition in its row."""
    return SquareState.IN_DELETION if row.deleting else _STATES[row.problem]


def states_in_words(rows: Iterable[PartitionRow]) -> str:
    """Return how many of a topic's partitions are in trouble, empty if all are usable and in sync."""
    return _says(Counter(map(state_of_partition, rows)))


def _state_after_return(returned: Sequence[BrokerId]) -> _StateOf:
    def state_of(row: PartitionRow) -> SquareState:
        state = state_of_partition(row)
        if state in AFFECTED and is_restored(*needs_of(row), returned):
            return SquareState.COMES_BACK
        is_whole = set(row.replicas).difference(row.isr) <= set(returned)
        return SquareState.USABLE if state is SquareState.UNDER_REPLICATED and is_whole else state

    return state_of


def _state_after_loss(judge: Judge, lost: BrokerId, topics: Mapping[str, TopicRows]) -> _StateOf:
    left = judge.live - {lost}

    def state_of(row: PartitionRow) -> SquareState:
        state = state_of_partition(row)
        if lost not in row.replicas or state in _BEYOND_A_LOSS:
            return state
        fate = _alike(judge, row, topics[row.topic].row).after(left)
        if fate.leader == NO_LEADER:
            return SquareState.OFFLINE
        return SquareState.REJECTS_ACKS_ALL if fate.rejects else SquareState.UNDER_REPLICATED

    return state_of


def _alike(judge: Judge, row: PartitionRow, topic: TopicRow | None) -> Alike:
    away = row.details.offline_dirs if row.details else ()
    least, unclean = (None, None) if topic is None else (topic.min_insync_replicas, topic.unclean_election)
    return judge.alike(row.replicas, row.isr, row.leader, away, least, unclean)


def _lines(shown: _ShownRows, now: ClusterSnapshot, rank: Rank) -> tuple[tuple[MapLine, ...], int]:
    """Return the lines of topics that are affected now or at the shown moment, and how many have no line."""
    topics = shown.source.topics
    every = (*shown.source.unusable, *shown.source.under_min_isr, *now.unusable, *now.under_min_isr)
    affected = {row.topic for row in every if row.topic in topics} | set(shown.hit)
    names = _shown_topics(affected, topics, rank)[:LINES]
    lines = tuple(_line(name, topics[name].partitions, shown.state_of) for name in names)
    return lines, len(affected.difference(names))


def _shown_topics(affected: Collection[str], topics: Mapping[str, TopicRows], rank: Rank) -> list[str]:
    """Return the affected topics, the most important first, then all others if they have room."""

    def in_order(names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: rank(name, topics[name].row))

    others = (
        [name for name in topics if name not in affected and topics[name].partitions] if len(topics) <= LINES else []
    )
    return [*in_order(affected), *in_order(others)]


def _line(name: str, rows: Mapping[PartitionId, PartitionRow], state_of: _StateOf) -> MapLine:
    states = {number: state_of(rows[number]) for number in sorted(rows)}
    counts = Counter(states.values())
    squares = (
        () if len(rows) > FOLDED_ABOVE else tuple(_square(rows[number], state) for number, state in states.items())
    )
    causes: dict[tuple[SquareState, str], list[PartitionId]] = {}
    for number, state in states.items():
        if state in AFFECTED:
            causes.setdefault((state, _cause(rows[number])), []).append(number)
    grouped = tuple(CauseOnMap(state, says, tuple(numbers)) for (state, says), numbers in causes.items())
    in_order = {state: counts[state] for state in SquareState if counts[state]}
    return MapLine(name, len(rows), in_order, _says(counts), grouped, squares)


def _cause(row: PartitionRow) -> str:
    """Return why the partition is affected now, empty if only the shown moment affects it."""
    return cause_of(row) if row.problem is not None and Problem(row.problem) in PROBLEMS_OF_CLIENTS else ""


def _square(row: PartitionRow, state: SquareState) -> Square:
    since_ms = None if row.problem is None else problem_since_ms(row)
    return Square(row.partition, state, row.leader, row.isr, row.replicas, since_ms)


def _says(counts: Mapping[SquareState, int]) -> str:
    """Return the line's counts in words: 4 offline, 6 reject acks=all; 2 back, 4 left; all back."""
    back = counts[SquareState.COMES_BACK]
    left = sum(counts[state] for state in AFFECTED)
    if back:
        return f"{back:,} back, {left:,} left" if left else "all back"
    told = (*AFFECTED, SquareState.UNDER_REPLICATED, SquareState.IN_DELETION)
    words = [state.of(counts[state]) for state in told if counts[state]]
    return ", ".join(words[:2])
