"""Run watch, stream and serve of one configuration file, and restart them."""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import click
import msgspec

from cli import checks
from cli.embedded.process import Child
from cli.printing import standard_error
from cli.running import ALIVE, READY, SOCKET_VARIABLE, WATCHDOG_VARIABLE, ExitCode, run_until_stopped
from cli.settings.config import SECTIONS, Settings, serve_config, stream_config, watch_configs, watched_into
from cli.settings.disagreements import refuse_parted_pipeline
from cli.settings.errors import need_extra
from cli.settings.options import service_command
from controller.contract.decoding import JsonDecoder, UndecodableError
from streaming.scratch import NoScratchError, scratch_directory
from transport.journal_lock import holders
from transport.printable import printable, printable_json

_LOOK_SECONDS: Final = 0.2
_READ_BYTES: Final = 64 * 1024
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0  # after so long in a ready state, a child's next pause is as short as its first
# A child that has been ready reports four times in this time.
_SILENT_SECONDS = 120.0
_LONGEST_LOOK_SECONDS = 5.0  # a longer time since the last look was a pause of all processes, as of their container
# The job ends after its batch, or after 30 s without waiting for it. watch and serve take a second. Their sum must stay
# below TimeoutStopSec of the systemd unit.
_END_SECONDS = 45.0

# SIGTERM also ends a child as asked that is still starting, because it has no handler of the signal yet.
_ENDED_AS_ASKED: Final = (ExitCode.OK, -signal.SIGTERM, 128 + signal.SIGTERM)

Show = Callable[[str, bytes], None]


class SupervisedChild:
    """One child: its process, the end of its output, and its reports."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], directory: Path) -> None:
        self.name = name
        self.is_ready = self.was_ready = False
        self.start_at = 0.0  # earliest next start of the process, by the monotonic clock
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self.silent_seconds = 0.0  # without a report, while the supervisor itself was running
        self._ready_at = 0.0
        address = directory / name
        self.reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self.reports.bind(str(address))
        except OSError as error:
            self.reports.close()
            # A socket's address has at most 107 bytes, so a long directory name is the likely reason.
            what = f"no socket can be made in {directory}: {error}. Set TMPDIR to a directory with a shorter name"
            raise NoScratchError(error.errno, what) from error
        told = {SOCKET_VARIABLE: str(address), WATCHDOG_VARIABLE: str(int(_SILENT_SECONDS * 1e6))}
        self.process = Child(name, command, environment={**environment, **told})
        self.output = -1
        self._unfinished = b""

    def launch(self) -> None:
        """Start the process, its output in a pipe."""
        self.output, write_end = os.pipe()
        os.set_blocking(self.output, False)
        try:
            self.process.launch_into(write_end)
        finally:
            os.close(write_end)
        self.silent_seconds = 0.0

    def ended(self) -> None:
        """Note the end of the process and the time of its next start. Kill the other processes of its group."""
        self.process.kill()
        if self.is_ready and time.monotonic() - self._ready_at >= _STEADY_SECONDS:
            self._pause_seconds = _FIRST_PAUSE_SECONDS
        self.is_ready = False
        self.start_at = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)

    def hear(self) -> None:
        """Read the child's reports."""
        with suppress(BlockingIOError):
            while report := self.reports.recv(_READ_BYTES):
                states = report.decode(errors="replace").split("\n")
                if ALIVE in states or READY in states:
                    self.silent_seconds = 0.0
                if READY in states and not self.is_ready:
                    self.is_ready = self.was_ready = True
                    self._ready_at = time.monotonic()

    @property
    def is_silent(self) -> bool:
        """Return whether a child that was ready has not reported for too long."""
        return self.is_ready and self.silent_seconds > _SILENT_SECONDS

    def lines(self) -> Iterator[bytes]:
        """Yield the whole lines so far. `rest` returns the text after the last newline."""
        with suppress(BlockingIOError):
            while read := os.read(self.output, _READ_BYTES):
                *lines, self._unfinished = (self._unfinished + read).split(b"\n")
                yield from lines
                if len(self._unfinished) >= _READ_BYTES:
                    yield self.rest()

    def rest(self) -> bytes:
        """Return the text after the last newline."""
        rest, self._unfinished = self._unfinished, b""
        return rest


class Supervisor:
    """Supervisor of children, in the order in which they end. `show` gets each line that a child writes.

    After `run`, `exit_code` is the exit code of the whole process.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], show: Show) -> None:
        self.exit_code: int = ExitCode.OK
        self._commands = commands
        self._environment = environment
        self._show = show
        self._children: list[SupervisedChild] = []
        self._is_told = False

    @property
    def is_ready(self) -> bool:
        """Return whether every child is ready."""
        return bool(self._children) and all(child.is_ready for child in self._children)

    def run(self, stop: threading.Event) -> int:
        """Keep the children running until `stop` is set, or one fails for good. Return the exit code."""
        with ExitStack() as open_files, scratch_directory() as scratch:
            selector = open_files.enter_context(selectors.DefaultSelector())
            for name, command in self._commands.items():
                child = SupervisedChild(name, command, self._environment, scratch.directory)
                open_files.callback(child.reports.close)
                selector.register(child.reports, selectors.EVENT_READ, child.hear)
                self._children.append(child)
            looked_at = time.monotonic()
            try:
                while not stop.is_set() and self.exit_code == ExitCode.OK:
                    looked_before, looked_at = looked_at, time.monotonic()
                    for child in self._children:
                        child.silent_seconds += min(looked_at - looked_before, _LONGEST_LOOK_SECONDS)
                        self._look_at(child, selector)
                    self._take(selector)
                for child in self._children:
                    self._end(child, selector)
            finally:
                for child in self._children:
                    child.process.kill()
        return self.exit_code

    def _look_at(self, child: SupervisedChild, selector: selectors.BaseSelector) -> None:
        """Start children that are due, kill silent ones, and note ended ones."""
        if child.is_silent:
            standard_error.complain(
                f"{child.name} has not reported for {_SILENT_SECONDS:g} s, so it is killed and starts again"
            )
            child.process.kill()
        if child.process.running:
            return
        if child.output >= 0:
            self._note_end(child, selector)
        elif time.monotonic() >= child.start_at:
            child.launch()
            selector.register(child.output, selectors.EVENT_READ, lambda: self._pass_on(child))

    def _note_end(self, child: SupervisedChild, selector: selectors.BaseSelector) -> None:
        child.ended()
        self._close_output(child, selector)
        status = child.process.exit_status or ExitCode.OK
        if status == ExitCode.USAGE or (status == ExitCode.UNAVAILABLE and not child.was_ready):
            standard_error.complain(f"{child.name} {_how(status)}, which a restart cannot mend, so everything stops")
            self.exit_code = status
            return
        self._is_told = False
        standard_error.warn(
            f"{child.name} {_how(status)}, and starts again in {child.start_at - time.monotonic():.0f} s"
        )

    def _take(self, selector: selectors.BaseSelector) -> None:
        """Take the children's reports and lines of output, as they come within a moment."""
        for key, _ in selector.select(_LOOK_SECONDS):
            key.data()
        if self.is_ready and not self._is_told:
            self._is_told = True
            standard_error.say(f"{', '.join(self._commands)} are up")

    def _pass_on(self, child: SupervisedChild) -> None:
        for line in child.lines():
            self._show(child.name, line)

    def _close_output(self, child: SupervisedChild, selector: selectors.BaseSelector) -> None:
        """Pass on the rest of the output. Do not wait for its end, because other processes may hold it open."""
        self._pass_on(child)
        if rest := child.rest():
            self._show(child.name, rest)
        selector.unregister(child.output)
        os.close(child.output)
        child.output = -1

    def _end(self, child: SupervisedChild, selector: selectors.BaseSelector) -> None:
        """Ask the child to end, and kill it if it takes too long, while the others continue."""
        if child.output < 0:
            return
        ends_by_order = child.process.running
        child.process.ask_to_stop()
        end_at = time.monotonic() + _END_SECONDS
        while child.process.running and time.monotonic() < end_at:
            self._take(selector)
        if child.process.running:
            standard_error.complain(f"{child.name} did not end within {_END_SECONDS:g} s, so it is killed")
        child.process.kill()
        self._close_output(child, selector)
        status = child.process.exit_status or ExitCode.OK
        if ends_by_order and status not in _ENDED_AS_ASKED:
            standard_error.complain(f"{child.name} {_how(status)} when it was stopped")
            self.exit_code = self.exit_code or max(status, ExitCode.FAILED)


def _how(status: int) -> str:
    """Return the way in which a process ended, as a predicate."""
    if status >= 0:
        return f"ended with exit code {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


_EXAMPLES: Final = """
  kontrast up --config kontrast.toml --check
  kontrast up --config kontrast.toml
"""
_COMMANDS: Final = ("watch", "stream", "serve")  # in the order of the rows through them
_WIDTH: Final = max(map(len, _COMMANDS))
_LONGEST_LINE: Final = 64 * 1024
_OBJECT: Final = JsonDecoder(dict[str, object])


@service_command(_EXAMPLES, ended="stopped by Ctrl-C or SIGTERM, in order")
@click.pass_context
def up(ctx: click.Context, settings: Settings, *, check: bool) -> int:
    """Run watch, stream and serve of one configuration file, and start again what ends.

    Each is a process of its own. The log has all of them, each line with its command's name. Ctrl-C or SIGTERM ends
    watch, then the job behind its batch, then serve.
    """
    need_extra("job", "up")
    watch, stream = watch_configs(settings, (), {}), stream_config(settings, {})
    serve = serve_config(settings, {section: {} for section in SECTIONS})
    refuse_parted_pipeline(watch, stream, serve)
    if check:
        questions = (
            checks.of_watch(watch),
            checks.of_stream(stream, partial(watched_into, settings)),
            checks.of_serve(serve, outputs_exist=False, watched=watch),
        )
        return checks.check(chain(*questions))
    with ExitStack() as held:
        if settings.file is not None and (other := _hold(settings.file, held)) is not None:
            standard_error.complain(f"kontrast up already runs with {settings.file}, as {other}. Stop that one first")
            return ExitCode.UNAVAILABLE
        return _supervise(settings.file, ctx.find_root().params)


def _hold(config_file: Path, held: ExitStack) -> str | None:
    """Lock the configuration file until `held` closes. Return the process that already holds the lock, if any."""
    descriptor = os.open(config_file, os.O_RDONLY | os.O_CLOEXEC)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return holders(descriptor) or "another process"
    except OSError:  # a network file system without locks
        return None
    return None


def _supervise(config_file: Path | None, root: dict[str, object]) -> int:
    from cli.embedded.process import own_command  # not for --help

    as_json = bool(root["as_json"])
    libraries: Sequence[str] = root["libraries"]  # type: ignore[assignment]
    arguments = ["--log-level", str(root["log_level"]), *(f"--log-library={name}" for name in libraries)]
    arguments += ["--json"] if as_json else []
    file = [] if config_file is None else ["--config", str(config_file)]
    commands: dict[str, Sequence[str]] = {}
    environment: dict[str, str] = {}
    for name in _COMMANDS:
        commands[name], environment = own_command(*arguments, name, *file)
    supervisor = Supervisor(commands, environment, _show_json if as_json else _show)
    return run_until_stopped({"up": supervisor.run}, ready={"up": lambda: supervisor.is_ready})


def _show(name: str, line: bytes) -> None:
    text = printable(line.decode(errors="backslashreplace"), _LONGEST_LINE)
    standard_error.pass_on(f"{name:{_WIDTH}} | {text}")


def _show_json(name: str, line: bytes) -> None:
    """Print the child's JSON object with the command's name. Java and Python may also write lines that are no JSON."""
    try:
        fields = _OBJECT.decode(line)
    except UndecodableError:
        fields = {"message": line.decode(errors="backslashreplace")}
    standard_error.pass_on(printable_json(msgspec.json.encode({"command": name, **fields})).decode())
