"""Scenes of a large cluster, which happen while a controller loads, or give it thousands of things to do.

The scenes and their order belong here. `actions` has the actions on small topics, which go on beside them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from kafka import TopicPartition

from lab.record.actions import Actions, Course
from lab.record.admin import Admin
from lab.record.broker import RecordedBroker
from lab.record.filling import topics_on
from lab.record.registered import SESSION_MS, RegisteredBroker
from lab.record.releases import KafkaRelease
from lab.record.steps import Steps
from lab.record.topics import Topics

# Kafka 3.9.2 took 1.6 to 4.0 s from its election until it moved replicas, with 10,000 partitions, loggers at TRACE, and
# two shared cores. The time starts at half a second and grows with the partitions.
_LOAD_SECONDS = 0.5
_LOAD_SECONDS_A_PARTITION = 0.000_3
_NEW_PARTITIONS = 300  # of a topic that is created in a scene
_REASSIGNED_PARTITIONS = 150


def load_seconds(partitions: int) -> float:
    """Return the longest load of a controller with this many filled partitions, 0 without filled ones."""
    return _LOAD_SECONDS + _LOAD_SECONDS_A_PARTITION * partitions if partitions else 0.0


class LargeActions(Actions):
    """An operator of a large cluster, with each scene once in a drawn order, and small actions between them."""

    def __init__(
        self,
        seed: int,
        release: KafkaRelease,
        brokers: list[RecordedBroker],
        registered: Sequence[RegisteredBroker],
        partitions: int,
        topics: Topics,
        admin: Admin,
        steps: Steps,
    ) -> None:
        super().__init__(seed, release, brokers, topics, admin, steps)
        self._silent = {broker.broker_id: broker for broker in registered}
        self._load_seconds = load_seconds(partitions)
        self._large = 0
        self._deck: list[Callable[[], None]] = []
        self._scene_is_next = True

    def _draw(self) -> Callable[[], None]:
        """Draw scenes and small actions in turn."""
        self._scene_is_next = not self._scene_is_next
        if self._scene_is_next:
            return super()._draw()
        if not self._deck:
            self._deck = [
                self.crash_registered,
                self.crash_a_rack,
                self.takeover_meets_a_crash,
                self.takeover_meets_a_goodbye,
                self.takeover_meets_a_birth,
                self.takeover_meets_a_new_topic,
                self.takeover_meets_a_deletion,
                self.takeover_is_cut,
                self.stop_broker,
                self.kill_broker,
                self.create_large_topic,
                self.delete_large_topic,
                self.reassign_many_and_cut,
            ]
            self._random.shuffle(self._deck)
        return self._deck.pop()

    def _wait(self) -> float:
        """Return a pause. A large cluster needs longer, but a third of the actions do not wait for that."""
        return self._random.choice(
            (
                self._random.uniform(0, self._load_seconds),
                self._random.uniform(1, 4),
                self._random.uniform(2, 6) + self._load_seconds,
            )
        )

    # Registered brokers

    def crash_registered(self) -> None:
        """Silence one of the registered brokers, with thousands of partitions."""
        for broker in self._some_registered(1):
            self._follow(self._crashed(broker))

    def crash_a_rack(self) -> None:
        for broker in self._some_registered(3):
            self._follow(self._crashed(broker))

    def _crashed(self, broker: RegisteredBroker) -> Course:
        self._steps.note("crash a registered broker", broker=broker.broker_id)
        broker.crash()
        yield SESSION_MS / 1000 + self._random.uniform(2, 15)
        yield from self._born(broker)

    def _gone(self, broker: RegisteredBroker, seconds: float) -> Course:
        yield seconds
        self._steps.note("close a registered broker's session", broker=broker.broker_id)
        broker.close()
        yield self._random.uniform(3, 12)
        yield from self._born(broker)

    def _born(self, broker: RegisteredBroker) -> Course:
        while self._topics.exists(f"/brokers/ids/{broker.broker_id}"):
            yield 0.1
        self._steps.note("register a broker", broker=broker.broker_id)
        broker.register()

    # Encounters with a takeover

    def takeover_meets_a_crash(self) -> None:
        """Crash a broker around a takeover.

        Its session expires within a tick after its time, so the takeover begins shortly before.
        """
        for broker in self._some_registered(1):
            self._follow(self._crashed(broker))
            self._follow(self._taken_over(SESSION_MS / 1000 + self._random.uniform(-self._load_seconds, 0.5)))

    def takeover_meets_a_goodbye(self) -> None:
        for broker in self._some_registered(1):
            self.delete_controller()
            self._follow(self._gone(broker, self._while_it_loads()))

    def takeover_meets_a_birth(self) -> None:
        for broker in self._some_registered(1):
            self._steps.note("close a registered broker's session", broker=broker.broker_id)
            broker.close()
            self._follow(self._born_in_a_takeover(broker))

    def _born_in_a_takeover(self, broker: RegisteredBroker) -> Course:
        yield 2 + self._load_seconds  # so that the controller has handled the departure
        self.delete_controller()
        yield self._while_it_loads()
        yield from self._born(broker)

    def takeover_meets_a_new_topic(self) -> None:
        self.delete_controller()
        self._follow(self._later(self._while_it_loads(), self.create_large_topic))
        self._follow(self._later(self._while_it_loads(), self.create_topic))

    def takeover_meets_a_deletion(self) -> None:
        self.delete_controller()
        self._follow(self._later(self._while_it_loads(), self.delete_large_topic))
        self._follow(self._later(self._while_it_loads(), self.delete_topic))

    def takeover_is_cut(self) -> None:
        """Cut up to three terms while they load."""
        self.delete_controller()
        for _ in range(self._random.randint(1, 3)):
            self._follow(self._taken_over(self._while_it_loads()))

    def _taken_over(self, seconds: float) -> Course:
        yield from self._later(seconds, self.delete_controller)

    def _later(self, seconds: float, act: Callable[[], None]) -> Course:
        yield seconds
        act()

    def _while_it_loads(self) -> float:
        return self._random.uniform(0.02, self._load_seconds)

    # Large topics

    def create_large_topic(self) -> None:
        self._large += 1
        draw = random.Random(self._random.random())
        on = self._random.choice((sorted(self._silent), sorted(self._brokers)))
        size = _NEW_PARTITIONS if on[0] in self._silent else _NEW_PARTITIONS // 6
        for topic in topics_on(draw, f"large-{self._large}-", on, size, (size,)):
            self._steps.note("create by znode", topic=topic.name, partitions=size, config=topic.config)
            self._topics.create(topic.name, topic.assignment, topic.config)

    def delete_large_topic(self) -> None:
        name = self._random.choice(self._topics.all_names())
        self._steps.note("delete by znode", topic=name)
        self._topics.request(f"/admin/delete_topics/{name}")

    def reassign_many_and_cut(self) -> None:
        """Reassign partitions of the real brokers, and take their controller away in the midst."""
        near = [name for name in self._topics.all_names() if name.startswith("near-")]
        everything = [(name, partition) for name in near for partition in self._topics.assignment(name)]
        some = self._random.sample(everything, min(len(everything), _REASSIGNED_PARTITIONS))
        targets = {tp: self._replicas(self._random.choice((2, 3))) for tp in some}
        if self._release.reassigns and self._random.random() < 0.5:
            request = {TopicPartition(*tp): replicas for tp, replicas in targets.items()}
            step = f"reassign {len(request)} partitions by API"
            self._ask(step, lambda client: client.alter_partition_reassignments(request))
        else:
            self._request_reassignment(targets)
        self._follow(self._taken_over(self._random.uniform(0.1, 1.5)))

    def _some_registered(self, count: int) -> list[RegisteredBroker]:
        here = [broker for broker in self._silent.values() if broker.registered]
        return self._random.sample(here, min(count, max(len(here) - 1, 0)))
