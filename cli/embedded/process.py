"""Start, wait for and end a child process that cannot outlive its parent."""

from __future__ import annotations

import atexit
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from streaming.processes import descendants, die_with


class EmbeddedError(Exception):
    """An embedded server that failed to start or stop, with the reason and the next step."""


_POLL_SECONDS = 0.05
_TAIL_LINES = 25
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PROCESSOR_TICKS = slice(11, 15)  # fields of /proc/PID/stat behind the name: own and ended children's ticks


class Patience:
    """Patience with a process that starts, which lasts longer while other programs occupy the processor.

    The patience is over when the process and its children have worked for `seconds` of processor time, or for less than
    a second in `seconds` of wall time. Beside eight other test runs on two cores, work of 59 s was seen to take 261 s.
    """

    def __init__(self, pid: int | None, seconds: float) -> None:
        self._pid, self._seconds = pid, seconds
        self._first = self._last = processor_seconds(pid)
        self._worked_at = time.monotonic()

    def is_over(self) -> bool:
        """Return whether the process has worked or hung for too long."""
        now, used = time.monotonic(), processor_seconds(self._pid)
        if used - self._last >= 1:
            self._last, self._worked_at = used, now
        return used - self._first > self._seconds or now - self._worked_at > self._seconds


def processor_seconds(pid: int | None) -> float:
    """Return the processor time of a process and its children, running or ended, in seconds. It is 0 after its end."""
    used = 0
    for each in (pid, *descendants(pid)) if pid else ():
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[_PROCESSOR_TICKS]))
    return used / _TICKS_A_SECOND


class Child:
    """One child process that can start again after its end. Its output goes to an open file.

    Start the child from a thread that lives as long, because the kernel kills the child when that thread ends.
    """

    def __init__(
        self, name: str, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = [str(part) for part in command]
        self._environment = dict(environment) if environment is not None else None
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_to_stop = False

    @property
    def running(self) -> bool:
        """Return whether the process exists, even if it is paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Return the process id while it runs."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def exit_status(self) -> int | None:
        """Return the child's exit status, negative for a signal, once it has ended."""
        return self._process.poll() if self._process is not None else None

    def launch_into(self, output: int, directory: Path | None = None) -> None:
        """Start the process in the directory, by default the present one, with its output in an open file."""
        if self.running:
            raise EmbeddedError(f"{self.name} runs already")
        self._asked_to_stop = False
        parent = os.getpid()
        # The child gets a session of its own, so that Ctrl-C reaches only the parent, which ends its children in order.
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=self._environment,
            cwd=directory,
            start_new_session=True,
            preexec_fn=lambda: die_with(parent),
        )

    def ask_to_stop(self) -> None:
        """Ask the child to end (SIGTERM), only once, because many programs end at once after a second request."""
        if self.running and not self._asked_to_stop:
            self._asked_to_stop = True
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)

    def stop(self, *, timeout_seconds: float = 20) -> None:
        """Ask the child to end, and kill it after a timeout. No process of its group remains."""
        self.ask_to_stop()
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_seconds)
        self.kill()

    def kill(self) -> None:
        """Kill the child at once (SIGKILL), with the processes of its group."""
        if self._process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Freeze the child (SIGSTOP). Its connections stay open without an answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.running:
            raise EmbeddedError(f"{self.name} does not run")
        self._process.send_signal(number)


class ChildProcess(Child):
    """A child whose output is appended to `log`, in whose folder it runs."""

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, command, environment=environment)
        self.log = log.absolute()

    def launch(self) -> None:
        """Start the process without waiting for anything."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.launch_into(log.fileno(), self.log.parent)

    def wait_until(self, ready: Callable[[], bool], *, timeout_seconds: float) -> None:
        """Wait until `ready` is true. Raise EmbeddedError with the log's tail if the child ends or hangs."""
        patience = Patience(self.pid, timeout_seconds)
        while not ready():
            if not self.running:
                raise EmbeddedError(self.describe(f"ended with status {self.exit_status} before it was ready"))
            if patience.is_over():
                raise EmbeddedError(self.describe(f"was not ready after {timeout_seconds:g} seconds"))
            time.sleep(_POLL_SECONDS)

    def describe(self, sentence: str) -> str:
        """Return the sentence about this child, with the last lines that it wrote."""
        tail = self.log_tail()
        return f"{self.name} {sentence}" + (f"; the end of {self.log}:\n{tail}" if tail else f"; {self.log} is empty")

    def log_tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the last lines of the child's log."""
        try:
            text = self.log.read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def own_command(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line of Kontrast's own command, and an environment in which Python finds this code first."""
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
    return [sys.executable, "-m", "cli", *arguments], environment


def free_port() -> int:
    """Reserve a free loopback port until this process ends, for a server that it starts, stops and starts again.

    A bound socket that never listens holds the port, so that no other process can choose it, and no outgoing connection
    gets it, even if the kernel's range for these is narrow. Otherwise a client that retries a stopped server's port
    could connect to itself and keep the server from returning. A server that sets SO_REUSEADDR can listen there.
    """
    for port in random.sample(range(20_000, 32_000), 200):
        reserved = socket.socket()
        try:
            reserved.bind(("127.0.0.1", port))
        except OSError:
            reserved.close()
            continue
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after bind, or bind would share a port
        atexit.register(reserved.close)
        return port
    raise EmbeddedError("no free loopback port between 20000 and 32000. End the processes that hold them")


def accepts_connections(port: int) -> bool:
    """Return whether a process listens on this loopback port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
