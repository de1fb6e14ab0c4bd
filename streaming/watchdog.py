"""Watchdog for a job that hangs, with waiting records and no finished batch.

The watchdog judges by files and by Java's answers, because Spark reports nothing while it hangs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from streaming.checkpoint.files import FruitlessStarts, end_of_source, numbered
from streaming.checkpoint.place import HadoopPath, Place
from streaming.config import StreamConfig
from streaming.errors import StalledError
from streaming.processes import JAVA, WORKER, job_processes, kill, uses_of
from streaming.spark.submitted import submitted
from transport.address import JournalAddress
from transport.journal_reading import end_offset
from transport.segments import JournalError

logger = logging.getLogger("kontrast.streaming")

_LOOK_SECONDS = 1.0
_LARGEST_FACTOR = 8  # of the limit, for 40 minutes by default


@dataclass(frozen=True, slots=True)
class _Batches:
    """The newest batches in the checkpoint, and the place in a journal where the planned batch ends."""

    finished: int = -1
    planned: int = -1
    end_of_source: int = 0


def _batches(spark_directory: Place) -> _Batches:
    finished, planned = (max(numbered(spark_directory / log), default=-1) for log in ("commits", "offsets"))
    return _Batches(finished, planned, end_of_source(spark_directory, planned))


class Watchdog:
    """Watchdog that kills Spark's processes after `stalled_after_seconds` without a batch while records wait.

    The limit doubles with each earlier start that finished no batch, up to eight times, until a batch is finished.
    Otherwise a first batch that is too large for a slow machine would begin again for ever. Only the watchdog's own
    running time counts, so a suspended machine stalls no job. Time in which `is_out_of_reach` is true does not count,
    because a restart would not bring Kafka back.
    """

    def __init__(
        self,
        config: StreamConfig,
        spark_directory: Place,
        java: int,
        is_out_of_reach: Callable[[], bool],
        starts: FruitlessStarts = FruitlessStarts(),  # noqa: B008 (frozen)
    ) -> None:
        self._config = config
        self._starts = starts
        self._spark_directory = spark_directory
        self._java = java
        self._is_out_of_reach = is_out_of_reach
        self._answered = True
        self._newest = _Batches()
        self._finished = -1
        self._stalled_seconds = 0.0
        self._sentence = ""

    def java_answered(self) -> None:
        """Note that Java answered just now. Only Java can read a file system of Hadoop, so read the checkpoint now."""
        self._answered = True
        if isinstance(self._spark_directory, HadoopPath):
            with suppress(OSError):  # the query itself fails at the same error
                self._newest = _batches(self._spark_directory)

    @contextmanager
    def watching(self) -> Iterator[Watchdog]:
        """Look each second while the body runs. Raise StalledError in place of the failure after the kill."""
        ended = threading.Event()
        thread = threading.Thread(target=self._look_until, args=(ended,), name="watchdog", daemon=True)
        thread.start()
        try:
            yield self
        except Exception as error:
            if self._sentence:
                raise StalledError(self._sentence) from error
            raise
        finally:
            ended.set()
            thread.join()
        if self._sentence:
            raise StalledError(self._sentence)

    def look(self, passed_seconds: float) -> None:
        """Judge the time since the last look. Kill Spark's processes at the limit."""
        newest = self._newest if isinstance(self._spark_directory, HadoopPath) else _batches(self._spark_directory)
        stands = newest.finished == self._finished and self._waits(newest) and not self._is_out_of_reach()
        self._stalled_seconds = self._stalled_seconds + passed_seconds if stands else 0.0
        self._finished, self._answered = newest.finished, False
        if self._stalled_seconds >= (limit_seconds := self._limit_seconds()):
            self._sentence = self._describe(limit_seconds)
            if submitted():  # the end of spark-submit's Java ends this process, too
                logger.error("%s", self._sentence)
            of_job = job_processes(self._java)
            kill([*of_job[JAVA], *of_job[WORKER]])

    def _limit_seconds(self) -> float:
        factor = min(2**self._starts.count, _LARGEST_FACTOR) if self._finished <= self._starts.finished else 1
        return factor * self._config.stalled_after_seconds

    def _look_until(self, ended: threading.Event) -> None:
        looked_at = time.monotonic()
        while not self._sentence and not ended.wait(_LOOK_SECONDS):
            now = time.monotonic()
            with suppress(OSError, JournalError):  # the query itself fails at the same errors
                self.look(min(now - looked_at, 2 * _LOOK_SECONDS))
            looked_at = now

    def _waits(self, newest: _Batches) -> bool:
        """Return whether a batch is planned, the source has more, or Java does not answer."""
        if newest.planned > newest.finished or not self._answered:
            return True
        source = self._config.source
        if not isinstance(source, JournalAddress):
            return False  # Spark plans a batch as soon as Kafka has records
        return end_offset(source.directory) > newest.end_of_source

    def _describe(self, limit_seconds: float) -> str:
        files = ", ".join(
            f"{role} {use.open_files} of {use.open_files_limit}" for role, use in uses_of(self._java).items()
        )
        return (
            f"no batch finished for {limit_seconds:g} s although records wait in "
            f"{self._config.source}. The job ends so that it can be started again (open files: {files})"
        )
