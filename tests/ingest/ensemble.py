"""Three real ZooKeeper servers on loopback that form an ensemble.

Their configuration and their leader belong here. The tests decide their fate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cli.embedded.java import StartedByWith
from cli.embedded.process import free_port
from cli.embedded.zookeeper import ZooKeeper

_SERVERS = (1, 2, 3)


class Ensemble(StartedByWith):
    """Three servers with their data below a directory, started and ended together by `with`.

    `properties` are added to the zoo.cfg of these servers, and `system_properties` to every Java. An observer has no
    vote.
    """

    def __init__(
        self,
        directory: Path,
        *,
        heap_mb: int = 128,
        properties: Mapping[int, Mapping[str, str]] | None = None,
        system_properties: Mapping[str, str] | None = None,
        observer: int | None = None,
    ) -> None:
        roles = {number: "observer" if number == observer else "participant" for number in _SERVERS}
        quorum = {f"server.{n}": f"127.0.0.1:{free_port()}:{free_port()}:{role}" for n, role in roles.items()}
        common = {"initLimit": "20", "syncLimit": "10", "standaloneEnabled": "false", **quorum}
        added = properties or {}
        self.servers = {
            number: ZooKeeper(
                directory / str(number),
                properties={**common, "peerType": role, **added.get(number, {})},
                system_properties=system_properties,
                heap_mb=heap_mb,
            )
            for number, role in roles.items()
        }
        for number, server in self.servers.items():
            server.data_directory.mkdir(parents=True)
            (server.data_directory / "myid").write_text(str(number))

    @property
    def connect_string(self) -> str:
        """Return all servers, for clients."""
        return ",".join(server.connect_string for server in self.servers.values())

    def start(self) -> None:
        """Start all servers, because one alone does not serve."""
        for server in self.servers.values():
            server.launch()
        for server in self.servers.values():
            server.wait_until_ready()

    def stop(self) -> None:
        """End all at once."""
        self.kill()

    def kill(self) -> None:
        """End all as a crash does."""
        for server in self.servers.values():
            server.kill()

    def leader(self) -> ZooKeeper:
        """Return the leading server."""
        (leader,) = (server for server in self.servers.values() if "Mode: leader" in server.ask("srvr"))
        return leader
