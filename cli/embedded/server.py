"""Common life of embedded servers, which are launched, ready, stopped or killed, and started by `with`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from cli.embedded.process import ChildProcess

_Started = TypeVar("_Started", bound="StartedByWith")


class StartedByWith(ABC):
    """An object that `with` starts and ends in order. A failed start kills it."""

    @abstractmethod
    def start(self) -> None:
        """Start it and wait until it serves. Raise EmbeddedError."""

    @abstractmethod
    def stop(self) -> None:
        """End it in order."""

    @abstractmethod
    def kill(self) -> None:
        """End it as a crash does."""

    def __enter__(self: _Started) -> _Started:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class OneProcess:
    """Something that is one child process."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process

    @property
    def log(self) -> Path:
        """Return the file of its output."""
        return self._process.log

    @property
    def running(self) -> bool:
        """Return whether its process is there, paused or not."""
        return self._process.running

    @property
    def pid(self) -> int | None:
        """Return its process id while it runs."""
        return self._process.pid

    def kill(self) -> None:
        """End it as a crash does (SIGKILL)."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze it. Connections stay open without an answer, and its sessions expire."""
        self._process.pause()

    def resume(self) -> None:
        """Let it go on after a pause."""
        self._process.resume()

    def describe(self, sentence: str) -> str:
        """Return the sentence about it, with the end of its log."""
        return self._process.describe(sentence)


class Server(OneProcess, StartedByWith):
    """A server in a process of its own, that can be started again after its end."""

    @abstractmethod
    def launch(self) -> None:
        """Start it without a wait. Raise EmbeddedError."""

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until it serves. Raise EmbeddedError."""

    def start(self) -> None:
        """Start it, again on the same port and data, and wait until it serves. Raise EmbeddedError."""
        self.launch()
        self.wait_until_ready()

    def stop(self) -> None:
        """End it in order (SIGTERM). A broker moves its leaderships first."""
        self._process.stop()
