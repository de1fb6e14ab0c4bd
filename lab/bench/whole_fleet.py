"""A fleet through every process: clusters in one ZooKeeper, `watch`, Kafka, the job and `serve`, each killed once.

The ensemble of one more cluster is down at the start. At the end every partition's row equals what the replica outside
Spark derives from a read of its ZooKeeper. The table has memory, threads and CPU of each process while all clusters are
idle. A row that differs, or a process that does not return, ends the run with an error.

With `--image`, Kontrast runs in containers of that root with no network but loopback, and the job on a standing Spark
cluster of the image's own.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import yaml
from kazoo.client import KazooClient
from rich.console import Console
from rich.table import Table

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import ChildProcess, free_port, own_command, processor_seconds
from cli.embedded.zookeeper import ZooKeeper
from cli.followed_outputs import Where, followed
from controller.contract.metadata_rows import PartitionRow
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from lab.bench.figures import machine
from lab.bench.ingest import build
from tests.deploy.image_container import STATE, Image
from tests.processes import descendants, proportional_bytes
from tests.waiting import eventually
from transport.address import KafkaAddress

COMMANDS = ("watch", "stream", "serve")
LATE = "late"
WORKERS = 3  # of the standing Spark cluster, with a core each
CHART_VALUES = Path(__file__).parents[2] / "deploy" / "helm" / "kontrast" / "values.yaml"
OWN_NETWORK = "KONTRAST_BENCH_HAS_LOOPBACK_ONLY"
SECONDS_TO_BE_READY = 900.0
ALIVE = re.compile(r'^kontrast_(ready|heartbeat_timestamp_seconds)\{kafka_cluster="([^"]+)"\} (\S+)$', re.MULTILINE)

shown = Console(stderr=True)


class Fleet:
    """The clusters, and Kontrast's processes that watch them by one configuration."""

    def __init__(self, directory: Path, clusters: int, partitions: int, running: ExitStack) -> None:
        self.directory, self.partitions = directory, partitions
        self.settings, self.state = directory / "settings", str(directory)
        self._running = running
        self._zookeeper = running.enter_context(ZooKeeper(directory / "zookeeper", heap_mb=512))
        self._late = ZooKeeper(directory / "late")
        names = [f"cluster-{number:03}" for number in range(clusters)]
        self.zookeepers = {name: f"{self._zookeeper.connect_string}/{name}" for name in names}
        self._pages = f"127.0.0.1:{free_port()}"
        self.processes: dict[str, ChildProcess] = {}

    def build(self) -> None:
        """Make the znodes of each cluster, and a Kafka for the stream and the outputs."""
        for name in self.zookeepers:
            self._make(self._zookeeper, name)
        own = self._zookeeper.connect_string + "/kafka-of-kontrast"
        # The log cleaner runs, because it does so in a user's broker.
        cleaning = {"log.cleaner.enable": "true"}
        broker = KafkaBroker(1, own, self.directory / "broker", properties=cleaning)
        self._running.callback(broker.kill)
        broker.start()
        stream, outputs = (f"kafka://{broker.bootstrap_server}/{topic}" for topic in ("changes", "outputs"))
        self.outputs = KafkaAddress(broker.bootstrap_server, "outputs")
        tables = [f'[clusters.{name}]\nzookeeper = "{address}"' for name, address in self.zookeepers.items()]
        tables.append(f'[clusters.{LATE}]\nzookeeper = "{self._late.connect_string}/{LATE}"')
        tables.append(f'[watch]\nto = "{stream}"\n[stream]\nfrom = "{stream}"\nto = "{outputs}"')
        tables.append(f'checkpoint = "{self.state}/checkpoint"\n[serve]\nfrom = "{outputs}"')
        tables.append(f'listen = "{self._pages}"')
        self.settings.mkdir(exist_ok=True)
        (self.settings / "kontrast.toml").write_text("\n".join(tables))

    def _make(self, zookeeper: ZooKeeper, name: str) -> None:
        root = KazooClient(zookeeper.connect_string, timeout=60)
        root.start(timeout=60)
        root.ensure_path(f"/{name}")
        root.stop()
        client = KazooClient(f"{zookeeper.connect_string}/{name}", timeout=60)  # its ephemeral znodes live as long
        client.start(timeout=60)
        self._running.callback(client.stop)
        build(client, self.partitions, Console(quiet=True))

    def start_late_ensemble(self) -> None:
        """Start the ensemble that was down."""
        self._running.enter_context(self._late)
        self._make(self._late, LATE)
        self.zookeepers[LATE] = f"{self._late.connect_string}/{LATE}"

    def start(self, name: str) -> None:
        """Start a command of Kontrast's."""
        command, environment = own_command(name, "--config", str(self.settings / "kontrast.toml"))
        self.processes[name] = self._launch(name, command, environment)

    def _launch(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> ChildProcess:
        process = ChildProcess(f"kontrast {name}", command, self.directory / f"{name}.log", environment=environment)
        process.launch()
        self._running.callback(process.kill)
        return process

    def roots_of(self, name: str) -> list[ChildProcess]:
        """Return the processes that belong to a command with all their descendants."""
        return [self.processes[name]]

    def until_seen(self) -> float:
        """Wait for a present heartbeat of every ready cluster. Return the seconds."""
        began, began_at = time.monotonic(), time.time()

        def unseen() -> int:
            return len(self.zookeepers) - len(self._seen_since(began_at))

        def all_run() -> None:
            for process in self.processes.values():
                assert process.exit_status is None, process.log_tail()

        eventually(unseen, lambda n: not n, meanwhile=all_run, within_seconds=SECONDS_TO_BE_READY, pause_seconds=0.5)
        return time.monotonic() - began

    def _seen_since(self, at_seconds: float) -> set[str]:
        try:
            with urllib.request.urlopen(f"http://{self._pages}/metrics", timeout=30) as answer:
                found = {
                    (name, cluster): float(value) for name, cluster, value in ALIVE.findall(answer.read().decode())
                }
        except OSError:
            return set()
        heard = {cluster for (name, cluster), value in found.items() if name != "ready" and value > at_seconds}
        return {cluster for cluster in heard if found.get(("ready", cluster)) == 1}

    def differences(self) -> list[str]:
        """Return the partitions whose row is not what one read of ZooKeeper gives."""
        found = []
        with followed(Where(self.outputs, 60.0), ("job", "metadata", "alerts", "gauges")) as outputs:
            outputs.wait_until_read(threading.Event())
            for name, zookeeper in self.zookeepers.items():
                config = ZooKeeperConfig(zookeeper=zookeeper)
                records = read_once(config, threading.Event()).records(name)
                effects = steps(new_context(name), records).effects
                expected = {(row.topic, row.partition): row for row in effects if isinstance(row, PartitionRow)}
                rows = outputs.memory.partitions(name)
                keys = expected.keys() | rows.keys()
                found += [f"{name} {key}" for key in keys if _told(rows.get(key)) != _told(expected.get(key))]
        return found


class FleetOfImage(Fleet):
    """A fleet whose Kontrast runs in containers, and whose job runs on a Spark cluster of containers."""

    def __init__(self, directory: Path, clusters: int, partitions: int, running: ExitStack, root: Path) -> None:
        super().__init__(directory, clusters, partitions, running)
        self.state = STATE
        self._image = Image(root, directory / "state", self.settings)
        packages = next(root.glob("opt/kontrast/.venv/lib/python*/site-packages/pyspark"))
        self._spark_class = f"/{packages.relative_to(root)}/bin/spark-class"
        self._master = f"spark://127.0.0.1:{free_port()}"
        self._workers: list[ChildProcess] = []

    def build(self) -> None:
        """Make the fleet, and start the Spark cluster with its three workers."""
        super().build()
        port = self._master.rpartition(":")[2]
        master = self._daemon("master.Master", "master", "--port", port)
        options = ("--cores", "1", "--memory", "2g", self._master)
        self._workers = [self._daemon("worker.Worker", f"worker-{number}", *options) for number in range(WORKERS)]
        master.wait_until(
            lambda: master.log.read_text(errors="replace").count("Registering worker") == WORKERS, timeout_seconds=120
        )

    def _daemon(self, kind: str, name: str, *options: str) -> ChildProcess:
        own = {"SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": "/tmp/work"}
        words = (f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *options)
        return self._launch(name, self._image.execute(self._spark_class, *words, **own))

    def roots_of(self, name: str) -> list[ChildProcess]:
        """Return the containers of a command. Executors of the job are below the workers."""
        return [*super().roots_of(name), *(self._workers if name == "stream" else ())]

    def start(self, name: str) -> None:
        """Start the container of a command."""
        if name != "stream":
            self.processes[name] = self._launch(name, self._image.run(name))
            return
        own_conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "1g",
            "spark.ui.enabled": "false",
            # These containers have one address, from which Spark concludes that they have one disk.
            "spark.shuffle.readHostLocalDisk": "false",
        }
        conf = {**yaml.safe_load(CHART_VALUES.read_text())["sparkApplication"]["sparkConf"], **own_conf}
        submitted = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        program = "/opt/kontrast/deploy/spark/kontrast-stream.py"
        own = {"SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1", "SPARK_LOCAL_IP": "127.0.0.1"}
        command = self._image.run("driver", "--master", self._master, *submitted, program, **own)
        self.processes[name] = self._launch(name, command)


def _told(row: PartitionRow | None) -> tuple[object, ...]:
    return () if row is None else (row.state, row.leader, row.leader_epoch, row.isr, row.replicas, row.problem)


def idle(fleet: Fleet, seconds: float) -> Table:
    """Return a table of what each process uses while nothing changes."""
    clusters = len(fleet.zookeepers)
    table = Table(title=f"{clusters} idle clusters of {fleet.partitions} partitions. {machine()}", title_justify="left")
    for heading in ("process", "memory, MB", "threads", "CPU, % of a core", "ms a cluster and second"):
        table.add_column(heading, justify="left" if heading == "process" else "right")
    roots = {name: [each.pid for each in fleet.roots_of(name) if each.pid is not None] for name in fleet.processes}
    before = {name: sum(map(processor_seconds, pids)) for name, pids in roots.items()}
    time.sleep(seconds)
    for name, pids in roots.items():
        used = (sum(map(processor_seconds, pids)) - before[name]) / seconds
        family = [each for pid in pids for each in (pid, *descendants(pid))]
        memory = sum(map(proportional_bytes, family)) / 1e6
        cells = (f"{memory:.0f}", str(sum(map(_threads, family))), f"{used * 100:.1f}")
        table.add_row(name, *cells, f"{used * 1000 / clusters:.2f}")
    return table


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the fleet and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=200, metavar="N")
    parser.add_argument("--partitions", type=int, default=500, metavar="N", help="of each cluster, a multiple of 10")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the idle measurement")
    parser.add_argument("--image", type=Path, metavar="ROOT", help="made by python -m tests.deploy.image_root")
    options = parser.parse_args(arguments)
    if options.image is not None and OWN_NETWORK not in os.environ:
        inside = 'ip link set lo up && exec "$@"'
        command = [sys.executable, "-m", "lab.bench.whole_fleet", *(arguments or sys.argv[1:])]
        os.environ[OWN_NETWORK] = "1"
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", inside, "sh", *command])
    with tempfile.TemporaryDirectory(prefix="fleet-") as directory, ExitStack() as running:
        made = (Path(directory), options.clusters, options.partitions, running)
        fleet = Fleet(*made) if options.image is None else FleetOfImage(*made, options.image)
        fleet.build()
        for name in COMMANDS:
            fleet.start(name)
        shown.print(f"ready, without the late ensemble: {fleet.until_seen():.0f} s after the starts")
        table = idle(fleet, options.seconds)
        Console(width=140).print(table)
        fleet.start_late_ensemble()
        shown.print(f"the late ensemble is seen {fleet.until_seen():.0f} s after it has started")
        for name in COMMANDS:
            fleet.processes[name].kill()
            fleet.start(name)
            shown.print(f"{name} was killed and all clusters are seen again after {fleet.until_seen():.0f} s")
        different = fleet.differences()
        assert not different, f"{len(different)} rows differ, like {different[0]}"
        shown.print(f"every row of {len(fleet.zookeepers)} clusters equals a read of its ZooKeeper")


if __name__ == "__main__":
    main()
