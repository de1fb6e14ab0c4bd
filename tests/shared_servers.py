"""Servers that tests share, each started once for a run, in the background, when its first test is collected.

The servers belong to the run's own process, but with pytest-xdist other processes run the tests. So requests and
addresses pass through files in a directory that all processes know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import EmbeddedError
from cli.embedded.zookeeper import ZooKeeper
from streaming.errors import StreamError
from tests.waiting import eventually

_LOOK_SECONDS = 0.05


def _start_zookeeper(directory: Path, running: ExitStack) -> str:
    return running.enter_context(ZooKeeper(directory)).connect_string


def _start_kafka(directory: Path, running: ExitStack) -> str:
    zookeeper = running.enter_context(ZooKeeper(directory / "zookeeper"))
    broker = KafkaBroker(1, zookeeper.connect_string, directory / "broker")
    running.callback(broker.kill)  # killed, because it need not move its leaderships
    broker.start()
    return broker.bootstrap_server


# By fixture, the function that starts its server and returns HOST:PORT.
STARTS: Mapping[str, Callable[[Path, ExitStack], str]] = {
    "shared_zookeeper": _start_zookeeper,
    "shared_broker": _start_kafka,
}


class SharedServers:
    """The servers of a run, for processes that only use them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def want(self, name: str) -> None:
        """Request the start of a server, without waiting for it."""
        self._file(name, "wanted").touch()

    def address_of(self, name: str) -> str:
        """Return HOST:PORT of the server, once it serves. Fail with the sentence of its error."""
        self.want(name)
        outcomes = (self._file(name, "serves-at"), self._file(name, "failed"))
        (outcome,) = eventually(lambda: [file for file in outcomes if file.exists()])
        assert outcome.suffix == ".serves-at", outcome.read_text()
        return outcome.read_text()

    def logs(self, name: str) -> list[Path]:
        """Return the logs of the server and its companions."""
        return sorted((self.directory / name).rglob("*er.log"))  # not the segments of a broker's partitions

    def _file(self, name: str, suffix: str) -> Path:
        return self.directory / f"{name}.{suffix}"


class OwnedServers(SharedServers):
    """The same servers for their owner, which starts the requested ones, and stops them with the run."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._stop = threading.Event()
        # A thread that lives as long as the servers, because the kernel ends a child with the thread that started it.
        self._thread = threading.Thread(target=self._serve, name="shared servers", daemon=True)

    def open(self) -> None:
        """Begin to look for requests."""
        self._thread.start()

    def close(self) -> None:
        """End all servers, and wait for that."""
        self._stop.set()
        self._thread.join()

    def _serve(self) -> None:
        waiting = dict(STARTS)
        with ExitStack() as running:
            while not self._stop.wait(_LOOK_SECONDS):
                for name in [name for name in waiting if self._file(name, "wanted").exists()]:
                    self._start(name, waiting.pop(name), running)

    def _start(self, name: str, start: Callable[[Path, ExitStack], str], running: ExitStack) -> None:
        try:
            outcome, suffix = start(self.directory / name, running), "serves-at"
        except (EmbeddedError, StreamError, OSError) as error:
            outcome, suffix = str(error), "failed"
        draft = self._file(name, "draft")
        draft.write_text(outcome)
        draft.rename(self._file(name, suffix))
