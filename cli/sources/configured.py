"""The cluster of a configuration: the outputs of the Kontrast that runs with it, else one read of ZooKeeper."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from cli.sources.source import Source
from cli.sources.stream import StreamSource
from cli.sources.zookeeper import ZooKeeperSource
from dashboards.errors import ServeError
from questions.known_clusters import now_ms
from questions.picture import Picture
from questions.question import NotFoundError, Scope


@dataclass(frozen=True, slots=True)
class ConfiguredSource(Source):
    """The outputs as long as their heartbeat is fresh, so that an answer is the page's, and otherwise ZooKeeper."""

    is_live: ClassVar[bool] = True
    has_past: ClassVar[bool] = False
    outputs: StreamSource
    zookeeper: ZooKeeperSource

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return the present cluster with the source that it is from."""
        where, why = self.outputs.where, f"{self.outputs.where.address} has no fresh heartbeat"
        try:
            found = self.outputs.picture(scope, stop)
            if now_ms() - found.as_of_ms <= where.stale_after_ms:
                return replace(found, source="the running Kontrast")
        except (NotFoundError, ServeError) as error:
            why = str(error)
        return replace(self.zookeeper.picture(scope, stop), source=f"one read of ZooKeeper, because {why}")
