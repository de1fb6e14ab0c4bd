"""Choose outputs, read them to their present end and follow them, for the commands that show rows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from cli.settings.config import ConfigError, Layer, Settings, reached
from cli.settings.keys import keys_of
from cli.settings.options import settings_options
from dashboards.alerting.config import STALE_AFTER_SECONDS
from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from ingest.errors import StoppedError
from outputs import OutputsError, OutputsSource, SourceDownError, open_changes, open_outputs
from outputs.follower import Follower
from outputs.reading import ReadingCounts
from questions.memory import Memory
from transport.address import Address

_LOOK_SECONDS = 0.05
_KEYS = {"from", "connect_timeout_seconds"}

outputs_options: Callable[[Callable[..., Any]], Callable[..., Any]] = settings_options(
    "serve", leave_out=keys_of(ServeConfig).keys() - _KEYS
)


@dataclass(frozen=True, slots=True)
class Where:
    """Address of the outputs, and the times after which they count as unreachable or stale."""

    address: Address
    timeout_seconds: float
    stale_after_ms: int = int(STALE_AFTER_SECONDS * 1000)


def stale_after_ms_of(settings: Settings) -> int:
    """Return the age of the newest heartbeat at which a cluster becomes unknown."""
    setting = settings.sections["serve.alertmanager"].get("stale_after_seconds")
    return int((STALE_AFTER_SECONDS if setting is None else float(str(setting.value))) * 1000)


def where_outputs_are(settings: Settings, flags: Layer) -> Where:
    """Return the outputs that [serve] reads or else [stream] writes. Raise ConfigError."""
    serve = {**settings.sections["serve"], **flags}
    named = serve.get("from") or settings.sections["stream"].get("to")
    if named is None:
        raise ConfigError(
            "which outputs? Give --from ADDRESS, KONTRAST_SERVE__FROM, or from in [serve] of the --config file"
        )
    timeout = serve.get("connect_timeout_seconds")
    default = keys_of(ServeConfig)["connect_timeout_seconds"].default
    if isinstance(named.value, tuple):
        raise ConfigError(f"which outputs? {named.place} has {len(named.value)}. Give one of them by --from ADDRESS")
    address = reached(settings, named.value)  # type: ignore[arg-type]
    return Where(address, float(str(timeout.value if timeout else default)), stale_after_ms_of(settings))


def configured_outputs(settings: Settings) -> Where | None:
    """Return the only outputs of the configuration, None if it has none, or several."""
    with suppress(ConfigError):
        return where_outputs_are(settings, {})
    return None


@dataclass(frozen=True, slots=True)
class Followed:
    """Outputs that a thread reads."""

    memory: Memory
    _where: Where
    _source: OutputsSource
    _wanted: Sequence[str]
    _reading: ReadingCounts
    _follower: Follower

    def check(self) -> None:
        """Raise ServeError if the thread does not read the outputs any more."""
        if self._follower.failure is not None:
            raise ServeError(str(self._follower.failure)) from self._follower.failure

    @property
    def is_up(self) -> bool:
        """Return whether the outputs can be read now."""
        return self._reading.snapshot().source_up

    def names(self) -> frozenset[str]:
        """Return the known clusters."""
        return self.newer().union(self.memory.names())

    def newer(self) -> frozenset[str]:
        """Return the clusters with rows of a newer Kontrast."""
        return self._reading.snapshot().newer

    def lacking(self, cluster: str) -> tuple[str, ...]:
        """Return the outputs that lost rows of the cluster."""
        return self._reading.snapshot().outputs_lacking_rows_of(cluster)

    def wait_until_read(self, stop: threading.Event) -> None:
        """Wait until all existing rows are read, or `stop` is set. Raise ServeError if no output exists."""
        while not stop.wait(_LOOK_SECONDS):
            self.check()
            if self._reading.snapshot().caught_up:
                break
        if not stop.is_set() and len(self._source.missing) == len(self._wanted):
            raise nothing_there(self._where.address)


@contextmanager
def followed(where: Where, wanted: Sequence[str]) -> Iterator[Followed]:
    """Yield the wanted outputs while a thread reads them."""
    memory, reading, source = Memory(), ReadingCounts(), open_outputs(where.address, wanted)
    with without_messages_of_waiting(), Follower(source, memory, reading, where.timeout_seconds) as follower:
        yield Followed(memory, where, source, wanted, reading, follower)


def lines_until_now(where: Where, output: str | None, stop: threading.Event) -> Iterator[bytes]:
    """Yield each line of an output, None for the changes, up to its present end. Raise ServeError, StoppedError."""
    source = open_changes(where.address) if output is None else open_outputs(where.address, (output,))
    try:
        with without_messages_of_waiting():
            while not (source.caught_up or source.missing):
                if stop.is_set():
                    raise StoppedError
                for chunk in source.poll():
                    yield from chunk.lines
        if output is not None and source.missing:
            raise nothing_there(where.address, output)
    except (SourceDownError, OutputsError) as error:
        raise ServeError(str(error)) from error
    finally:
        source.close()


@contextmanager
def without_messages_of_waiting() -> Iterator[None]:
    """Silence the reader's messages that it waits, because a single read of the outputs does not wait."""
    logger = logging.getLogger("kontrast.outputs")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def nothing_there(address: Address, output: str = "outputs") -> ServeError:
    """Return the error for an address that has no `output`."""
    return ServeError(f"{address} holds no {output}. Check the address, and that `kontrast stream` has run")
