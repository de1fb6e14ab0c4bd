"""Incidents of clusters as they happen, on their way through the real core and the exporter to a person's pager.

The driven cluster, the pager, and the ways between them belong here. A way leads directly, by Prometheus's rules, or
both. The tests define the incidents and their notifications.

The core uses the records' time, which `LiveCluster.later` advances at once. From the row on, the way `REAL` uses real
time, and its Alertmanager has the shipped intervals. The other ways divide the intervals of Alertmanager and Prometheus
by `SPEED`, so they deliver the same notifications, but their times mean nothing.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.outputs import STANDING_OUTPUTS, encode_row
from controller.contract.row import Row
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import NEWS, OTHER_BROKER, Labels, messages_of
from dashboards.exporter.config import ServeConfig
from tests.controller.trace_language import obey
from tests.controller.znode_history import ZnodeHistory
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.dashboards.prometheus_server import running_prometheus
from tests.http_server import HttpServer, say
from tests.waiting import eventually, repeating
from transport.address import JournalAddress
from transport.journal import JournalWriter

DEPLOY = Path(__file__).parents[2] / "deploy"
SPEED = 5  # so group_wait of pages is 1 s and not 5 s, still far longer than a row needs from the core to Alertmanager
REAL = "direct in real time"
COMPRESSED = ("direct", "rules", "both")
WAYS = (REAL, *COMPRESSED)

_RESEND_SECONDS = 60  # Prometheus's default for sending an alert again
_HEARTBEATS_A_BATCH = 60
_NEVER_STALE = 10**9  # a busy machine may delay a heartbeat, and these incidents are not about that
_IDENTITY = ("alert", "severity", "group", "subject", OTHER_BROKER, NEWS)
_RANKS = (("ledger*", 1),)
_UNITS = {"s": 1, "m": 60, "h": 3600}
_INTERVAL = re.compile(r"(group_wait|group_interval|repeat_interval): (\d+)([smh])")
_PROMETHEUS = """
global: {{scrape_interval: {seconds}s, evaluation_interval: {seconds}s}}
rule_files: [{rules}/kontrast-self.yml, {rules}/kontrast-cluster.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{alertmanager}"]}}]}}]}}
scrape_configs:
  - job_name: kontrast
    static_configs: [{{targets: ["{exporter}"]}}]
"""


@dataclass(frozen=True, slots=True, order=True)
class Heard:
    """One notification of an alert, with its receiver and its state, firing or resolved."""

    receiver: str
    status: str
    alert: str
    severity: str
    group: str
    subject: str
    other_broker: str
    news: str

    def __str__(self) -> str:
        other = f", with broker {self.other_broker}" if self.other_broker else ""
        news = f", news {self.news}" if self.news else ""
        return f"{self.receiver} {self.status} {self.alert} of {self.subject}{other}{news}"

    @property
    def what(self) -> tuple[str, ...]:
        """Return the labels that identify an alert."""
        return self.alert, self.severity, self.group, self.subject, self.other_broker, self.news


class Pager(HttpServer):
    """A real webhook that keeps the news of each alert, without repetitions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[tuple[str, Heard], str] = {}
        self._heard: dict[str, list[tuple[float, Heard]]] = {}
        super().__init__(self._hear)

    def _hear(self, request: BaseHTTPRequestHandler) -> None:
        message = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self._take(request.path.strip("/"), message)
        say(200)(request)

    def _take(self, receiver: str, message: dict[str, Any]) -> None:
        with self._lock:
            for alert in message["alerts"]:
                labels = alert["labels"]
                heard = Heard(receiver, alert["status"], *(labels.get(name, "") for name in _IDENTITY))
                which = (labels.get("kafka_cluster", ""), replace(heard, status=""))
                if self._last.get(which) != heard.status:
                    self._last[which] = heard.status
                    self._heard.setdefault(which[0], []).append((time.time(), heard))

    def heard_at(self, cluster: str) -> list[tuple[float, Heard]]:
        """Return the news of the cluster's alerts with their times, in order."""
        with self._lock:
            return list(self._heard.get(cluster, ()))


def shipped_config(pager: Pager, speed: float) -> str:
    """Return the shipped Alertmanager configuration, with this pager and divided intervals."""
    text = (DEPLOY / "alertmanager" / "alertmanager.yml").read_text(encoding="utf-8")
    text = text.replace("127.0.0.1:9095", pager.address)
    return _INTERVAL.sub(lambda m: f"{m[1]}: {int(int(m[2]) * _UNITS[m[3]] * 1000 / speed)}ms", text)


class Way:
    """One way from rows to a person, with an exporter, a shipped Alertmanager, perhaps a Prometheus, and a pager."""

    def __init__(self, name: str, directory: Path, start_exporter: Callable[..., Any]) -> None:
        self.name = name
        self.outputs = directory / "outputs"
        self.pager = Pager()
        self._directory, self._start_exporter = directory, start_exporter
        self._speed = 1 if name == REAL else SPEED
        self._running, self._exporter = ExitStack(), ExitStack()
        self._journals: dict[str, JournalWriter] = {}
        self._writing = threading.Lock()  # clusters share the journals
        self._listen = "127.0.0.1:0"
        self.alertmanager: AlertmanagerServer | None = None

    def __enter__(self) -> Way:
        self.outputs.mkdir(parents=True)
        self._running.callback(self.pager.close)
        config = shipped_config(self.pager, self._speed)
        self.alertmanager = AlertmanagerServer(self._directory / "alertmanager", config=config)
        self._running.callback(self.alertmanager.kill)
        self.alertmanager.start()
        self.start_exporter()
        self._running.callback(self.stop_exporter)
        if "direct" not in self.name:
            home = self._directory / "prometheus"
            home.mkdir()
            text = _PROMETHEUS.format(
                seconds=round(5 / self._speed),
                rules=DEPLOY / "prometheus",
                alertmanager=self.alertmanager.url.removeprefix("http://"),
                exporter=self._listen,
            )
            resend = f"--rules.alert.resend-delay={round(_RESEND_SECONDS / self._speed)}s"
            self._running.enter_context(running_prometheus(home, text, resend))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def write(self, output: str, lines: Sequence[bytes]) -> None:
        """Append a batch to the journal of an output."""
        with self._writing:
            if output not in self._journals:
                journal = JournalWriter(self.outputs / output, batches=True)
                self._journals[output] = self._running.enter_context(journal)
            journal = self._journals[output]
            journal.append_batch(journal.last_batch_id + 1, lines)

    def start_exporter(self) -> None:
        """Start `kontrast serve`, at the address that it had before."""
        assert self.alertmanager is not None
        settings = AlertmanagerConfig(
            urls=(self.alertmanager.url,) if self.name != "rules" else (),
            resend_interval_seconds=30 / self._speed,
            resolve_timeout_seconds=300 / self._speed,
            stale_after_seconds=_NEVER_STALE,
        )
        config = ServeConfig(source=JournalAddress(self.outputs), listen=self._listen, alertmanager=settings)
        self._exporter = ExitStack()
        running = self._exporter.enter_context(self._start_exporter(config))
        self._listen = running.address.removeprefix("http://")

    def restart_exporter(self) -> None:
        """End `kontrast serve` and start it again."""
        self.stop_exporter()
        self.start_exporter()

    def restart_alertmanager(self) -> None:
        """End Alertmanager in order and start it again."""
        assert self.alertmanager is not None
        self.alertmanager.restart()

    def stop_exporter(self) -> None:
        """End it."""
        self._exporter.close()


class LiveCluster:
    """A cluster whose znodes a test changes. The core's rows are written for every way at once.

    In quiet times a heartbeat comes each second. Rows get the real time of writing, and earlier times in a row move by
    the same difference.
    """

    def __init__(self, name: str, ways: Sequence[Way]) -> None:
        self.name = name
        self._ways = ways
        self._lock = threading.RLock()
        self._written = 0
        self._opened_at: dict[tuple[str, ...], float] = {}
        self.maintenance: tuple[MaintenanceWindow, ...] = ()
        self.session = "connected"
        self.history = ZnodeHistory(name)
        self.history.context.header.topic_ranks = _RANKS

    def start(self, begin: str) -> LiveCluster:
        """Make the first complete read by a trace command, then let two minutes pass."""
        with self._lock:
            obey(self.history, [begin])
            self.later(120)
        return self

    def do(self, change: Callable[[ZnodeHistory], object]) -> None:
        """Let something happen in ZooKeeper."""
        with self._lock:
            change(self.history)
            self._write()

    def later(self, seconds: int) -> None:
        """Let the time of the records pass, a heartbeat a second."""
        for start in range(0, seconds, _HEARTBEATS_A_BATCH):
            with self._lock:
                for _ in range(min(seconds - start, _HEARTBEATS_A_BATCH)):
                    self.history.heartbeat(990, session=self.session, maintenance=self.maintenance)
                self._write()

    def _write(self) -> None:
        rows, self._written = self.history.effects[self._written :], len(self.history.effects)
        behind_ms = time.time_ns() // 1_000_000 - self.history.now_ms
        moved = [_moved(row, behind_ms) for row in rows if row.output in STANDING_OUTPUTS]
        by_output: dict[str, list[bytes]] = {}
        for row in moved:
            by_output.setdefault(row.output, []).append(encode_row(row))
        for row in moved:
            if isinstance(row, AlertRow) and row.state == "open":
                for message in messages_of(row, AlertmanagerConfig()):
                    self._opened_at.setdefault(_heard_of(message.labels).what, time.time())
        for way in self._ways:
            for output, lines in by_output.items():
                way.write(output, lines)

    def heard(self, way: Way) -> list[Heard]:
        """Return the news of its alerts, in the order of their arrival."""
        return [heard for _, heard in way.pager.heard_at(self.name)]

    def seconds_until_heard(self, way: Way) -> dict[str, float]:
        """Return the seconds from each alert's row to its first notification."""
        return {
            str(heard): at - self._opened_at[heard.what]
            for at, heard in way.pager.heard_at(self.name)
            if heard.status == "firing"
        }

    def until_heard(self, *said: str) -> None:
        """Wait until this was heard by every way: `page firing BrokerCrashed of broker 3`; {} is the cluster's name."""
        wanted = {each.format(self.name) for each in said}
        for way in self._ways:
            eventually(partial(self._said_by, way), lambda heard: wanted <= heard)

    def _said_by(self, way: Way) -> set[str]:
        return {str(each) for each in self.heard(way)}

    def pass_real(self, seconds: int) -> None:
        """Let the time of the records pass, and wait so long that the same time passes for a faster Alertmanager."""
        end = time.monotonic() + seconds / SPEED
        for _ in range(seconds):
            self.later(1)
            time.sleep(max(0.0, min(1 / SPEED, end - time.monotonic())))


def _heard_of(labels: Labels) -> Heard:
    return Heard("", "firing", *(dict(labels).get(name, "") for name in _IDENTITY))


def _moved(row: Row, behind_ms: int) -> Row:
    times = {"time_ms": row.time_ms + behind_ms}
    for name in ("since_ms", "problem_since_ms"):
        before = getattr(row, name, None)
        if before is not None:
            times[name] = before + behind_ms
    return msgspec.structs.replace(row, **times)


def beating(clusters: Collection[LiveCluster]) -> AbstractContextManager[object]:
    """Send heartbeats of these clusters until the `with` ends."""

    def beat() -> None:
        for cluster in clusters:
            cluster.later(1)

    return repeating(beat, 1)
