"""Records a real cluster under random actions: `python -m tests.conformance.record SEED --out FILE.tar.xz`.

Here belong the command line and the order of a recording; what happens in it is in `actions`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from kazoo.client import KazooClient

from cli.embedded.errors import EmbeddedError
from cli.embedded.zookeeper import ZooKeeper
from streaming.errors import StreamError
from tests.conformance.record.actions import Actions
from tests.conformance.record.admin import Admin
from tests.conformance.record.broker import SETTINGS, RecordedBroker
from tests.conformance.record.gauges import GaugeSampler
from tests.conformance.record.releases import RELEASES
from tests.conformance.record.steps import Steps
from tests.conformance.record.topics import Topics

_START_SECONDS = 120
_QUIET_SECONDS = 2.0
_REST_SECONDS = 6.0
_LONGEST_REST_SECONDS = 40
_PRESET = 9 | lzma.PRESET_EXTREME  # it is made once and kept for good
_BY_A_BROKER = re.compile(r"\[[^\]]*\] \w+ (?:\[Broker id=|Broker \d)")


class Recorder:
    """One recording in the making, in a directory that becomes the archive's folder."""

    def __init__(self, options: argparse.Namespace, scratch: Path, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._scratch = scratch
        # How finely ends of sessions are told apart.
        tick_ms = random.Random(options.seed).choice((500, 2000))
        self._zookeeper_settings = {"tickTime": str(tick_ms), "preAllocSize": "1024"}
        self._zookeeper = ZooKeeper(scratch / "zookeeper", properties=self._zookeeper_settings)
        self._steps = Steps(folder / "steps.jsonl")

    def record(self) -> None:
        """Start the cluster, act, rest, and end it so that its end is not in ZooKeeper's log."""
        options = self._options
        connect = self._zookeeper.connect_string
        brokers = [
            RecordedBroker(number, options.kafka, connect, self._scratch / f"broker-{number}", self._logs(number))
            for number in range(1, options.brokers + 1)
        ]
        client = KazooClient(hosts=connect, timeout=30)
        try:
            self._zookeeper.start()
            client.start(timeout=30)
            self._start(brokers, client)
            sampler = GaugeSampler(brokers)
            sampler.start()
            steps = self._steps
            admin = Admin(brokers, steps)
            release = RELEASES[options.kafka]
            Actions(options.seed, release, brokers, Topics(client), admin, steps).run(options.seconds)
            admin.close()
            last_zxid = self._rest(client)
            steps.note("end")
            for broker in brokers:
                broker.kill()
            sampler.write(self._folder / "jmx.jsonl")
        finally:
            for broker in brokers:
                broker.kill()
            client.stop()
            client.close()
            self._zookeeper.kill()
        self._describe(last_zxid)
        for log in self._folder.glob("logs*/state-change.log"):
            _keep_the_controllers_lines(log)
        shutil.copytree(self._zookeeper.data_directory, self._folder / "zk")

    def _logs(self, number: int) -> Path:
        return self._folder / f"logs{number}"

    def _start(self, brokers: list[RecordedBroker], client: KazooClient) -> None:
        self._steps.note("start all")
        for broker in brokers:
            broker.launch()
        deadline = time.monotonic() + _START_SECONDS
        for broker in brokers:
            while not client.exists(f"/brokers/ids/{broker.broker_id}"):
                if not broker.running or time.monotonic() > deadline:
                    raise EmbeddedError(broker.describe("did not come up"))
                time.sleep(0.1)

    def _rest(self, client: KazooClient) -> int:
        """Wait until nothing more follows from the actions; gives the last transaction before the end."""
        time.sleep(_REST_SECONDS)
        deadline = time.monotonic() + _LONGEST_REST_SECONDS
        zxid = self._zxid(client)
        while time.monotonic() < deadline:
            time.sleep(_QUIET_SECONDS)
            newest = self._zxid(client)
            if newest == zxid:
                break
            zxid = newest
        return zxid

    def _zxid(self, client: KazooClient) -> int:
        client.exists("/")  # an answer names the newest transaction
        return client.last_zxid

    def _describe(self, last_zxid: int) -> None:
        options = self._options
        description: Mapping[str, object] = {
            "seed": options.seed,
            "kafka": options.kafka,
            "brokers": options.brokers,
            "seconds": options.seconds,
            "settings": dict(SETTINGS),
            "zookeeper": self._zookeeper_settings,
            "last_zxid": last_zxid,
        }
        (self._folder / "recording.json").write_text(json.dumps(description, indent=2) + "\n")


def _keep_the_controllers_lines(log: Path) -> None:
    """Leave out what brokers say of the requests that they get, which is two thirds of the log."""
    lines = log.read_text(errors="replace").splitlines(keepends=True)
    log.write_text("".join(line for line in lines if not _BY_A_BROKER.match(line)))


def main() -> int:
    """Make one recording; 1 after an error's sentence."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record", description=__doc__)
    parser.add_argument("seed", type=int, metavar="SEED", help="chooses the actions")
    parser.add_argument("--kafka", choices=sorted(RELEASES), default="3.9.2", help="the brokers' release")
    parser.add_argument("--brokers", type=int, default=4, help="how many brokers")
    parser.add_argument("--seconds", type=float, default=180, help="how long to act")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.tar.xz", help="the archive to write")
    options = parser.parse_args()
    name = options.out.name.removesuffix(".tar.xz")
    if name == options.out.name:
        parser.error(f"--out {options.out} must end in .tar.xz: the rest of the name is the recording's")
    with tempfile.TemporaryDirectory(prefix="record-") as directory:
        folder = Path(directory, name)
        folder.mkdir()
        try:
            Recorder(options, Path(directory, "scratch"), folder).record()
        except (EmbeddedError, StreamError) as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        with tarfile.open(options.out, "w:xz", preset=_PRESET) as archive:
            archive.add(folder, arcname=name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
