"""What the core costs: time and memory of `controller.step`, for clusters of several sizes in one run.

The scenarios and their measurement belong here, without a verdict, because the figures depend on the machine. The ratio
compares the largest cluster with the smallest. It is near 1 for an event whose cost depends only on the objects it
touches. It is also near 1 for a complete read, whose cost is given for each partition.
"""

from __future__ import annotations

import gc
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from time import process_time
from typing import Any

import msgspec

from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import PartitionRow
from controller.contract.records import Record, RecordKind, decode_record, encode_record
from controller.contract.row import Row
from controller.model.context import Context
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.step import steps
from lab.bench.figures import Figure, options, print_by_size

BROKERS = 100
PARTITIONS_A_TOPIC = 100
REPLICATION_FACTOR = 3
GOALS_PARTITIONS = 200_000
ISR_CHANGES = 50_000
VICTIMS_PARTITIONS = 6_000
REPEATED = 200
LATER_MS = 200  # from a takeover until the victim dies, while the new controller loads
LOADED_MS = 20_000  # until the first write of the new controller. Kafka 3.9.2 took 28 to 53 s for 200,000 partitions


Replicas = tuple[int, ...]


def replica_lists(partitions: int, brokers: int = BROKERS, seed: int = 0) -> list[Replicas]:
    """Return the replicas of every partition, equal in each run, at random, which defeats every cache."""
    drawn = random.Random(partitions + seed)
    return [tuple(drawn.sample(range(brokers), REPLICATION_FACTOR)) for _ in range(partitions)]


class Lines:
    """The encoded records of one made-up cluster, as its forwarder would write them."""

    def __init__(self, partitions: int, seed: int = 0) -> None:
        self.partitions = partitions
        self.brokers, self.victim = BROKERS, BROKERS - 1
        self.topics = max(1, partitions // PARTITIONS_A_TOPIC)
        self._seq = count()
        self._zxid = count(1_000)
        self._paused_ms = 0
        self._controller_epoch = 1
        # The victim hosts the same number of partitions in every large cluster, spread over all topics.
        self._victims = min(VICTIMS_PARTITIONS, 3 * partitions // 10)
        others = replica_lists(partitions, self.victim, seed)
        self._hosts = {self._tp(index): self._with_victim(index, hosts) for index, hosts in enumerate(others)}

    @property
    def distinct_replica_lists(self) -> int:
        """Return the number of distinct replica lists."""
        return len(set(self._hosts.values()))

    def record(
        self, kind: RecordKind, path: str = "", content: object = None, version: int = 0, session: int = 0
    ) -> bytes:
        """Return one record, a millisecond after the one before."""
        seq, zxid = next(self._seq), next(self._zxid)
        data = None if content is None else json.dumps(content)
        fields: dict[str, Any] = {"path": path, "data": data, "version": version, "ephemeral_owner": session}
        zxids: dict[str, Any] = {"czxid": zxid, "mzxid": zxid, "zxid": zxid}
        now_ms = 1_700_000_000_000 + seq + self._paused_ms
        return encode_record(
            Record(cluster="bench", generation=1, seq=seq, kind=kind, observed_ms=now_ms, **zxids, **fields)
        )

    def heartbeat(self) -> bytes:
        """Return the next heartbeat of a connected forwarder."""
        return self.record(RecordKind.HEARTBEAT, content={"session": "connected", "watch_mode": "persistent"})

    def state(self, topic: str, partition: int, leader: int, epoch: int, isr: Iterable[int], version: int) -> bytes:
        """Return a partition's state znode."""
        content = {
            "controller_epoch": self._controller_epoch,
            "leader": leader,
            "version": 1,
            "leader_epoch": epoch,
            "isr": list(isr),
        }
        return self.record(RecordKind.NODE, f"/brokers/topics/{topic}/partitions/{partition}/state", content, version)

    def topic(self, name: str, assignment: Mapping[int, tuple[int, ...]]) -> bytes:
        """Return a topic's znode."""
        content = {"version": 3, "topic_id": f"{name:A<22}", "partitions": assignment, "adding_replicas": {}}
        return self.record(RecordKind.NODE, f"/brokers/topics/{name}", content)

    def snapshot(self) -> list[bytes]:
        """Return a complete read."""
        node, begin, end = RecordKind.NODE, RecordKind.SNAPSHOT_BEGIN, RecordKind.SNAPSHOT_END
        lines = [self.record(begin), self.record(node, "/controller", {"version": 2, "brokerid": 0}, session=1)]
        lines.append(self.record(node, "/controller_epoch", 1))
        for broker in range(self.brokers):
            content = {"version": 5, "jmx_port": -1, "endpoints": [f"PLAINTEXT://b{broker}:9092"]}
            lines.append(self.record(node, f"/brokers/ids/{broker}", content, session=1 + broker))
        for topic in range(self.topics):
            hosts = (self._hosts[f"topic-{topic:05}", number] for number in range(PARTITIONS_A_TOPIC))
            lines.append(self.topic(f"topic-{topic:05}", dict(enumerate(hosts))))
        lines += [self.state(*tp, hosts[0], 0, hosts, 0) for tp, hosts in self._hosts.items()]
        return [*lines, self.record(end)]

    def isr_changes(self) -> list[bytes]:
        """Let followers leave the ISR of random partitions and return. Each state follows the last."""
        tps = random.Random(1).choices(list(self._hosts), k=ISR_CHANGES // 2)
        lines, versions = [], Counter[tuple[str, int]]()
        for tp in tps:
            hosts = self._hosts[tp]
            for isr in (hosts[:2], hosts):
                versions[tp] += 1
                lines.append(self.state(*tp, hosts[0], 0, isr, versions[tp]))
        return lines

    def endless_changes(self) -> Iterator[bytes]:
        """Yield endless changes in which followers of random partitions leave the ISR and return."""
        version, chosen, partitions = 1, random.Random(1), list(self._hosts.items())
        while True:
            tp, hosts = chosen.choice(partitions)
            yield self.state(*tp, hosts[0], 0, hosts[:2], version)
            yield self.state(*tp, hosts[0], 0, hosts, version + 1)
            version += 2

    def creations(self) -> list[bytes]:
        """Create topics, whose first states the controller writes."""
        assignment = {number: (number, number + 1, number + 2) for number in range(10)}
        lines = []
        for topic in (f"new-{index}" for index in range(REPEATED)):
            lines.append(self.topic(topic, assignment))
            lines += [self.state(topic, number, hosts[0], 0, hosts, 0) for number, hosts in assignment.items()]
        return lines

    def heartbeats(self) -> list[bytes]:
        """Return heartbeats without any change."""
        return [self.heartbeat() for _ in range(REPEATED)]

    def death(self) -> list[bytes]:
        """Remove a broker."""
        return [self.record(RecordKind.DELETED, f"/brokers/ids/{self.victim}")]

    def writes_after(self, rows: Iterable[Row]) -> list[bytes]:
        """Return the controller's next writes, as the rows predict them."""
        return [
            self.state(
                row.topic,
                row.partition,
                row.predicted_leader,
                row.predicted_leader_epoch or 0,
                row.predicted_isr or (),
                row.partition_epoch + 1,
            )
            for row in rows
            if isinstance(row, PartitionRow) and row.predicted_leader is not None
        ]

    def takeover(self) -> list[bytes]:
        """Let another broker become controller, and remove one while it loads."""
        self._controller_epoch += 1
        lines = [
            self.record(RecordKind.DELETED, "/controller"),
            self.record(RecordKind.NODE, "/controller", {"version": 2, "brokerid": 1}, session=2),
            self.record(RecordKind.NODE, "/controller_epoch", self._controller_epoch),
        ]
        self._paused_ms += LATER_MS
        lines += self.death()
        self._paused_ms += LOADED_MS
        return lines

    def writes_of_a_death_heard_of(self) -> list[bytes]:
        """Return the writes of a controller that learned of the death after loading, elections before smaller ISRs."""
        led, followed = self._of_the_victim()
        lines = [self.state(*tp, left[0], 1, left, 1) for tp, left in led.items()]
        return lines + [self.state(*tp, left[0], 1, left, 1) for tp, left in followed.items()]

    def writes_of_a_death_read(self) -> list[bytes]:
        """Return the writes of a controller that read the death while it loaded, smaller ISRs first, then elections."""
        led, followed = self._of_the_victim()
        lines = [self.state(*tp, -1, 1, left, 1) for tp, left in led.items()]
        lines += [self.state(*tp, left[0], 1, left, 1) for tp, left in followed.items()]
        return lines + [self.state(*tp, left[0], 2, left, 2) for tp, left in led.items()]

    def _of_the_victim(self) -> tuple[dict[tuple[str, int], list[int]], ...]:
        """Return the live replicas of the partitions that the victim led, and of those that it followed."""
        led: dict[tuple[str, int], list[int]] = {}
        followed: dict[tuple[str, int], list[int]] = {}
        for tp, hosts in self._hosts.items():
            if self.victim in hosts:
                (led if hosts[0] == self.victim else followed)[tp] = [host for host in hosts if host != self.victim]
        return led, followed

    def _tp(self, index: int) -> tuple[str, int]:
        return f"topic-{index // PARTITIONS_A_TOPIC:05}", index % PARTITIONS_A_TOPIC

    def _with_victim(self, index: int, others: Replicas) -> Replicas:
        nth = (index * self._victims) // self.partitions
        if ((index + 1) * self._victims) // self.partitions == nth:
            return others
        return tuple(self.victim if place == nth % len(others) else host for place, host in enumerate(others))


def apply(context: Context, lines: Iterable[bytes]) -> tuple[Context, list[Row], float]:
    """Return the context and all rows after these lines, and the CPU seconds for decoding and applying them."""
    start = process_time()
    outcome = steps(context, [decode_record(line) for line in lines])
    return outcome.context, list(outcome.effects), process_time() - start


def fresh(measure: Callable[[], tuple[Context, list[Row], float]]) -> tuple[Context, list[Row], float]:
    """Measure without the garbage of earlier measurements."""
    gc.collect()
    return measure()


def figures(partitions: int, *, takeovers: bool = True) -> Iterator[Figure]:
    """Yield all scenarios for one size of cluster."""
    is_goals_size = partitions == GOALS_PARTITIONS
    lines = Lines(partitions)
    yield Figure("distinct replica lists", "", lines.distinct_replica_lists)
    snapshot = lines.snapshot()
    context, rows, seconds = fresh(lambda: apply(new_context("bench"), snapshot))
    assert sum(isinstance(row, PartitionRow) for row in rows) == partitions
    assert any(isinstance(row, GaugesRow) for row in rows)
    del rows
    yield Figure("complete read", "s", seconds, "at most 2.6" if is_goals_size else "")
    yield Figure("complete read, a partition", "µs", seconds / partitions * 1e6)
    yield Figure("complete read, a second", "changes", len(snapshot) / seconds)
    yield Figure("memory, a partition", "bytes", deep_size(context) / partitions, "at most 1,500")
    yield from _stored(context, partitions)
    isr_changes = lines.isr_changes()
    context, rows, seconds = fresh(lambda: apply(context, isr_changes))
    yield Figure("ISR changes, a second", "changes", len(isr_changes) / seconds)
    yield Figure("ISR change", "µs", seconds / len(isr_changes) * 1e6, "at most 22")
    heartbeats = lines.heartbeats()
    context, rows, seconds = fresh(lambda: apply(context, heartbeats))
    yield Figure("heartbeat", "µs", seconds / REPEATED * 1e6)
    creations = lines.creations()
    context, rows, seconds = fresh(lambda: apply(context, creations))
    assert not context.header.events, "a write was not expected"
    yield Figure("a topic with 10 partitions, created", "µs", seconds / REPEATED * 1e6)
    lines = Lines(partitions)
    context, _, _ = apply(new_context("bench"), lines.snapshot())
    death = lines.death()
    context, rows, seconds = fresh(lambda: apply(context, death))
    yield Figure("a broker's death with 6,000 partitions", "s", seconds, "at most 0.4")
    yield Figure("rows of this death", "rows", len(rows))
    writes = lines.writes_after(rows)
    context, rows, seconds = fresh(lambda: apply(context, writes))
    assert not context.header.events, "a write was not expected"
    yield Figure("writes that confirm it, a second", "changes", len(writes) / seconds)
    del rows
    if takeovers:
        yield from _takeovers(partitions)


def _takeovers(partitions: int) -> Iterator[Figure]:
    """Yield a takeover, a death while the new controller loads, and its writes, for both orders."""
    goal = "at most 5" if partitions == GOALS_PARTITIONS else ""
    for how, writes in (("heard of", Lines.writes_of_a_death_heard_of), ("read", Lines.writes_of_a_death_read)):
        lines = Lines(partitions)
        context, _, _ = apply(new_context("bench"), lines.snapshot())
        context, rows, seconds = fresh(partial(apply, context, [*lines.takeover(), *writes(lines)]))
        assert not context.header.events, "a write is still waited for"
        yield Figure(f"takeover, a death in it {how}, and all writes", "s", seconds, goal)
        yield Figure(f"rows of these, {how}", "rows", len(rows))
        del rows  # frees the rows before the next takeover is timed
        unexplained = context.header.tally.writes.unexplained
        yield Figure(f"writes of these that nothing explains, {how}", "writes", unexplained, "0")


def _stored(context: Context, partitions: int) -> Iterator[Figure]:
    """Yield the cost of a restart, as bytes of state, and as a death that first loads all state."""
    chunks = changed_chunks(new_context("bench"), context)
    header = encode_header(context)
    yield Figure("stored, a partition", "bytes", sum(map(len, chunks.values())) / partitions)
    yield Figure("stored header", "bytes", len(header))
    start = process_time()
    restored = restore_context("bench", header, chunks.get)
    assert sum(len(topic.partitions) for _, topic in restored.topics) == partitions
    yield Figure("restored, a partition", "µs", (process_time() - start) / partitions * 1e6)


def deep_size(root: object) -> int:
    """Return the bytes of all reachable objects, each counted once, without those the interpreter shares."""
    seen: set[int] = set()
    waiting, size = [root], 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or value is None or isinstance(value, (bool, type)) or callable(value):
            continue
        seen.add(id(value))
        size += sys.getsizeof(value)
        waiting.extend(_inside(value))
    return size


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return value
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    return [getattr(value, name) for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)]


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = options(__doc__, 20_000, 200_000)
    parser.add_argument("--no-takeovers", dest="takeovers", action="store_false", help="leave the takeovers out")
    asked = parser.parse_args()
    columns = [list(figures(size, takeovers=asked.takeovers)) for size in asked.partitions]
    title = f"The core on one core, {BROKERS} brokers, random placement, replication factor {REPLICATION_FACTOR}"
    print_by_size(title, asked.partitions, columns, as_json=asked.json)


if __name__ == "__main__":
    main()
