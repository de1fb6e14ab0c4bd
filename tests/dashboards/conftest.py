"""What the tests of `dashboards/` share: rows as the streaming job writes them, and a running exporter."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import pytest

from controller.outputs import (
    AlertRow,
    BrokerRow,
    ClusterProgress,
    ControllerRow,
    GaugesRow,
    JobRow,
    PartitionRow,
    ReactionTimes,
    Row,
    Severity,
    encode_row,
)
from dashboards.config import ServeConfig
from dashboards.preview.prometheus import Prometheus
from dashboards.server import run
from transport.address import JournalAddress
from transport.journal import JournalWriter

sys.path.insert(0, str(Path(__file__).parent))  # what is beside the tests: `incident`, `prometheus_server`

TIME_MS = 1_700_000_000_000


class Rows:
    """Builds rows, each newer than the one before."""

    def __init__(self) -> None:
        self.seq = 0

    def _place(self, place: dict) -> dict:
        self.seq += 1
        first = {"cluster": "north", "generation": 1, "seq": self.seq, "ordinal": 0, "zxid": self.seq}
        return {**first, "time_ms": TIME_MS + self.seq, **place}

    def partition(self, topic: str, partition: int = 0, **fields) -> PartitionRow:
        healthy = {"state": "OnlinePartition", "leader": 1, "leader_epoch": 0, "isr": (1, 2), "replicas": (1, 2)}
        return PartitionRow(**self._place({**healthy, **fields}), topic=topic, partition=partition)

    def offline(self, topic: str, partition: int = 0, **fields) -> PartitionRow:
        trouble = {"state": "OfflinePartition", "leader": -1, "problem": "no_live_in_sync_replica"}
        return self.partition(topic, partition, **{**trouble, "problem_since_ms": TIME_MS, **fields})

    def broker(self, broker: int, *, registered: bool = True, **fields) -> BrokerRow:
        return BrokerRow(
            **self._place({"epoch": 5, "since_ms": TIME_MS, **fields}), broker=broker, registered=registered
        )

    def controller(self, broker: int, **fields) -> ControllerRow:
        return ControllerRow(**self._place({"epoch": 7, "since_ms": TIME_MS, **fields}), broker=broker)

    def alert(self, id_: str, state: str = "open", **fields) -> AlertRow:
        what = {"alert": "PartitionOffline", "subject": "partition orders-0", "group": "broker 1 crashed"}
        rest = {"severity": Severity.PAGE, "since_ms": TIME_MS, "cause": "broker 1 crashed"}
        return AlertRow(**self._place({**what, **rest, **fields}), id=id_, state=state)

    def gauges(self, **fields) -> GaugesRow:
        counts = dict.fromkeys(
            (
                "offline_partitions",
                "leaderless_partitions",
                "under_replicated_partitions",
                "under_min_isr_partitions",
                "at_min_isr_partitions",
                "preferred_replica_imbalance",
                "topics_to_delete",
                "replicas_to_delete",
                "topics_ineligible_to_delete",
                "replicas_ineligible_to_delete",
                "pending_writes",
                "refused",
            ),
            0,
        )
        whole = {
            "ready": True,
            "session": "connected",
            "watch_mode": "persistent",
            "controller": 1,
            "controller_epoch": 7,
            "controller_changes": 2,
            "active_brokers": 2,
            "topics": 1,
            "partitions": 3,
            "partitions_by_state": {"OnlinePartition": 2, "OfflinePartition": 1},
            "replicas_by_state": {"OnlineReplica": 5, "OfflineReplica": 1},
            "leaders_by_broker": {1: 1, 2: 1},
            "replicas_by_broker": {1: 3, 2: 3},
            "records": {"node": 12, "heartbeat": 3},
            "elections": {"OfflinePartitionLeaderElection": 1},
            "isr_changes": {"shrink": 1, "expand": 0},
            "divergences": {"leader": 1},
            "sole_in_sync_by_broker": {1: 2},
            "reassigning_partitions": 1,
            "reactions": {"BrokerChange": ReactionTimes((0, 2, *[0] * 11), 40, (0, 0, 0, 1, 0, 1, *[0] * 7), 500)},
        }
        return GaugesRow(**self._place({**counts, **whole, **fields}))

    def job(self, **fields) -> JobRow:
        totals = {
            "batch": 7,
            "batches": 3,
            "records": 20,
            "refused": 1,
            "rows": 30,
            "total_phase_ms": {"addBatch": 500},
        }
        state = {"state_bytes": 1000, "state_values": 65, "state_commit_ms": 9}
        clusters = {"north": ClusterProgress(records=2, observed_ms=TIME_MS, lag_ms=150)}
        phases = {"phase_ms": {"addBatch": 90}, "total_phase_ms": {"addBatch": 500}}
        whole = {"time_ms": TIME_MS, "began_ms": TIME_MS - 9000, "clusters": clusters, **phases}
        return JobRow(**{**totals, **state, **whole, **fields})

    def of_everything(self) -> list[Row | JobRow]:
        """Rows that give every metric of the catalogue a value."""
        return [
            self.job(),
            self.partition("orders", 0),
            self.offline("orders", 1),
            self.broker(1),
            self.broker(2, registered=False),
            self.controller(1),
            self.alert("a"),
            self.gauges(offline_partitions=1, leaderless_partitions=1, zxid=(3 << 32) + 9),
        ]


@pytest.fixture
def rows() -> Rows:
    return Rows()


class Exporter:
    """A running `kontrast serve` over journals, and the journals that it reads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = ""
        self._batch_ids: dict[str, int] = {}

    def write(self, *written: Row) -> None:
        """Append the rows as the sink does: each output's in one batch."""
        for output in {row.output: None for row in written}:
            self.write_lines(output, *(encode_row(row) for row in written if row.output == output))

    def write_lines(self, output: str, *lines: bytes) -> None:
        with JournalWriter(self.directory / output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, lines)

    def get(self, path: str, *, tls: ssl.SSLContext | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address + path, headers=named)
        try:
            with urllib.request.urlopen(request, timeout=60, context=tls) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def page(self, path: str) -> str:
        status, _, body = self.get(path)
        assert status == 200, body
        return body.decode()

    def page_with(self, path: str, pattern: str) -> str:
        """The page once a line of it matches; fails if none comes to."""
        return _eventually(lambda: self.page(path), lambda text: re.search(pattern, text, re.MULTILINE) is not None)

    def metrics(self) -> str:
        return self.page("/metrics")

    def metrics_with(self, pattern: str) -> str:
        """The metrics once a line of them matches; fails if none comes to."""
        return self.page_with("/metrics", pattern)


def _eventually(ask: Callable[[], object], holds: Callable[[object], bool], deadline_seconds: float = 60):
    """The first answer of which it holds."""
    give_up_at = time.monotonic() + deadline_seconds
    while True:
        answer = ask()
        if holds(answer):
            return answer
        assert time.monotonic() < give_up_at, f"still: {answer}"
        time.sleep(0.05)


@contextmanager
def _exporter(config: ServeConfig, exporter: Exporter) -> Iterator[Exporter]:
    stop, started = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def on_start(address: str) -> None:
        exporter.address = address
        started.set()

    def serve() -> None:
        try:
            run(config, stop, on_start)
        except BaseException as error:
            failures.append(error)
            started.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert started.wait(60)
        assert not failures, failures
        yield exporter
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert not failures, failures


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Exporter]:
    """An exporter that names two partitions of a cluster at most."""
    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", partition_detail_limit=2)
    with _exporter(config, Exporter(tmp_path)) as running:
        yield running


@pytest.fixture
def all_pages(tmp_path: Path) -> Iterator[Exporter]:
    """An exporter with every page that can be switched on."""
    config = ServeConfig(
        source=JournalAddress(tmp_path / "outputs"),
        listen="127.0.0.1:0",
        partitions_page=True,
        jmx_page=True,
        jmx_port=7071,
    )
    (tmp_path / "outputs").mkdir()
    with _exporter(config, Exporter(tmp_path / "outputs")) as running:
        yield running


@pytest.fixture
def start_exporter() -> Callable[[ServeConfig], AbstractContextManager[Exporter]]:
    """Gives a running exporter with these settings; it ends with the `with` that it is started in."""
    return lambda config: _exporter(config, Exporter(getattr(config.source, "directory", Path())))


@pytest.fixture
def eventually() -> Callable[..., object]:
    """Asks until what is asked for holds: `eventually(ask, holds)` gives the answer, or fails after a minute."""
    return _eventually


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[], tuple[Path, Path]]:
    """Makes a certificate for 127.0.0.1 that is its own authority, and its key: `certificate()`, each time others."""
    made = count(1)

    def make() -> tuple[Path, Path]:
        number = next(made)
        shown, key = tmp_path / f"certificate-{number}.pem", tmp_path / f"key-{number}.pem"
        command = (
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=exporter -addext subjectAltName=IP:127.0.0.1"
        )
        subprocess.run([*command.split(), "-keyout", key, "-out", shown], check=True, capture_output=True)
        return shown, key

    return make


@pytest.fixture(scope="session")
def incident_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A real Prometheus that knows the recorded incidents of `incident`."""
    from incident import SCRAPE_SECONDS, incident_lines
    from prometheus_server import NoPrometheusError, prometheus_over

    directory = tmp_path_factory.mktemp("incident")
    try:
        with prometheus_over(directory, incident_lines(directory), SCRAPE_SECONDS) as running:
            yield running
    except NoPrometheusError as error:
        pytest.skip(str(error))


def _tool(name: str, package: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed: apt-get install {package}")
    return lambda *arguments, **options: subprocess.run(
        [path, *arguments], capture_output=True, text=True, timeout=120, check=False, **options
    )


@pytest.fixture(scope="session")
def promtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs promtool with these arguments; it is in Debian's package `prometheus`."""
    return _tool("promtool", "prometheus")


@pytest.fixture(scope="session")
def amtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs amtool with these arguments; it is in Debian's package `prometheus-alertmanager`."""
    return _tool("amtool", "prometheus-alertmanager")
