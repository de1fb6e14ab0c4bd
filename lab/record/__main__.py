"""Record a real cluster under random actions: `python -m lab.record SEED --out FILE.tar.xz`.

The command line and the order of a recording belong here. `actions` has the events of a small cluster, `large` of a
large one. `keeping` chooses the lines of logs that are kept.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kazoo.client import KazooClient

from cli.embedded.process import EmbeddedError
from cli.embedded.zookeeper import ZooKeeper
from lab.record.actions import Actions
from lab.record.admin import Admin
from lab.record.broker import SETTINGS, RecordedBroker
from lab.record.filling import fill, first_topics
from lab.record.gauges import GaugeSampler
from lab.record.keeping import keep_what_is_counted, keep_what_the_controllers_said
from lab.record.large import LargeActions, load_seconds
from lab.record.registered import Heartbeats, RegisteredBroker, znode_version
from lab.record.releases import RELEASES, protocol_of
from lab.record.steps import Steps
from lab.record.topics import Topics
from streaming.errors import StreamError
from tests.conformance.recording import ENDING

_START_SECONDS = 120
_QUIET_SECONDS = 2.0
_REST_SECONDS = 6.0
_LONGEST_REST_SECONDS = 40
_PRESET = 9 | lzma.PRESET_EXTREME  # slow, because an archive is made once and kept for good
_QUICK_PRESET = 1  # for recordings too large to keep
_MOST_KEPT_PARTITIONS = 30_000
_PROTOCOL = "inter.broker.protocol.version"
_FIRST_REGISTERED = 101
_MOST_NEAR_PARTITIONS = 300  # partitions of a large cluster on its real brokers
_SMALL = "t"  # prefix of the topics of small actions
# With 392 MB a controller of 3.9.2 took up 10,000 partitions of 30 brokers, with 432 MB one of 2.8.2 12,000.
_HEAP_MB, _PARTITIONS_A_MB = 192, 50
# For each registered broker, the controller keeps an unsent request about all partitions in memory.
_UNSENT_BYTES_A_PARTITION = 80
# ZooKeeper needs 128 MB for 30,000 znodes, and a partition has three.
_ZOOKEEPER_HEAP_MB, _PARTITIONS_A_ZOOKEEPER_MB = 128, 200


class Recorder:
    """One recording in the making, in a directory that becomes the archive's folder."""

    def __init__(self, options: argparse.Namespace, scratch: Path, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._scratch = scratch
        # A tick is the precision with which sessions expire.
        tick_ms = random.Random(options.seed).choice((500, 2000))
        self._zookeeper_settings = {"tickTime": str(tick_ms), "preAllocSize": "1024"}
        self._zookeeper = ZooKeeper(
            scratch / "zookeeper",
            properties=self._zookeeper_settings,
            heap_mb=_ZOOKEEPER_HEAP_MB + options.partitions // _PARTITIONS_A_ZOOKEEPER_MB,
        )
        self._steps = Steps(folder / "steps.jsonl")

    def record(self) -> None:
        """Start the cluster, act, rest, and end it so that its end is not in ZooKeeper's log."""
        brokers, registered = self._brokers(), self._registered()
        heartbeats = Heartbeats(registered)
        client = KazooClient(hosts=self._zookeeper.connect_string, timeout=30)
        try:
            self._zookeeper.start()
            if registered:
                self._fill([broker.broker_id for broker in registered])
            client.start(timeout=30)
            for one in registered:
                one.register()
            heartbeats.start()
            self._start(brokers, client)
            sampler = GaugeSampler(brokers)
            sampler.start()
            self._act(brokers, registered, client)
            last_zxid = self._rest(client)
            self._steps.note("end")
            for broker in brokers:
                broker.kill()
            sampler.write(self._folder / "jmx.jsonl")
        finally:
            for broker in brokers:
                broker.kill()
            heartbeats.end()
            client.stop()
            client.close()
            self._zookeeper.kill()
        self._describe(last_zxid)
        keep = keep_what_is_counted if registered else keep_what_the_controllers_said
        for logs in self._folder.glob("logs*"):
            keep(logs)
        shutil.copytree(self._zookeeper.data_directory, self._folder / "zk")

    def _fill(self, registered: list[int]) -> None:
        """Make a large cluster's topics, before there is any broker.

        Then restart ZooKeeper, which makes it write a snapshot from before any controller.
        """
        options = self._options
        self._steps.note("fill", partitions=options.partitions, registered=registered)
        near = min(_MOST_NEAR_PARTITIONS, options.partitions)
        real = range(1, options.brokers + 1)
        topics = first_topics(random.Random(options.seed), real, registered, options.partitions, near)
        client = KazooClient(hosts=self._zookeeper.connect_string, timeout=30)
        client.start(timeout=30)
        try:
            fill(client, topics)
        finally:
            client.stop()
            client.close()
        filled = [*self._zookeeper.data_directory.glob("version-2/*")]
        self._zookeeper.stop()
        self._zookeeper.start()
        for file in filled:
            file.unlink()

    def _act(self, brokers: list[RecordedBroker], registered: list[RegisteredBroker], client: KazooClient) -> None:
        options, steps = self._options, self._steps
        admin = Admin(brokers, steps)
        release = RELEASES[options.kafka]
        topics = Topics(client, _SMALL)
        if registered:
            actions: Actions = LargeActions(
                options.seed, release, brokers, registered, options.partitions, topics, admin, steps
            )
        else:
            actions = Actions(options.seed, release, brokers, topics, admin, steps)
        if options.upgrade_to:
            actions.upgrade(options.upgrade_to, ".".join(map(str, options.protocol)))
        actions.run(options.seconds)
        admin.close()

    def _brokers(self) -> list[RecordedBroker]:
        options = self._options
        unsent_mb = options.registered * options.partitions * _UNSENT_BYTES_A_PARTITION // 1_000_000
        return [
            RecordedBroker(
                number,
                options.kafka,
                self._zookeeper.connect_string,
                self._scratch / f"broker-{number}",
                self._logs(number),
                options.settings,
                _HEAP_MB + options.partitions // _PARTITIONS_A_MB + unsent_mb,
                clients_apart=bool(options.registered),
            )
            for number in range(1, options.brokers + 1)
        ]

    def _registered(self) -> list[RegisteredBroker]:
        options = self._options
        zookeeper, version = ("127.0.0.1", self._zookeeper.port), znode_version(options.protocol)
        return [
            RegisteredBroker(number, zookeeper, version)
            for number in range(_FIRST_REGISTERED, _FIRST_REGISTERED + options.registered)
        ]

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
        """Wait for the last consequence of the actions. Return the last transaction before the end.

        A controller that loads does not write, so the cluster is quiet only after the time for a load.
        """
        load = load_seconds(self._options.partitions)
        time.sleep(_REST_SECONDS)
        deadline = time.monotonic() + _LONGEST_REST_SECONDS + 3 * load
        zxid = self._zxid(client)
        while time.monotonic() < deadline:
            time.sleep(_QUIET_SECONDS + load)
            newest = self._zxid(client)
            if newest == zxid:
                break
            zxid = newest
        return zxid

    def _zxid(self, client: KazooClient) -> int:
        client.exists("/")  # an answer names the newest transaction
        zxid: int = client.last_zxid
        return zxid

    def _describe(self, last_zxid: int) -> None:
        options = self._options
        description: dict[str, object] = {
            "seed": options.seed,
            "kafka": options.kafka,
            "brokers": options.brokers,
            "seconds": options.seconds,
            "settings": {**SETTINGS, **options.settings},
            "zookeeper": self._zookeeper_settings,
            "last_zxid": last_zxid,
        }
        if options.registered:
            description |= {"registered": options.registered, "partitions": options.partitions}
        if options.upgrade_to:
            description |= {"upgrade_to": options.upgrade_to}
        (self._folder / "recording.json").write_text(json.dumps(description, indent=2) + "\n")


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Check the command line. End the program with a sentence if it makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m lab.record", description=__doc__)
    parser.add_argument("seed", type=int, metavar="SEED", help="chooses the actions")
    parser.add_argument("--kafka", choices=sorted(RELEASES), default="3.9.2", help="the brokers' release")
    parser.add_argument("--brokers", type=int, default=4, help="how many brokers")
    parser.add_argument("--seconds", type=float, default=180, help="how long to act")
    parser.add_argument("--registered", type=int, default=0, help="how many more, which never answer")
    parser.add_argument("--partitions", type=int, default=0, help="how many there are before any broker")
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE", help="of all brokers")
    parser.add_argument("--upgrade-to", choices=sorted(RELEASES), metavar="RELEASE", help="roll all brokers to it")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.tar.xz", help="the archive to write")
    options = parser.parse_args(arguments)
    if not options.out.name.endswith(ENDING):
        parser.error(f"--out {options.out} must end in {ENDING}: the rest of the name is the recording's")
    if bool(options.registered) != bool(options.partitions):
        parser.error("--registered and --partitions need each other: one is where most of the other are")
    if any("=" not in setting for setting in options.setting):
        parser.error(f"--setting {' '.join(options.setting)}: expected KEY=VALUE")
    options.settings = dict(setting.split("=", 1) for setting in options.setting)
    options.protocol = protocol_of(options.settings.get(_PROTOCOL, options.kafka))
    return options


def _preset(partitions: int) -> int:
    return _PRESET if partitions <= _MOST_KEPT_PARTITIONS else _QUICK_PRESET


def main() -> int:
    """Make one recording. Return 1 after an error's sentence."""
    options = read_options()
    name = options.out.name.removesuffix(ENDING)
    with tempfile.TemporaryDirectory(prefix="record-") as directory:
        folder = Path(directory, name)
        folder.mkdir()
        try:
            Recorder(options, Path(directory, "scratch"), folder).record()
        except (EmbeddedError, StreamError) as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        with (
            lzma.open(options.out, "wb", preset=_preset(options.partitions)) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as archive,
        ):
            archive.add(folder, arcname=name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
