"""Follower of the streaming job's outputs into the memory, in a separate thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from controller.contract.gauges_row import GaugesRow
from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import BadRowError, NewerRowError, decode_row
from outputs.reading import ALERTING_OUTPUTS, ReadingCounts
from outputs.source import Chunk, OutputsError, OutputsSource, SourceDownError
from questions.memory import Memory
from transport.printable import Reasons

# A look at seven journals without news takes 0.34 ms of a processor that sleeps in between, so this costs 0.7 % of a
# core. It grows with the segments.
_IDLE_SECONDS = 0.05
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 10.0
_JOIN_SECONDS = 15.0
_BAD_ROWS_LOGGED = 10  # of each output, while the rest is only counted

_logger = logging.getLogger("kontrast.dashboards")


class Follower:
    """Thread that reads one source into the memory. `failure` is set when the thread gives up.

    The thread gives up if the source does not answer within `connect_timeout_seconds` after the start. Once the source
    has answered, it retries for ever.
    """

    def __init__(  # noqa: PLR0913 (both ends, and how to read)
        self,
        source: OutputsSource,
        memory: Memory,
        reading: ReadingCounts,
        connect_timeout_seconds: float,
        named: str = "",
    ) -> None:
        self.failure: OutputsError | None = None
        self._source = source
        self._memory = memory
        self._named = named
        self._reading = reading
        self._connect_timeout_seconds = connect_timeout_seconds
        # The outputs' ends by the job's newest row. The job creates every output before its first row.
        self._ends: dict[str, tuple[str, int]] | None = None
        self._logged_bad_rows: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    @property
    def alive(self) -> bool:
        """Return whether the thread runs."""
        return self._thread.is_alive()

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)
        if self._thread.is_alive():  # a daemon thread, so the process can end nevertheless
            _logger.warning("the source did not stop in time, exiting without it")

    def _run(self) -> None:
        try:
            self._follow()
        except OutputsError as error:
            self.failure = error
        except Exception as error:  # a bug must end the exporter, or it would show old values as if they were new
            _logger.exception("reading the outputs failed")
            self.failure = OutputsError(f"reading the outputs failed with {error!r} (details in the log)")
        finally:
            self._reading.source_is(up=False)
            self._source.close()

    def _follow(self) -> None:
        give_up_at: float | None = time.monotonic() + self._connect_timeout_seconds
        retry_seconds = _FIRST_RETRY_SECONDS
        down_since: float | None = None
        reasons = Reasons()
        while not self._stop.is_set():
            try:
                chunks = self._source.poll()
            except SourceDownError as error:
                self._reading.source_is(up=False)
                if give_up_at is not None and time.monotonic() >= give_up_at:
                    raise OutputsError(f"{error}; gave up after {self._connect_timeout_seconds:g} s") from error
                if reasons.is_new(str(error)):
                    _logger.warning("trying again until the outputs are readable: %s", error)
                down_since = down_since or time.monotonic()
                self._stop.wait(retry_seconds)
                retry_seconds = min(2 * retry_seconds, _LONGEST_RETRY_SECONDS)
                continue
            if down_since is not None:
                _logger.warning("reads the outputs again after %.1f s", time.monotonic() - down_since)
                reasons = Reasons()
            give_up_at, retry_seconds, down_since = None, _FIRST_RETRY_SECONDS, None
            self._take(chunks)

    def _take(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            self._take_chunk(chunk)
        self._reading.source_is(up=True)
        missing = self._source.missing
        self._reading.lacks(missing, () if self._ends is None else (*missing, *self._source.lacking(self._ends)))
        if self._source.has_read(ALERTING_OUTPUTS):
            self._reading.knows_alerts()
        if self._source.caught_up:
            self._reading.caught_up()
        if not chunks:
            self._stop.wait(_IDLE_SECONDS)

    def _take_chunk(self, chunk: Chunk) -> None:
        if chunk.begins_anew:
            _logger.warning("output %s was replaced, reading the new one from its beginning", chunk.output)
            self._memory.forget(chunk.output, source=self._named)
            self._reading.nothing_newer(chunk.output)
            self._reading.starts_over(chunk.output)
        if chunk.after_gap:
            _logger.warning("rows of output %s were dropped or damaged before they were read", chunk.output)
            self._reading.gap(chunk.output)
        for line in chunk.lines:
            self._take_line(chunk, line)
        if chunk.thinned or chunk.after_gap:
            self._memory.lacks_rows_before(chunk.output, self._named)

    def _take_line(self, chunk: Chunk, line: bytes) -> None:
        try:
            row = decode_row(line)
        except BadRowError as error:
            self._reading.bad_row(chunk.output)
            self._log_bad_row(chunk.output, error)
            if isinstance(error, NewerRowError) and error.cluster is not None:
                self._note_newer(error.cluster, chunk.output)
            return
        if isinstance(row, JobRow):
            self._memory.apply(row, self._named)
            self._ends = {output: (end.identity, end.offset) for output, end in row.ends.items()}
            return
        self._reading.row(row.cluster, chunk.output)
        if isinstance(row, (BeginningRow, GaugesRow)):
            # Earlier unreadable rows of the cluster do not count any more, because this row voids or replaces them.
            self._reading.nothing_newer(chunk.output, row.cluster)
        if isinstance(row, BeginningRow):
            self._memory.forget(chunk.output, row.cluster, source=self._named, for_good=row.forgotten)
            self._reading.begins(chunk.output, row.cluster)
            if row.forgotten:
                self._reading.forget(row.cluster)
            return
        if self._memory.apply(row, self._named) and chunk.live:
            now = time.time()
            observed_ms = row.time_ms + self._memory.clock_behind_ms(row.cluster)
            self._reading.lag(row.cluster, now - observed_ms / 1000, zxid=row.zxid, at_seconds=now)

    def _note_newer(self, cluster: str, output: str) -> None:
        if self._reading.newer_row(cluster, output):
            self._memory.add_cluster(cluster, self._named)
            what = "a newer Kontrast wrote %s of cluster %s. Upgrade this exporter to export them"
            _logger.error(what, output, cluster)

    def _log_bad_row(self, output: str, error: BadRowError) -> None:
        logged = self._logged_bad_rows.get(output, 0)
        if logged < _BAD_ROWS_LOGGED:
            self._logged_bad_rows[output] = logged + 1
            _logger.warning("left out a line of output %s: %s", output, error)
