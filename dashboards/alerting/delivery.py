"""Threads of delivery, which collect active alerts, judge staleness, and start one sender per Alertmanager."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dashboards.alerting.alertmanager import Alertmanager
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import Message
from dashboards.alerting.registry import ActiveAlerts, AlertRegistry, of_forgotten, of_outputs, of_staleness
from dashboards.alerting.sender import Sender
from dashboards.errors import ServeError
from outputs.reading import ReadingCounts, ReadingSnapshot
from questions.check.incidents import Incident, known_incidents
from questions.clients.teams import NO_TEAMS, Teams
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import silent_process
from questions.memory import Memory

_LOOK_SECONDS = 0.25
_NEWS_SECONDS = 0.01  # within this time more rows of the same batch follow

_logger = logging.getLogger("kontrast.dashboards")

More = Callable[[], Sequence[ActiveAlerts]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """A cluster's newest heartbeat. `at_ms` is when the last fresh heartbeat arrived, by the steady clock."""

    place: tuple[int, int, int] | None
    is_fresh: bool
    at_ms: int
    shown_ms: int


class Delivery:
    """Delivery's threads, without an Alertmanager only the registry's. `failure` is set if a defect ended a thread.

    `more` returns the active alerts of other sources than the outputs.
    """

    def __init__(
        self,
        config: AlertmanagerConfig,
        memory: Memory,
        reading: ReadingCounts,
        more: More = tuple,
        teams: Teams = NO_TEAMS,
    ) -> None:
        self.failure: ServeError | None = None
        self._stale_after_ms = config.stale_after_ms
        self._memory = memory
        self._reading = reading
        self._more = more
        self._registry = AlertRegistry(config, teams)
        self.senders = tuple(
            Sender(Alertmanager(url, config), config, self._registry) for url in dict.fromkeys(config.urls)
        )
        self._heard: dict[str, _Heard] = {}  # by cluster
        self._ranks = teams.ranks
        self._known: dict[str, tuple[object, tuple[Incident, ...]]] = {}  # incidents by cluster, with their rows
        self._stale_since_ms: dict[str, int] = {}  # stale clusters, each with the time when its silence was noticed
        self._stop = threading.Event()
        self._looking = threading.Lock()
        jobs = {f"alerts to {sender.url}": sender.run for sender in self.senders}
        jobs["alerts"] = self._keep_registry
        self._threads = [
            threading.Thread(target=self._run, args=(job,), name=name, daemon=True) for name, job in jobs.items()
        ]
        self._join_seconds = 2 * config.timeout_seconds

    def __enter__(self) -> Delivery:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._memory.alert_news.set()  # wakes the thread that waits for it
        give_up_at = time.monotonic() + self._join_seconds
        for thread in self._threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))  # daemons do not keep the process alive

    def active_alerts(self) -> Mapping[str, Sequence[Message]]:
        """Return the active alerts of each cluster at this moment, as Prometheus rules use them."""
        self._look()
        return self._registry.active()

    def _run(self, job: Callable[[threading.Event], None]) -> None:
        try:
            job(self._stop)
        except Exception as error:  # a bug must end the exporter, or it would be silent and look healthy
            _logger.exception("delivering alerts failed")
            self.failure = ServeError(f"delivering alerts failed with {error!r} (details in the log)")

    def _keep_registry(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._look()
            if self._memory.alert_news.wait(_LOOK_SECONDS):
                stop.wait(_NEWS_SECONDS)
                self._memory.alert_news.clear()

    def _look(self) -> None:
        with self._looking:
            reading = self._reading.snapshot()
            # Otherwise the rows are still of the past.
            if any(each.alerts_known for each in reading.by_source().values()):
                now_ms, steady_ms = time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
                active = self._collect(reading, now_ms, steady_ms)
                self._registry.update(active, now_ms, steady_ms, knows_all=reading.alerts_known)

    def _collect(self, reading: ReadingSnapshot, now_ms: int, steady_ms: int) -> Iterator[ActiveAlerts]:
        stale_since_ms: dict[str, int] = {}
        for snapshot in self._memory.clusters():
            if not reading.of(snapshot.cluster).alerts_known:
                continue
            job = self._memory.job_of(snapshot.cluster)
            heard = self._hear(snapshot, now_ms, steady_ms)
            stale = steady_ms - heard.at_ms > self._stale_after_ms
            if stale:
                stale_since_ms[snapshot.cluster] = self._stale_since_ms.get(snapshot.cluster, now_ms)
            certain = snapshot.ready and reading.vouches_for_alerts(snapshot.cluster) and heard.is_fresh and not stale
            yield of_outputs(snapshot, self._incidents(snapshot), certain=certain)
            yield of_staleness(
                snapshot,
                heard.shown_ms,
                stale_since_ms=stale_since_ms.get(snapshot.cluster),
                silent=silent_process(job, heard.shown_ms, now_ms, self._stale_after_ms),
                certain=stale or heard.is_fresh,
            )
        self._stale_since_ms = stale_since_ms
        for cluster, endings in self._memory.endings_of_forgotten().items():
            yield from of_forgotten(cluster, endings)
        for said in self._more():
            yield replace(said, certain=said.certain and said.cluster not in stale_since_ms)

    def _incidents(self, snapshot: ClusterSnapshot) -> tuple[Incident, ...]:
        """Return the incidents of a cluster, computed again only after a change."""
        shown = (snapshot.open_alerts, snapshot.unusable, snapshot.under_min_isr, snapshot.brokers)
        before = self._known.get(snapshot.cluster)
        if before is None or before[0] != shown:
            before = self._known[snapshot.cluster] = (shown, known_incidents(self._memory, snapshot, self._ranks))
        return before[1]

    def _hear(self, snapshot: ClusterSnapshot, now_ms: int, steady_ms: int) -> _Heard:
        """Note a fresh heartbeat. The age of a cluster that never sent one counts from the moment it was first seen."""
        gauges, made_ms = snapshot.gauges, snapshot.heartbeat_ms
        place = None if gauges is None else (gauges.generation, gauges.seq, snapshot.clock_behind_ms)
        known = self._heard.get(snapshot.cluster)
        if known is None or known.place != place:
            is_fresh = made_ms is not None and now_ms - made_ms <= self._stale_after_ms
            known = self._heard[snapshot.cluster] = _Heard(
                place=place,
                is_fresh=is_fresh,
                at_ms=steady_ms if is_fresh or known is None else known.at_ms,
                shown_ms=now_ms if made_ms is None else min(made_ms, now_ms),
            )
        return known
