"""Changes of the made-up cluster, written as its leaders and its controller would write them.

The writes belong here. `clusters` fills the cluster.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from lab.record.filling import NewTopic, make
from lab.record.steps import Steps
from lab.record.topics import encoded
from lab.soak.clusters import SYNTHETIC_BROKERS

_WRITES_A_TRANSACTION = 200
_MOST_PARTITIONS = 400  # of one change
_MOST_NEW_TOPICS = 5


class Synthetic:
    """Writes of ISRs by leaders, and of topics by tools and by the controller."""

    def __init__(self, client: KazooClient, draw: random.Random, steps: Steps) -> None:
        self._client = client
        self._random = draw
        self._steps = steps
        self._count = 0
        self._new: list[str] = []

    def changes(self) -> tuple[Callable[[], None], ...]:
        """Return the actions."""
        return (self.change_isrs, self.create_topic, self.delete_topic)

    def change_every_topic(self) -> None:
        """Change the ISRs of each topic once, after which the share of under-replicated partitions stays the same."""
        for topic in self._client.get_children("/brokers/topics"):
            self._change_isrs_of(topic)

    def change_isrs(self) -> None:
        """Let the leaders of a topic take replicas out of their ISRs, or in again."""
        self._change_isrs_of(self._random.choice(self._client.get_children("/brokers/topics")))

    def _change_isrs_of(self, topic: str) -> None:
        path = f"/brokers/topics/{topic}"
        replicas = json.loads(self._client.get(path)[0])["partitions"]
        partitions = self._random.sample(sorted(replicas), min(len(replicas), _MOST_PARTITIONS))
        self._steps.note("change ISRs", topic=topic, partitions=len(partitions))
        writes: list[tuple[str, dict[str, Any]]] = []
        for partition in partitions:
            state_path = f"{path}/partitions/{partition}/state"
            state = json.loads(self._client.get(state_path)[0])
            others = [broker for broker in replicas[partition] if broker != state["leader"]]
            isr = [state["leader"], *(broker for broker in others if self._random.random() < 0.7)]
            writes.append((state_path, {**state, "isr": isr}))
        for at in range(0, len(writes), _WRITES_A_TRANSACTION):
            transaction = self._client.transaction()
            for state_path, state in writes[at : at + _WRITES_A_TRANSACTION]:
                transaction.set_data(state_path, encoded(state))
            transaction.commit()

    def create_topic(self) -> None:
        """Create a topic under a new name, with the states that a controller gives it."""
        if len(self._new) >= _MOST_NEW_TOPICS:
            return
        self._count += 1
        name = f"new-{self._count}"
        count = self._random.randint(1, 60)
        assignment = {partition: self._random.sample(SYNTHETIC_BROKERS, 3) for partition in range(count)}
        self._steps.note("create a made-up topic", topic=name, partitions=count)
        self._new.append(name)
        make(self._client, NewTopic(name, assignment, {}))

    def delete_topic(self) -> None:
        """Delete the oldest of the new topics, by a tool's request and a controller's writes."""
        if not self._new:
            return
        name = self._new[0]
        self._steps.note("delete a made-up topic", topic=name)
        self._client.ensure_path(f"/admin/delete_topics/{name}")
        for path in (f"/brokers/topics/{name}", f"/config/topics/{name}", f"/admin/delete_topics/{name}"):
            with suppress(NoNodeError):  # an earlier try, which a lost connection cut, went so far
                self._client.delete(path, recursive=True)
        self._new.pop(0)
