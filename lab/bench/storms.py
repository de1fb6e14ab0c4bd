"""What a record costs in a storm: a history in which one cause changes hundreds of partitions or topics at once.

Each storm runs in a small and a large form, and the ratio compares the time of a record. It is near 1 if a record costs
only what it changes, and as high as that of the sizes if each record looks at everything that is in flight.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from time import process_time
from typing import Any, Final
from unittest.mock import patch

from rich.progress import track

from controller.step import Outcome, step
from lab.bench.figures import Figure, print_by_size
from tests.controller import znode_history
from tests.controller.znode_history import Topics, ZnodeHistory

_PARTITIONS_A_TOPIC: Final = 10
_REPLICAS: Final = [3, 2, 1]


class Storm:
    """A cluster with these topics, whose controller is broker 2, and its history."""

    def __init__(self, brokers: Sequence[int], topics: Topics) -> None:
        self.topics = list(topics)
        self.history = ZnodeHistory().start(*brokers, controller=2, topics=topics)
        self.partitions = [(name, partition) for name, partitions in topics.items() for partition in partitions]

    def write(self, leader: int, epoch: int, isr: list[int]) -> None:
        """Write this state for each partition."""
        for name, partition in self.partitions:
            self.history.state(name, partition, leader, epoch, isr)

    def wait(self) -> None:
        """Let half a minute pass."""
        for _ in range(5):
            self.history.heartbeat(6_000)


def _on_five(size: int, *, a_topic: int = _PARTITIONS_A_TOPIC, leader: int = 3) -> Storm:
    """Return a cluster whose partitions are all on brokers 3, 2 and 1."""
    partitions = {at: (_REPLICAS, leader, 0, _REPLICAS) for at in range(a_topic)}
    return Storm((1, 2, 3, 4, 5), {f"t{number:06}": partitions for number in range(size // a_topic)})


def _on_racks(size: int) -> Storm:
    """Return a cluster in which each broker of a rack leads ten partitions, with a replica on two others."""
    rack = range(100, 100 + size // _PARTITIONS_A_TOPIC)
    replicas = {broker: [broker, 1, 2] for broker in rack}
    topics = {
        f"t{broker}": {at: (replicas[broker], broker, 0, replicas[broker]) for at in range(_PARTITIONS_A_TOPIC)}
        for broker in rack
    }
    return Storm((1, 2, *rack), topics)


def _without_brokers(size: int) -> Storm:
    """Return a cluster whose partitions are on three of a hundred brokers, which are all away, at random placement."""
    chance = Random(size)
    partitions = [chance.sample(range(100, 200), 3) for _ in range(size)]
    return Storm((1, 2), {f"t{at:06}": {0: (replicas, -1, 0, replicas)} for at, replicas in enumerate(partitions)})


def _rack_crash(storm: Storm) -> None:
    for name in storm.topics:
        storm.history.broker_leaves(int(name[1:]))
    for name, partition in storm.partitions:
        storm.history.state(name, partition, 1, 1, [1, 2])
    storm.wait()


def _crash(storm: Storm) -> None:
    storm.history.broker_leaves(3)
    storm.write(2, 1, [2, 1])
    storm.wait()


def _crash_with_other_leaders(storm: Storm) -> None:
    storm.history.broker_leaves(3)
    storm.write(1, 1, [2, 1])
    storm.wait()


def _edited_states(storm: Storm) -> None:
    storm.write(1, 1, [2])


def _restart(storm: Storm) -> None:
    storm.write(2, 1, [2, 1])
    storm.history.broker_closes(3)
    storm.history.broker(3)
    storm.write(2, 1, [2, 1, 3])
    storm.wait()


def _failover(storm: Storm) -> None:
    storm.history.controller_dies(2)
    storm.history.controller(1, 2)
    storm.write(3, 1, [3, 1])
    storm.wait()


def _preferred_election(storm: Storm) -> None:
    storm.history.elect_preferred(*storm.partitions)
    storm.write(3, 1, [3, 2, 1])
    storm.wait()


def _reassignment(storm: Storm) -> None:
    adding = {str(at): [4, 5] for at in range(_PARTITIONS_A_TOPIC)}
    removing = {str(at): [3, 2] for at in range(_PARTITIONS_A_TOPIC)}
    for name in storm.topics:
        moved = {at: [4, 5, *_REPLICAS] for at in range(_PARTITIONS_A_TOPIC)}
        storm.history.topic(name, moved, adding_replicas=adding, removing_replicas=removing)
    storm.write(3, 1, _REPLICAS)
    storm.write(3, 1, [*_REPLICAS, 4, 5])
    storm.wait()


def _deletion(storm: Storm, away: tuple[int, ...] = ()) -> None:
    for broker in away:
        storm.history.broker_leaves(broker)
    for name in storm.topics:
        storm.history.delete_topic(name)
    storm.wait()
    for broker in away:
        storm.history.broker(broker)
    for name in storm.topics:
        storm.history.topic_vanishes(name, 0)


def _creation(storm: Storm) -> None:
    new = [f"new-{name}" for name in storm.topics]
    for name in new:
        storm.history.topic(name, {0: [1, 2, 3]})
    for name in new:
        storm.history.state(name, 0, 1, 0, [1, 2, 3])


_Run = Callable[[Storm], None]
_STORMS: Final[dict[str, tuple[Callable[[int], Storm], _Run]]] = {
    "a broker crashes": (_on_five, _crash),
    "a whole rack crashes": (_on_racks, _rack_crash),
    "a broker crashes, others lead than expected": (_on_five, _crash_with_other_leaders),
    "all brokers are away, and heartbeats arrive": (_without_brokers, Storm.wait),
    "states are edited": (_on_five, _edited_states),
    "a broker restarts in order": (_on_five, _restart),
    "the controller fails": (_on_five, _failover),
    "preferred leaders are elected": (partial(_on_five, leader=2), _preferred_election),
    "partitions are reassigned": (_on_five, _reassignment),
    "topics are created": (partial(_on_five, a_topic=1), _creation),
    "topics are deleted": (partial(_on_five, a_topic=1), _deletion),
    "topics wait for a broker and are deleted": (partial(_on_five, a_topic=1), partial(_deletion, away=(1,))),
}


def _figures(size: int) -> Iterator[Figure]:
    for name, (made, run) in track(_STORMS.items(), f"{size:,}", transient=True):
        storm, seconds = made(size), list[float]()
        with patch.object(znode_history, "step", partial(_timed, seconds)):
            run(storm)
        yield Figure(name, "ms", sum(seconds) / len(seconds) * 1_000)


def _timed(seconds: list[float], *given: Any) -> Outcome:
    began = process_time()
    outcome = step(*given)
    seconds.append(process_time() - began)
    return outcome


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 800], metavar="N", help="partitions or topics")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    columns = [list(_figures(size)) for size in asked.sizes]
    title = "A record in a storm, with so many partitions or topics"
    print_by_size(title, asked.sizes, columns, as_json=asked.json)


if __name__ == "__main__":
    main()
