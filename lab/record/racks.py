"""Incidents of a cluster with racks in a fixed order, for the page's pictures.

The order of the scenes belongs here. `shop` has the topics, `places` the racks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from lab.record.broker import RecordedBroker
from lab.record.filling import NewTopic
from lab.record.places import place_of
from lab.record.registered import RegisteredBroker
from lab.record.shop import LONG_NAME, SHOP, Size, topics_of
from lab.record.steps import Steps
from lab.record.topics import Topics

_LOST_RACK, _LARGE_LOST_RACK = "eu-1", "eu-3"
_CRASH_TOGETHER = (7, 12)
_TICK_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 120


class RackScenes:
    """A cluster that is healthy, loses its brokers and racks, and gets them back where they are real."""

    def __init__(
        self,
        racks: int,
        brokers: Sequence[RecordedBroker],
        registered: Sequence[RegisteredBroker],
        topics: Topics,
        steps: Steps,
    ) -> None:
        self._racks = racks
        self._brokers = {broker.broker_id: broker for broker in brokers}
        self._registered = registered
        self._topics = topics
        self._steps = steps

    def run(self, seconds: float) -> None:
        """Play the scenes. Each lasts this many seconds after its event shows in ZooKeeper."""
        if self._registered:
            self._scenes_of_silent_brokers(seconds)
        else:
            self._scenes_of_real_brokers(seconds)

    def _scenes_of_real_brokers(self, seconds: float) -> None:
        for topic in topics_of(SHOP, len(self._brokers)):
            self._create(topic)
        time.sleep(seconds)
        self._note("healthy")
        time.sleep(seconds)
        self._note("stop", broker=2)
        self._brokers[2].ask_to_stop()
        self._without([2], seconds)
        self._lose([2], seconds)
        self._lose([broker for broker in self._brokers if self._rack(broker) == _LOST_RACK], seconds)
        for topic in topics_of({LONG_NAME: Size(6, 2, 2)}, len(self._brokers)):
            self._create(topic)
        time.sleep(seconds)
        self._lose([1], seconds)

    def _lose(self, broker_ids: Sequence[int], seconds: float) -> None:
        for broker_id in broker_ids:
            self._note("kill", broker=broker_id)
            self._brokers[broker_id].kill()
        self._without(broker_ids, seconds)

    def _without(self, broker_ids: Sequence[int], seconds: float) -> None:
        """Wait until the brokers are gone, and longer, then start them and wait until they are in sync."""
        self._until(lambda: not any(self._is_registered(broker) for broker in broker_ids))
        time.sleep(seconds)
        for broker_id in broker_ids:
            self._note("start", broker=broker_id)
            self._brokers[broker_id].launch()
        self._until(lambda: all(self._is_registered(broker) for broker in broker_ids))
        time.sleep(2 * seconds)

    def _scenes_of_silent_brokers(self, seconds: float) -> None:
        """Lose the only controller first, because a broker that never answers never comes in sync again."""
        time.sleep(seconds)
        self._note("healthy")
        time.sleep(seconds)
        self._lose(list(self._brokers), seconds)
        self._crash([broker for broker in self._registered if broker.broker_id in _CRASH_TOGETHER], seconds)
        lost = [broker for broker in self._registered if self._rack(broker.broker_id) == _LARGE_LOST_RACK]
        self._crash(lost, seconds)

    def _crash(self, brokers: Sequence[RegisteredBroker], seconds: float) -> None:
        registered = [broker for broker in brokers if broker.registered]
        for broker in registered:
            self._note("crash a registered broker", broker=broker.broker_id)
            broker.crash()
        self._until(lambda: not any(self._is_registered(broker.broker_id) for broker in registered))
        time.sleep(seconds)

    def _create(self, topic: NewTopic) -> None:
        self._note("create by znode", topic=topic.name, partitions=len(topic.assignment), config=topic.config)
        self._topics.create(topic.name, topic.assignment, topic.config)

    def _rack(self, broker_id: int) -> str:
        return place_of(broker_id, self._racks).rack

    def _is_registered(self, broker_id: int) -> bool:
        return self._topics.exists(f"/brokers/ids/{broker_id}")

    def _note(self, step: str, **details: object) -> None:
        self._steps.note(step, **details)

    def _until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError("a broker neither left nor returned")
            time.sleep(_TICK_SECONDS)
