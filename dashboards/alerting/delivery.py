"""Everything that tells alerts to Alertmanagers, in threads of its own beside the exporter.

Here belongs how the parts are put together and when a cluster counts as stale.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType

from controller.outputs import GaugesRow
from dashboards.alerting.alertmanager import Alertmanager
from dashboards.alerting.book import Book
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.sender import Sender
from dashboards.alerting.standing import Standing, of_outputs, of_staleness
from dashboards.errors import ServeError
from dashboards.reading import Reading, ReadingSnapshot
from dashboards.view import View

_LOOK_SECONDS = 0.25

_logger = logging.getLogger("kontrast.dashboards")

More = Callable[[], Sequence[Standing]]


class Delivery:
    """The threads; `failure` is set if one had to give up, which only a defect makes it do.

    `more` gives what others than the outputs say.
    """

    def __init__(self, config: AlertmanagerConfig, view: View, reading: Reading, more: More = tuple) -> None:
        self.failure: ServeError | None = None
        self._stale_after_ms = int(config.stale_after_seconds * 1000)
        self._view = view
        self._reading = reading
        self._more = more
        self._book = Book(config)
        self.senders = tuple(
            Sender(Alertmanager(url, config), config, self._book) for url in dict.fromkeys(config.urls)
        )
        self._caught_up_ms: int | None = None
        self._heard: dict[str, tuple[int, int]] = {}  # by cluster, a heartbeat's own time and when it was seen here
        self._stop = threading.Event()
        jobs = {f"alerts to {sender.url}": sender.run for sender in self.senders}
        if jobs:
            jobs["alerts"] = self._keep_the_book
        self._threads = [
            threading.Thread(target=self._run, args=(job,), name=name, daemon=True) for name, job in jobs.items()
        ]
        self._join_seconds = 2 * config.timeout_seconds

    def __enter__(self) -> Delivery:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        give_up_at = time.monotonic() + self._join_seconds
        for thread in self._threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))  # daemons: they do not keep the process

    def _run(self, job: Callable[[threading.Event], None]) -> None:
        try:
            job(self._stop)
        except Exception as error:  # a bug must end the exporter, or it would be silent and look healthy
            _logger.exception("delivering alerts failed")
            self.failure = ServeError(f"delivering alerts failed: {error!r}; the log has the details")

    def _keep_the_book(self, stop: threading.Event) -> None:
        while not stop.is_set():
            now_ms = time.time_ns() // 1_000_000
            reading = self._reading.snapshot()
            if reading.caught_up:  # else it is the past that is being read
                self._caught_up_ms = self._caught_up_ms or now_ms
                self._book.update(self._standings(reading, self._caught_up_ms, now_ms), now_ms)
            stop.wait(_LOOK_SECONDS)

    def _standings(self, reading: ReadingSnapshot, caught_up_ms: int, now_ms: int) -> Iterator[Standing]:
        stale_clusters = set()
        for snapshot in self._view.snapshot():
            # A cluster without any heartbeat is given as long as one whose heartbeats have ended.
            heard_ms = caught_up_ms if snapshot.gauges is None else self._heard_ms(snapshot.gauges, now_ms)
            stale = now_ms - heard_ms > self._stale_after_ms
            if stale:
                stale_clusters.add(snapshot.cluster)
            yield of_outputs(snapshot, certain=snapshot.ready and reading.vouches_for(snapshot.cluster) and not stale)
            yield of_staleness(snapshot, heard_ms, stale=stale)
        for standing in self._more():
            yield replace(standing, certain=standing.certain and standing.cluster not in stale_clusters)

    def _heard_ms(self, gauges: GaugesRow, now_ms: int) -> int:
        """The heartbeat's time, or when it was first seen here: a clock that is ahead must not hide a standstill."""
        if self._heard.get(gauges.cluster, (0, 0))[0] != gauges.time_ms:
            self._heard[gauges.cluster] = gauges.time_ms, now_ms
        return min(self._heard[gauges.cluster])
