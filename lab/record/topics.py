"""Topics as an operator's scripts see and make them, through ZooKeeper.

Reading topic, state and configuration znodes belongs here, and writing those that Kafka's tools write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

Assignment = Mapping[int, list[int]]


class Topics:
    """The topics of a cluster. The small actions use those whose names begin with `prefix`."""

    def __init__(self, client: KazooClient, prefix: str = "") -> None:
        self._client = client
        self._prefix = prefix

    def all_names(self) -> list[str]:
        """Return all topics, including those that wait for their deletion."""
        return sorted(self._client.get_children("/brokers/topics"))

    def names(self) -> list[str]:
        """Return the topics of the small actions."""
        return [name for name in self.all_names() if name.startswith(self._prefix)]

    def assignment(self, name: str) -> dict[int, list[int]]:
        """Return the replicas of the partitions, or an empty dict if the topic has gone meanwhile."""
        try:
            data, _ = self._client.get(f"/brokers/topics/{name}")
        except NoNodeError:
            return {}
        return {int(partition): replicas for partition, replicas in json.loads(data)["partitions"].items()}

    def leader(self, name: str, partition: int) -> int:
        """Return its leader, or -1 without one."""
        try:
            data, _ = self._client.get(f"/brokers/topics/{name}/partitions/{partition}/state")
        except NoNodeError:
            return -1
        leader: int = json.loads(data)["leader"]
        return leader

    def create(self, name: str, assignment: Assignment, config: Mapping[str, str]) -> None:
        """Make a topic as the tools did before there were topic ids."""
        self._set(f"/config/topics/{name}", {"version": 1, "config": dict(config)})
        partitions = {str(partition): replicas for partition, replicas in assignment.items()}
        self._client.create(f"/brokers/topics/{name}", encoded({"version": 1, "partitions": partitions}))

    def expand(self, name: str, more: Assignment) -> None:
        """Add partitions to the topic's znode, without other changes."""
        data, stat = self._client.get(f"/brokers/topics/{name}")
        znode = json.loads(data)
        znode["partitions"].update({str(partition): replicas for partition, replicas in more.items()})
        self._client.set(f"/brokers/topics/{name}", encoded(znode), version=stat.version)

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        """Replace the topic's configuration, and notify the brokers."""
        self._set(f"/config/topics/{name}", {"version": 1, "config": dict(config)})
        notification = encoded({"version": 2, "entity_path": f"topics/{name}"})
        self._client.create("/config/changes/config_change_", notification, sequence=True)

    def request(self, path: str, value: object | None = None) -> None:
        """Leave a request for the controller under this path."""
        self._client.create(path, b"" if value is None else encoded(value))

    def delete(self, path: str) -> None:
        """Delete a znode, if it exists."""
        try:
            self._client.delete(path)
        except NoNodeError:
            return

    def exists(self, path: str) -> bool:
        """Return whether there is such a znode."""
        return self._client.exists(path) is not None

    def _set(self, path: str, value: object) -> None:
        self._client.ensure_path(path)
        self._client.set(path, encoded(value))


def encoded(value: object) -> bytes:
    """Return JSON as Kafka writes it."""
    return json.dumps(value, separators=(",", ":")).encode()
