"""Stage of the demo, a real cluster, and Kontrast's three commands as processes that watch it."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from cli.demo.narrator import Narrator
from cli.demo.published import Published
from cli.embedded.kafka import KafkaCluster
from cli.embedded.process import ChildProcess, Patience, accepts_connections, free_port, own_command
from controller.rules.settings import SETTING_NAMES
from streaming.java.artifacts import KAFKA_BROKER, jars

CLUSTER = "demo"
BROKER_IDS = (1, 2, 3)
SESSION_SECONDS = 3
_READY_SECONDS = 150
_TAIL_LINES = 12


class StageError(Exception):
    """A process of the demo ended by itself. The message has the end of its log."""


class Stage:
    """The cluster and Kontrast's processes, started by `with`. In the end no process is left."""

    def __init__(self, directory: Path, port: int, narrator: Narrator) -> None:
        self._narrator = narrator
        self._directory = directory
        self._listen = f"127.0.0.1:{port or free_port()}"
        with narrator.progress("get the jars of Kafka, from the cache after the first time"):
            jars(KAFKA_BROKER)
        self.cluster = KafkaCluster(
            directory / "cluster",
            broker_ids=BROKER_IDS,
            properties={"zookeeper.session.timeout.ms": str(SESSION_SECONDS * 1000)},
        )
        self.published = Published(self.metrics_address, directory / "derived", CLUSTER)
        changes, derived = f"journal:{directory / 'changes'}", f"journal:{directory / 'derived'}"
        zookeeper = self.cluster.zookeeper.connect_string
        settings = self.cluster.brokers[BROKER_IDS[0]].settings
        given = ",".join(f"{name}={value}" for name, value in settings.items() if name in SETTING_NAMES)
        self._stream = self._part(
            *("stream", "--from", changes, "--to", derived),
            *("--checkpoint", str(directory / "checkpoint")),
            *("--broker-config", given),
        )
        self._parts = (
            self._part("watch", "--zookeeper", zookeeper, "--cluster", CLUSTER, "--to", changes),
            self._stream,
            self._part("serve", "--from", derived, "--listen", self._listen),
        )

    @property
    def page_address(self) -> str:
        """Return the address of the live page."""
        return f"http://{self._listen}/"

    @property
    def metrics_address(self) -> str:
        """Return the address that Prometheus would scrape."""
        return f"http://{self._listen}/metrics"

    def check(self) -> None:
        """Raise StageError if a process of Kontrast has ended."""
        for part in self._parts:
            if not part.running:
                raise StageError(part.describe(f"ended by itself with status {part.exit_status}"))

    def patience(self, seconds: float) -> Patience:
        """Return the patience with the job, because nothing is published before the job's batches."""
        return Patience(self._stream.pid, seconds)

    def log_tails(self) -> str:
        """Return the end of each part's log."""
        return "\n".join(f"--- {part.name}: the end of its log\n{part.log_tail(_TAIL_LINES)}" for part in self._parts)

    def run_on(self) -> None:
        """Stay up until Ctrl-C. Files have the brokers' process ids, so that users can kill one. Raise StageError."""
        for broker_id, broker in self.cluster.brokers.items():
            (self._directory / f"broker-{broker_id}.pid").write_text(f"{broker.pid}\n")
        while True:
            self.check()
            time.sleep(1)

    def __enter__(self) -> Stage:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _start(self) -> None:
        if accepts_connections(int(self._listen.rpartition(":")[2])):
            raise StageError(f"{self._listen} is in use. Choose another --port")
        with self._narrator.progress(f"start ZooKeeper and Kafka 3.9.2 brokers {', '.join(map(str, BROKER_IDS))}"):
            self.cluster.start()
        with self._narrator.progress("start kontrast watch, stream and serve, and wait for the first picture"):
            for part in self._parts:
                part.launch()
            patience = self.patience(_READY_SECONDS)
            while self.published.picture() is None:
                self.check()
                if patience.is_over():
                    raise StageError(
                        f"nothing was published after {_READY_SECONDS} seconds of work\n{self.log_tails()}"
                    )
                time.sleep(0.2)
        self._narrator.say(f"page: {self.page_address}  metrics: {self.metrics_address}")

    def _end(self) -> None:
        with self._narrator.progress("end all processes"):
            for part in self._parts:
                part.ask_to_stop()
            for part in self._parts:
                part.stop()
            self.cluster.kill()

    def _part(self, command: str, *arguments: str) -> ChildProcess:
        # Without the user's settings, which are for the user's own clusters.
        command_line, environment = own_command(command, *arguments)
        environment = {
            name: value
            for name, value in environment.items()
            if not name.startswith("KONTRAST_") or name == "KONTRAST_CACHE"
        }
        return ChildProcess(
            f"kontrast {command}", command_line, self._directory / f"{command}.log", environment=environment
        )
