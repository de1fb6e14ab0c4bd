"""Common interface of embedded servers: launch, wait until ready, stop or kill, and start by `with`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from cli.embedded.process import ChildProcess

_Started = TypeVar("_Started", bound="StartedByWith")


class StartedByWith(ABC):
    """Something that `with` starts and stops. A failed start kills it."""

    @abstractmethod
    def start(self) -> None:
        """Start everything and wait until it serves. Raise EmbeddedError."""

    @abstractmethod
    def stop(self) -> None:
        """End everything cleanly."""

    @abstractmethod
    def kill(self) -> None:
        """End everything as a crash does."""

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
    """A server that is one child process."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process

    @property
    def log(self) -> Path:
        """Return the file with the server's output."""
        return self._process.log

    @property
    def running(self) -> bool:
        """Return whether the server's process exists, even if it is paused."""
        return self._process.running

    @property
    def pid(self) -> int | None:
        """Return the process id while the server runs."""
        return self._process.pid

    def kill(self) -> None:
        """End the server as a crash does (SIGKILL)."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze the server. Its connections stay open without an answer, and its sessions expire."""
        self._process.pause()

    def resume(self) -> None:
        """Let the server go on after a pause."""
        self._process.resume()

    def describe(self, sentence: str) -> str:
        """Return the sentence about the server, with the end of its log."""
        return self._process.describe(sentence)


class Server(OneProcess, StartedByWith):
    """A server in a process of its own, which can be started again after its end."""

    @abstractmethod
    def launch(self) -> None:
        """Start the server without waiting for it. Raise EmbeddedError."""

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until the server serves. Raise EmbeddedError."""

    def start(self) -> None:
        """Start the server, always on the same port and data, and wait until it serves. Raise EmbeddedError."""
        self.launch()
        self.wait_until_ready()

    def stop(self) -> None:
        """End the server cleanly (SIGTERM). A broker moves its leaderships first."""
        self._process.stop()
