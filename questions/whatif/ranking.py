"""Brokers and racks, ranked by the effect of their loss on clients."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from controller.contract.ids import NO_LEADER, BrokerId
from controller.view.types import Context
from questions.whatif.alike import Alike, Group, partitions_alike
from questions.whatif.consequences import place_of
from questions.whatif.hypothetical_cluster import at_rest

_NAMED_TOPICS: Final = 5


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
    alike: Mapping[Alike, Group],
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
        named[:_NAMED_TOPICS],
        len(named[_NAMED_TOPICS:]),
        max((leaders[broker] for broker in left), default=0),
    )
