"""An order in which all brokers can be restarted while every partition can be read, and written with acks=all.

Brokers and racks are also ranked by the effect of their loss on clients.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import NO_LEADER, BrokerId
from controller.says.alert_kinds import kinds
from controller.view.types import Context, Header
from questions.picture import Picture
from questions.whatif.consequences import place_of
from questions.whatif.hypothetical_cluster import at_rest
from questions.whatif.representatives import Alike, EqualPartitions, partitions_alike
from wording.said import Said, line
from wording.sentences import counted, joined, plural

_NAMED_TOPICS: Final = 20


class HopelessTopics(msgspec.Struct, frozen=True):
    """Topics that no order helps, with the reason, and the effect of a restart on their partitions."""

    reason: str
    consequence: str
    partitions: int
    topics: tuple[str, ...]
    more_topics: int

    def said(self) -> Said:
        """Yield the reason with its effect, and the topics."""
        more = f" and {self.more_topics} more" if self.more_topics else ""
        why = f"{counted(self.partitions, 'partition')}, {self.reason}"
        effect = f"While one of their brokers restarts, {self.consequence}"
        yield line(("with a gap: ", "warn"), f"{why}. {effect}")
        yield line(f"topics: {', '.join(self.topics)}{more}", indent=4)


class RollingOrder(msgspec.Struct, frozen=True):
    """Batches of brokers, to be restarted one batch after the other once all replicas are in sync again."""

    cluster: str
    batches: tuple[tuple[BrokerId, ...], ...]
    obstacles: tuple[HopelessTopics, ...]
    failing_starts: tuple[str, ...] = ()  # sentences about brokers that would not start again

    def said(self, header: Header) -> Said:
        """Yield the batches, and the topics for which no order helps."""
        for sentence in self.failing_starts:
            yield line(("do not restart: ", "page"), sentence)
        total, batches = sum(map(len, self.batches)), counted(len(self.batches), "batch")
        yield line(f"{counted(total, 'broker')} in {batches}. After each, wait until all are in sync:")
        for number, batch in enumerate(self.batches, start=1):
            named = joined(list(map(str, batch)), most=len(batch))  # name all, because each must be restarted
            notes = ", the controller" if header.controller in batch else ""
            racks = sorted({header.brokers[broker].rack or "" for broker in batch} - {""})
            where = f" (rack {', '.join(racks)})" if racks else ""
            yield line(f"{number}. {plural(len(batch), 'broker', 'brokers')} {named}{where}{notes}")
        for obstacle in self.obstacles:
            yield from obstacle.said()


def rolling_order(context: Context, *, at_once: int | None = None) -> RollingOrder:
    """Return few batches by a greedy choice, racks together, the controller last. `at_once` limits a batch.

    Partitions that cannot spare any broker are obstacles, but do not keep their brokers out of a batch. Raise
    NoControllerError.
    """
    context = at_rest(context)
    alike = partitions_alike(context)
    spared = {each: group for each, group in alike.items() if _spare(each) >= 1}
    hosted: dict[int, list[Alike]] = defaultdict(list)
    for each in spared:
        for member in each.isr:
            hosted[member].append(each)
    brokers = context.header.brokers
    controller = context.header.controller
    order = sorted(brokers, key=lambda broker: (broker == controller, brokers[broker].rack or "", broker))
    batches: list[list[BrokerId]] = []
    taken: list[Counter[Alike]] = []
    for broker in order:
        at = _first_that_fits(hosted[broker], batches, taken, at_once, alone=broker == controller)
        if at == len(batches):
            batches.append([])
            taken.append(Counter())
        batches[at].append(broker)
        taken[at].update(hosted[broker])
    found = tuple(tuple(sorted(batch)) for batch in batches)
    return RollingOrder(context.header.cluster, found, _obstacles(alike, context))


def failing_starts(picture: Picture) -> tuple[AlertRow, ...]:
    """Return the alerts on brokers that would fail at their next start. An alert without brokers concerns all."""
    return tuple(row for row in picture.alerts if row.alert == kinds.START_WILL_FAIL.name)


def _first_that_fits(
    hosted: list[Alike], batches: list[list[BrokerId]], taken: list[Counter[Alike]], at_once: int | None, *, alone: bool
) -> int:
    if alone:
        return len(batches)  # as the last batch, so that the cluster has only one failover
    for at, used in enumerate(taken):
        is_full = at_once is not None and len(batches[at]) >= at_once
        if not is_full and all(used[each] < _spare(each) for each in hosted):
            return at
    return len(batches)


def _spare(alike: Alike) -> int:
    """Return in-sync replicas that may be away at once."""
    return len(alike.isr) - alike.needed


def _obstacles(alike: Mapping[Alike, EqualPartitions], context: Context) -> tuple[HopelessTopics, ...]:
    found: dict[tuple[str, str], list[EqualPartitions]] = defaultdict(list)
    for each, group in alike.items():
        if _spare(each) < 1:
            found[_why(each), _consequence(each)].append(group)
    return tuple(_obstacle(*why, groups, context) for why, groups in sorted(found.items()))


def _why(alike: Alike) -> str:
    replicas = len(alike.replicas)
    if replicas == 1:
        return "replication factor 1"
    if replicas <= alike.needed:
        return f"replication factor {replicas} is not above min.insync.replicas {alike.needed}"
    return "some replicas are not in sync yet"


def _consequence(alike: Alike) -> str:
    if len(alike.isr) > 1:
        return "they reject acks=all"
    return "they lose records" if alike.unclean and len(alike.replicas) > 1 else "they are offline"


def _obstacle(reason: str, consequence: str, groups: list[EqualPartitions], context: Context) -> HopelessTopics:
    names = frozenset().union(*(group.topics for group in groups))
    topics = sorted(names, key=lambda topic: place_of(topic, context))
    partitions = sum(group.partitions for group in groups)
    return HopelessTopics(reason, consequence, partitions, tuple(topics[:_NAMED_TOPICS]), len(topics[_NAMED_TOPICS:]))


_RANKED_TOPICS: Final = 5


class Loss(msgspec.Struct, frozen=True, omit_defaults=True):
    """Loss of one broker or rack by a crash, in numbers of partitions."""

    lost: str  # "broker 3" or "rack eu-1"
    brokers: tuple[BrokerId, ...]
    offline: int
    unwritable: int  # led, and rejecting acks=all
    unclean: int  # led by a replica that was not in sync
    leaders_moved: int
    topics: tuple[str, ...] = ()  # that would have partitions offline or unwritable, as many as are named
    more_topics: int = 0
    most_leaders: int = 0  # leaders of the broker with the most, afterwards

    @property
    def is_harmless(self) -> bool:
        """Return whether all partitions could still be read, and written with acks=all."""
        return not (self.offline or self.unwritable or self.unclean)

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table's row."""
        more = f" and {self.more_topics} more" if self.more_topics else ""
        counts = (self.offline, self.unwritable, self.unclean, self.leaders_moved, self.most_leaders)
        return (self.lost, *map(str, counts), f"{', '.join(self.topics)}{more}")


def rank_losses(context: Context) -> tuple[Loss, ...]:
    """Return the losses of each registered broker and of each rack with more than one, the worst first.

    Raise NoControllerError.
    """
    context = at_rest(context)
    brokers = context.header.brokers
    alike = partitions_alike(context)
    hosted: dict[BrokerId, set[Alike]] = defaultdict(set)
    for each in alike:
        for replica in each.replicas:
            hosted[replica].add(each)
    racks: dict[str, list[BrokerId]] = defaultdict(list)
    for broker in sorted(brokers):
        racks[brokers[broker].rack or ""].append(broker)
    named: list[tuple[str, tuple[BrokerId, ...]]] = [(f"broker {broker}", (broker,)) for broker in sorted(brokers)]
    named += [(f"rack {rack}", tuple(members)) for rack, members in sorted(racks.items()) if rack and members[1:]]
    led: Counter[BrokerId] = Counter()
    for each, group in alike.items():
        led[each.leader] += group.partitions
    losses = [_loss(name, lost, context, hosted, alike, led) for name, lost in named]
    return tuple(sorted(losses, key=_worst_first))


def _worst_first(loss: Loss) -> tuple[int, int, int, int, str]:
    return -loss.offline, -loss.unwritable, -loss.unclean, -loss.leaders_moved, loss.lost


def _loss(  # noqa: PLR0913 (all that it is counted from)
    name: str,
    lost: tuple[BrokerId, ...],
    context: Context,
    hosted: Mapping[BrokerId, Iterable[Alike]],
    alike: Mapping[Alike, EqualPartitions],
    led: Counter[BrokerId],
) -> Loss:
    left = context.header.brokers.keys() - set(lost)
    counts: Counter[str] = Counter()
    leaders = led.copy()
    hit: set[str] = set()
    for each in {each for broker in lost for each in hosted[broker]}:
        count, topics = alike[each]
        fate = each.after(left)
        rejects = fate.rejects and each.needed <= len(each.isr)
        if fate.leader != each.leader:
            leaders[each.leader] -= count
            leaders[fate.leader] += count
        counts["offline"] += count * (fate.leader == NO_LEADER)
        counts["moved"] += count * (fate.leader not in (each.leader, NO_LEADER))
        counts["unclean"] += count * fate.is_unclean
        counts["unwritable"] += count * rejects
        if rejects or fate.leader == NO_LEADER:
            hit |= topics
    named = tuple(sorted(hit, key=lambda topic: place_of(topic, context)))
    return Loss(
        name,
        lost,
        counts["offline"],
        counts["unwritable"],
        counts["unclean"],
        counts["moved"],
        named[:_RANKED_TOPICS],
        len(named[_RANKED_TOPICS:]),
        max((leaders[broker] for broker in left), default=0),
    )
