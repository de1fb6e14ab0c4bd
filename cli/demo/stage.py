"""Stage of the demo: a real cluster, Kontrast's three commands as processes that watch it, and what they publish.

What is published is read from an operator's two sources, /metrics and output journals, never from the cluster itself.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from rich.console import Console
from rich.markup import escape as escaped_markup

from cli.embedded.java import StartedByWith
from cli.embedded.kafka import KafkaCluster
from cli.embedded.process import ChildProcess, Patience, accepts_connections, free_port, own_command
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.metadata_rows import BeginningRow, PartitionRow
from controller.contract.outputs import decode_row
from controller.rules.settings import SETTING_NAMES
from dashboards.catalogue import cluster_metrics, pipeline_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL, Metric
from outputs import open_outputs
from questions.memory import Memory
from streaming.java.artifacts import KAFKA_BROKER, jars
from transport.address import JournalAddress
from transport.printable import printable


class Narrator:
    """Narrator of the events on standard output."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._chapter = 0

    def chapter(self, title: str) -> None:
        """Open a chapter."""
        self._chapter += 1
        self._console.print(f"\n[bold]{self._chapter}. {_escaped(title)}[/bold]")

    def say(self, sentence: str) -> None:
        """Print a line of a chapter."""
        self._console.print(f"   {_escaped(sentence)}")

    def fail(self, sentence: str) -> None:
        """Print the reason of an early end."""
        self._console.print(f"\n[bold red]The demo failed:[/bold red] {_escaped(sentence)}")

    def stays_up(self, page_address: str, directory: Path) -> None:
        """Print that everything continues until Ctrl-C, and how to break it."""
        self._console.print(
            f"\n[bold]The cluster and Kontrast stay up.[/bold] Page: {page_address}   Ctrl-C ends everything.\n"
            f"Kill a broker in another terminal: {_escaped(f'kill -9 $(cat {directory}/broker-2.pid)')}"
        )

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Show that the demo waits for something, and in the end how long that took."""
        started = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(_escaped(what)):
                yield
            done = f"{_escaped(what)} "
        else:
            self.say(f"{what} ...")
            yield
            done = ""
        self._console.print(f"   [green]ok[/green] {done}[dim]({time.monotonic() - started:.1f} s)[/dim]")


def _escaped(sentence: str) -> str:
    """Return the sentence without markup, control and direction characters."""
    return escaped_markup(printable(sentence))


_TIMEOUT_SECONDS = 5
_LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # past any proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCluster:
    """A cluster as Kontrast publishes it at one moment. Partitions are named `topic-partition`."""

    controller: int  # -1 without a controller
    brokers: int
    topics: int
    online: int
    unusable: dict[str, str]  # by partition, its problem in a word
    under_replicated: int
    leaders: dict[str, int]  # by partition, -1 without a leader
    pages: dict[str, str]  # by id, the cause of each open alert of severity page


class PublishedData:
    """The outputs of the demo's Kontrast."""

    def __init__(self, metrics_address: str, outputs: Path, cluster: str) -> None:
        self._metrics_address = metrics_address
        self._cluster = cluster
        self._outputs = open_outputs(JournalAddress(outputs), (AlertRow.output, PartitionRow.output))
        self._memory = Memory()

    def picture(self) -> PublishedCluster | None:
        """Return the newest picture, if the exporter answers and its picture is complete."""
        samples = self._scrape()
        if _count(samples, pipeline_metrics.READY) != 1:
            return None
        self._read()
        known = self._memory.cluster(self._cluster)
        controllers = [int(sample.labels["broker"]) for sample in _of(samples, cluster_metrics.CONTROLLER_INFO)]
        return PublishedCluster(
            controller=controllers[0] if controllers else -1,
            brokers=_count(samples, cluster_metrics.BROKERS),
            topics=_count(samples, cluster_metrics.TOPICS),
            online=_count(samples, cluster_metrics.PARTITIONS, state="online"),
            unusable={
                f"{sample.labels['topic']}-{sample.labels['partition']}": sample.labels["reason"]
                for sample in _of(samples, cluster_metrics.OFFLINE_SINCE)
            },
            under_replicated=_count(samples, cluster_metrics.UNDER_REPLICATED),
            leaders={
                f"{topic}-{number}": row.leader
                for (topic, number), row in self._memory.partitions(self._cluster).items()
            },
            pages={
                row.id: row.cause
                for row in (known.open_alerts if known else ())
                if row.state == "open" and row.severity is Severity.PAGE
            },
        )

    def _read(self) -> None:
        while chunks := self._outputs.poll():
            for output, row in ((chunk.output, decode_row(line)) for chunk in chunks for line in chunk.lines):
                if isinstance(row, BeginningRow):
                    self._memory.forget(output, row.cluster)
                else:
                    self._memory.apply(row)

    def _scrape(self) -> list[Sample]:
        try:
            with _LOOPBACK.open(self._metrics_address, timeout=_TIMEOUT_SECONDS) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, http.client.HTTPException, OSError):
            return []
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return [sample for sample in samples if sample.labels.get(CLUSTER_LABEL) == self._cluster]


def _of(samples: Sequence[Sample], metric: Metric) -> list[Sample]:
    return [sample for sample in samples if sample.name == metric.name]


def _count(samples: Sequence[Sample], metric: Metric, **labels: str) -> int:
    """Return the sum of the metric's samples that have these labels."""
    return int(sum(sample.value for sample in _of(samples, metric) if labels.items() <= sample.labels.items()))


CLUSTER = "demo"
BROKER_IDS = (1, 2, 3)
SESSION_SECONDS = 3
_READY_SECONDS = 150
_TAIL_LINES = 12


class StageError(Exception):
    """A process of the demo ended by itself. The message has the end of its log."""


class Stage(StartedByWith):
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
        self.published = PublishedData(self.metrics_address, directory / "outputs", CLUSTER)
        changes, outputs = f"journal:{directory / 'changes'}", f"journal:{directory / 'outputs'}"
        zookeeper = self.cluster.zookeeper.connect_string
        settings = self.cluster.brokers[BROKER_IDS[0]].settings
        given = ",".join(f"{name}={value}" for name, value in settings.items() if name in SETTING_NAMES)
        self._stream = self._part(
            *("stream", "--from", changes, "--to", outputs),
            *("--checkpoint", str(directory / "checkpoint")),
            *("--broker-config", given),
        )
        self._parts = (
            self._part("watch", "--zookeeper", zookeeper, "--cluster", CLUSTER, "--to", changes),
            self._stream,
            self._part("serve", "--from", outputs, "--listen", self._listen),
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

    def start(self) -> None:
        """Start everything, and wait for the first picture. Raise StageError or EmbeddedError."""
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

    def kill(self) -> None:
        """End every process."""
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
