"""Record the first znodes of a release, by which an observer can distinguish releases.

`python -m lab.record.first_znodes 2.7.2 2.6 2.7` starts ZooKeeper and one broker of the release with each
inter.broker.protocol.version in turn (by default the release's own), makes a topic, and prints a JSON line of the
existing znodes with their data versions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from cli.embedded.zookeeper import ZooKeeper
from lab.record.broker import RecordedBroker
from lab.record.releases import RELEASES
from tests.waiting import eventually

_PATHS = ("/controller", "/controller_epoch", "/feature", "/brokers/ids/1")
_OF_THE_RUN = ("host", "port", "jmx_port", "endpoints", "timestamp")  # fields that differ from run to run


def record(release: str, protocols: Sequence[str], directory: Path) -> None:
    """Print the znodes of one cluster under each protocol version, one after the other."""
    with ZooKeeper(directory / "zookeeper") as zookeeper:
        client = KazooClient(zookeeper.connect_string, timeout=30)
        client.start()
        try:
            for protocol in protocols or ("",):
                settings = {"inter.broker.protocol.version": protocol} if protocol else {}
                logs, name = directory / f"logs-{protocol}", f"made-{protocol}"
                broker = RecordedBroker(1, release, zookeeper.connect_string, directory / "broker", logs, settings)
                broker.launch()
                try:
                    eventually(lambda: client.exists("/controller") and client.exists("/brokers/ids/1"))
                    _make_topic(client, broker, name)
                    seen = {path: _content(client, path) for path in (*_PATHS, f"/brokers/topics/{name}")}
                finally:
                    broker.kill()
                print(json.dumps({"kafka": release, "protocol": protocol, "znodes": seen}), flush=True)
                eventually(lambda: not client.exists("/controller") and not client.exists("/brokers/ids/1"))
        finally:
            client.stop()
            client.close()


def _make_topic(client: KazooClient, broker: RecordedBroker, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=[broker.address])
    try:
        admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    finally:
        admin.close()
    # After the first state, the controller has written everything about features and topic ids.
    eventually(lambda: client.exists(f"/brokers/topics/{name}/partitions/0/state"))


def _content(client: KazooClient, path: str) -> dict[str, Any] | None:
    """Return the content and its version, or None without such a znode."""
    if not client.exists(path):
        return None
    data, stat = client.get(path)
    read = json.loads(data)
    content = {key: value for key, value in read.items() if key not in _OF_THE_RUN} if isinstance(read, dict) else read
    return {"content": content, "version": stat.version}


def main() -> None:
    """Record one release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("protocols", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kontrast-") as directory:
        record(arguments.release, arguments.protocols, Path(directory))


if __name__ == "__main__":
    main()
