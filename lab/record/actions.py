"""Actions on the cluster, drawn at random, at moments drawn at random.

The choice and the course of the actions belong here. A seed gives the same choices only while the cluster gives the
same answers, which is never long. A recording can be replayed, but not made again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial

from kafka import TopicPartition
from kazoo.exceptions import KazooException

from lab.record.admin import Admin
from lab.record.broker import RecordedBroker
from lab.record.releases import KafkaRelease
from lab.record.steps import Steps
from lab.record.topics import Topics

_TICK_SECONDS = 0.005
_LONGEST_STOP_SECONDS = 30
_LONGEST_RETURN_SECONDS = 90
_FEWEST_TOPICS, _MOST_TOPICS, _MOST_PARTITIONS = 3, 10, 10
_UNKNOWN_BROKER = 9

Course = Iterator[float]  # the rest of an action, as the seconds until each of its next steps


class Actions:
    """A seeded operator, with bad luck and bad timing."""

    chance_of_a_former_name = 0.25

    def __init__(
        self,
        seed: int,
        release: KafkaRelease,
        brokers: list[RecordedBroker],
        topics: Topics,
        admin: Admin,
        steps: Steps,
    ) -> None:
        self._random = random.Random(seed)
        self._release = release
        self._brokers = {broker.broker_id: broker for broker in brokers}
        self._topics = topics
        self._admin = admin
        self._steps = steps
        self._away: set[int] = set()  # brokers in the course of an action
        self._courses: list[tuple[float, Course]] = []
        self._count = 0
        self._weights: dict[Callable[[], None], int] = {
            self.create_topic: 12,
            self.expand_topic: 6,
            self.delete_topic: 8,
            self.configure_topic: 4,
            self.kill_broker: 9,
            self.stop_broker: 9,
            self.pause_broker: 5,
            self.unregister_broker: 2,
            self.delete_controller: 6,
            self.reassign_by_znode: 7,
            self.prefer_by_znode: 4,
        }
        if release.reassigns:
            self._weights |= {self.reassign_by_api: 9, self.cancel_by_api: 5}
        else:
            self._weights |= {self.cancel_by_znode: 4}
        if release.elects_preferred:
            self._weights |= {self.prefer_by_api: 4}
        if release.elects_uncleanly:
            self._weights |= {self.elect_uncleanly_by_api: 5}

    def run(self, seconds: float) -> None:
        """Act for this many seconds, and bring all brokers back."""
        end = time.monotonic() + seconds
        for _ in range(_FEWEST_TOPICS + 2):
            self.create_topic()
        self._go_on(3)
        while time.monotonic() < end:
            self._try(self._draw())
            self._go_on(self._wait())
        deadline = time.monotonic() + _LONGEST_RETURN_SECONDS
        while self._courses and time.monotonic() < deadline:
            self._go_on(0.5)

    def _draw(self) -> Callable[[], None]:
        (act,) = self._random.choices(list(self._weights), list(self._weights.values()))
        return act

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except KazooException as error:  # for example because the request's znode exists already
            self._steps.note(f"refused: {type(error).__name__}")

    def _wait(self) -> float:
        """Return a pause. Two fifths of the actions begin in the middle of the previous one."""
        return self._random.choice(
            (
                self._random.uniform(0, 0.03),
                self._random.uniform(0.03, 0.4),
                self._random.uniform(0.4, 2),
                self._random.uniform(1, 4),
                self._random.uniform(2, 6),
            )
        )

    def _go_on(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            due = [course for at, course in self._courses if at <= now]
            self._courses = [(at, course) for at, course in self._courses if at > now]
            for course in due:
                self._try(partial(self._advance, course))
            if now >= end:
                return
            time.sleep(min(_TICK_SECONDS, end - now))

    def _advance(self, course: Course) -> None:
        pause = next(course, None)
        if pause is not None:
            self._courses.append((time.monotonic() + pause, course))

    # Topics

    def create_topic(self) -> None:
        names = self._topics.names()
        if len(names) >= _MOST_TOPICS:
            return
        self._count += 1
        former = [f"t{number}" for number in range(1, self._count) if f"t{number}" not in names]
        again = former and self._random.random() < self.chance_of_a_former_name
        name = self._random.choice(former) if again else f"t{self._count}"
        replication_factor = self._random.choice((1, 2, 2, 3, 3, 3, 4))
        count = self._random.randint(1, 6)
        assignment = {partition: self._replicas(replication_factor) for partition in range(count)}
        config = self._config()
        if self._random.random() < 0.5:
            self._steps.note("create by znode", topic=name, assignment=assignment, config=config)
            self._topics.create(name, assignment, config)
        else:
            request = {name: {"assignments": assignment, "configs": config}}
            self._steps.note("create by API", topic=name, assignment=assignment, config=config)
            self._ask(f"create {name} by API", lambda client: client.create_topics(request))

    def expand_topic(self) -> None:
        name, assignment = self._topic()
        room = _MOST_PARTITIONS - len(assignment)
        if not name or room <= 0 or not assignment:
            return
        replication_factor = len(assignment[0])
        more = [self._replicas(replication_factor) for _ in range(self._random.randint(1, min(3, room)))]
        if self._random.random() < 0.5 or not self._release.creates_partitions:
            self._steps.note("expand by znode", topic=name, by=more)
            self._topics.expand(name, dict(enumerate(more, len(assignment))))
        else:
            request = {name: {"count": len(assignment) + len(more), "assignments": more}}
            self._ask(f"expand {name} by {more} by API", lambda client: client.create_partitions(request))

    def delete_topic(self) -> None:
        name, _ = self._topic()
        if not name or len(self._topics.names()) <= _FEWEST_TOPICS:
            return
        if self._random.random() < 0.6:
            self._steps.note("delete by znode", topic=name)
            self._topics.request(f"/admin/delete_topics/{name}")
        else:
            self._ask(f"delete {name} by API", lambda client: client.delete_topics([name]))

    def configure_topic(self) -> None:
        name, _ = self._topic()
        if name:
            config = self._config()
            self._steps.note("configure by znode", topic=name, config=config)
            self._topics.configure(name, config)

    # Brokers

    def kill_broker(self) -> None:
        broker = self._one_that_may_go()
        if broker is not None:
            self._steps.note("kill", broker=broker.broker_id)
            broker.kill()
            self._follow(self._return(broker, self._random.uniform(0, 15)), broker)

    def stop_broker(self) -> None:
        broker = self._one_that_may_go()
        if broker is not None:
            self._steps.note("stop", broker=broker.broker_id)
            broker.ask_to_stop()
            self._follow(self._stopped(broker, self._random.uniform(0, 8)), broker)

    def pause_broker(self) -> None:
        broker = self._one_that_may_go()
        if broker is not None:
            seconds = self._random.choice((self._random.uniform(1, 4), self._random.uniform(7, 12)))
            self._steps.note("pause", broker=broker.broker_id, seconds=round(seconds, 1))
            broker.pause()
            self._follow(self._resumed(broker, seconds), broker)

    def unregister_broker(self) -> None:
        broker = self._one_that_may_go()
        if broker is not None:
            self._steps.note("delete the broker's znode", broker=broker.broker_id)
            self._topics.delete(f"/brokers/ids/{broker.broker_id}")
            self._follow(self._forgotten(broker, self._random.uniform(2, 8)), broker)

    def delete_controller(self) -> None:
        self._steps.note("delete /controller")
        self._topics.delete("/controller")

    # Reassignments and elections

    def reassign_by_znode(self) -> None:
        targets = self._targets()
        if targets:
            self._request_reassignment(targets)

    def _request_reassignment(self, targets: dict[tuple[str, int], list[int]]) -> None:
        partitions = [
            {"topic": name, "partition": partition, "replicas": replicas}
            for (name, partition), replicas in targets.items()
        ]
        self._steps.note("reassign by znode", partitions=partitions)
        self._topics.request("/admin/reassign_partitions", {"version": 1, "partitions": partitions})

    def reassign_by_api(self) -> None:
        request = {TopicPartition(*tp): replicas for tp, replicas in self._targets().items()}
        if request:
            said = [f"{tp.topic}-{tp.partition} to {replicas}" for tp, replicas in request.items()]
            self._ask(f"reassign {said} by API", lambda client: client.alter_partition_reassignments(request))
            if self._random.random() < 0.4:
                cancelled = dict.fromkeys(request)
                self._follow(self._cancelled(cancelled, self._random.uniform(0, 0.6)))

    def cancel_by_api(self) -> None:
        name, assignment = self._topic()
        if name:
            request = {TopicPartition(name, partition): None for partition in assignment}
            self._ask(f"cancel {name} by API", lambda client: client.alter_partition_reassignments(request))

    def cancel_by_znode(self) -> None:
        """Delete the request and `/controller`. Up to 2.3 only the next controller notices the missing request."""
        self._steps.note("cancel by znode")
        self._topics.delete("/admin/reassign_partitions")
        self._topics.delete("/controller")

    def prefer_by_znode(self) -> None:
        partitions = [{"topic": name, "partition": partition} for name, partition in self._some_partitions(8)]
        if partitions:
            self._steps.note("prefer by znode", partitions=partitions)
            request = {"version": 1, "partitions": partitions}
            self._topics.request("/admin/preferred_replica_election", request)

    def prefer_by_api(self) -> None:
        self._elect("prefer", 0, self._some_partitions(12))

    def elect_uncleanly_by_api(self) -> None:
        everything = [(name, partition) for name in self._topics.names() for partition in self._topics.assignment(name)]
        leaderless = [tp for tp in everything if self._topics.leader(*tp) < 0]
        self._elect("elect uncleanly", 1, leaderless or self._some_partitions(4))

    def _elect(self, step: str, election_type: int, partitions: list[tuple[str, int]]) -> None:
        request: dict[str, list[int]] = {}
        for name, partition in partitions:
            request.setdefault(name, []).append(partition)
        if request:
            self._ask(
                f"{step} {request} by API",
                lambda client: client.elect_leaders(election_type, request, raise_errors=False),
            )

    # How actions go on

    def upgrade(self, release: str, protocol: str) -> None:
        """Roll all brokers to a release under the former protocol version, then again to raise the protocol version."""
        self._follow(self._upgraded(release, protocol))

    def _upgraded(self, release: str, protocol: str) -> Course:
        for settings in ({"inter.broker.protocol.version": protocol}, {}):
            for broker in self._brokers.values():
                while broker.broker_id in self._away or not broker.running:
                    yield 0.2
                self._away.add(broker.broker_id)
                self._steps.note("stop", broker=broker.broker_id)
                broker.ask_to_stop()
                yield from self._ended(broker)
                self._steps.note("upgrade", broker=broker.broker_id, kafka=release, settings=settings)
                broker.become(release, settings)
                yield from self._return(broker, self._random.uniform(0, 2))
        self._steps.note("upgraded")

    def _stopped(self, broker: RecordedBroker, away_seconds: float) -> Course:
        yield from self._ended(broker)
        yield from self._return(broker, away_seconds)

    def _ended(self, broker: RecordedBroker) -> Course:
        deadline = time.monotonic() + _LONGEST_STOP_SECONDS
        while broker.running and time.monotonic() < deadline:
            yield 0.05
        if broker.running:
            self._steps.note("kill: it does not stop", broker=broker.broker_id)
            broker.kill()

    def _resumed(self, broker: RecordedBroker, seconds: float) -> Course:
        yield seconds
        self._steps.note("resume", broker=broker.broker_id)
        broker.resume()
        yield from self._registered(broker)

    def _forgotten(self, broker: RecordedBroker, seconds: float) -> Course:
        """Restart a broker whose znode is gone. It notices no trouble, so only a restart brings it back."""
        yield seconds
        self._steps.note("kill", broker=broker.broker_id)
        broker.kill()
        yield from self._return(broker, 0)

    def _return(self, broker: RecordedBroker, away_seconds: float) -> Course:
        """Start a broker after the end of its former session, because it would give up if it found its old znode."""
        yield away_seconds
        while self._topics.exists(f"/brokers/ids/{broker.broker_id}"):
            yield 0.1
        self._steps.note("start", broker=broker.broker_id)
        broker.launch()
        yield from self._registered(broker)

    def _registered(self, broker: RecordedBroker) -> Course:
        while not self._topics.exists(f"/brokers/ids/{broker.broker_id}"):
            if not broker.running:
                self._steps.note("start again: it ended by itself", broker=broker.broker_id)
                broker.launch()
            yield 0.1
        self._away.discard(broker.broker_id)

    def _cancelled(self, request: dict[TopicPartition, None], seconds: float) -> Course:
        yield seconds
        said = [f"{tp.topic}-{tp.partition}" for tp in request]
        self._ask(f"cancel {said} by API", lambda client: client.alter_partition_reassignments(request))

    def _follow(self, course: Course, broker: RecordedBroker | None = None) -> None:
        if broker is not None:
            self._away.add(broker.broker_id)
        self._courses.append((time.monotonic(), course))

    # Random choices

    def _ask(self, step: str, request: Callable[..., object]) -> None:
        self._admin.ask(step, request, avoid=self._away)

    def _replicas(self, replication_factor: int) -> list[int]:
        return self._random.sample(sorted(self._brokers), min(replication_factor, len(self._brokers)))

    def _config(self) -> dict[str, str]:
        config = {}
        if self._random.random() < 0.3:
            config["unclean.leader.election.enable"] = "true"
        if self._random.random() < 0.2:
            config["min.insync.replicas"] = "2"
        return config

    def _topic(self) -> tuple[str, dict[int, list[int]]]:
        names = self._topics.names()
        name = self._random.choice(names) if names else ""
        return name, self._topics.assignment(name) if name else {}

    def _some_partitions(self, most: int) -> list[tuple[str, int]]:
        everything = [(name, partition) for name in self._topics.names() for partition in self._topics.assignment(name)]
        return self._random.sample(everything, min(len(everything), self._random.randint(1, most)))

    def _targets(self) -> dict[tuple[str, int], list[int]]:
        targets = {}
        for name, partition in self._some_partitions(4):
            replicas = self._replicas(self._random.choice((1, 2, 2, 3, 3)))
            if self._random.random() < 0.06:
                replicas[-1] = _UNKNOWN_BROKER
            targets[name, partition] = replicas
        return targets

    def _one_that_may_go(self) -> RecordedBroker | None:
        """Return one of the brokers in service, never the last. The second and third leave more rarely."""
        here = sorted(self._brokers.keys() - self._away)
        if len(here) < 2 or self._random.random() < 0.3 * len(self._away):
            return None
        return self._brokers[self._random.choice(here)]
