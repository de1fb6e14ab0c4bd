"""The consequences in the table of znodes, tried on a broker of Kafka 3.9.2 that starts and finds the flawed znode."""

from __future__ import annotations

import json
import time

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import EmbeddedError
from controller.contract.consequences import consequence_of
from controller.contract.znodes import Flaw
from tests.clients import zookeeper_client

pytestmark = pytest.mark.nightly

TOPIC, STATE = "/brokers/topics/t", "/brokers/topics/t/partitions/0/state"
SOUND = {
    TOPIC: {"version": 3, "topic_id": "jKTRaM_TSNqocJeQI2aYOQ", "partitions": {"0": [1]}},
    STATE: {"version": 1, "controller_epoch": 1, "leader": 1, "leader_epoch": 0, "isr": [1]},
}
CONTENTS = {Flaw.NULL: None, Flaw.EMPTY: b"", Flaw.UNPARSABLE: b"x", Flaw.WRONG_TYPE: b"[1]"}
NUMBER_IN_SETTINGS = b'{"version":1,"config":{"retention.ms":1}}'
SITTING_SECONDS = 4  # a flapping controller has tens of terms by then

TRIED = [
    *((path, flaw) for path in ("/cluster/id", "/feature", "/controller") for flaw in CONTENTS),
    *(("/controller_epoch", flaw) for flaw in (Flaw.NULL, Flaw.EMPTY, Flaw.NO_DIGITS)),
    *((path, flaw) for path in ("/brokers/ids/2", TOPIC, STATE) for flaw in CONTENTS),
    *((path, Flaw.WRONG_TYPE) for path in ("/config/topics/t", "/config/brokers/1", "/config/brokers/<default>")),
    *((path, Flaw.UNPARSABLE) for path in ("/config/topics/t", "/config/brokers/1")),
    *(("/admin/reassign_partitions", flaw) for flaw in (Flaw.NULL, Flaw.EMPTY, Flaw.UNPARSABLE)),
    *(("/admin/preferred_replica_election", flaw) for flaw in CONTENTS),
    *(("/isr_change_notification/isr_change_0000000001", flaw) for flaw in CONTENTS),
]


@pytest.mark.parametrize(("path", "flaw"), TRIED, ids=lambda value: getattr(value, "name", value))
def test_a_broker_does_with_a_flawed_znode_as_the_table_has_it(path, flaw, shared_zookeeper, own_name, tmp_path):
    address = f"{shared_zookeeper}/{own_name}"
    content = NUMBER_IN_SETTINGS if path.startswith("/config/") else CONTENTS.get(flaw, b"x")
    _write(shared_zookeeper, own_name, path, content, flaw)
    consequence = consequence_of(path, flaw)
    broker = KafkaBroker(1, address, tmp_path)
    try:
        has_started = starts(broker)
        assert has_started == (consequence is None or not consequence.stops_start)
        if has_started:
            assert has_lasting_controller(address) == (consequence is None or not consequence.stops_controllers)
    finally:
        broker.kill()


def _write(zookeeper: str, chroot: str, path: str, content: bytes | None, flaw: Flaw) -> None:
    with zookeeper_client(zookeeper) as client:
        for other, sound in SOUND.items():
            if (
                path.startswith((TOPIC, "/config/topics", "/admin"))
                and other != path
                and not (other == STATE and path == TOPIC)
            ):
                client.create(f"/{chroot}{other}", json.dumps(sound).encode(), makepath=True)
        is_settings = path.startswith("/config/") and flaw is Flaw.UNPARSABLE
        client.create(f"/{chroot}{path}", b"x" if is_settings else content, makepath=True)


def starts(broker: KafkaBroker) -> bool:
    try:
        broker.start()
    except EmbeddedError:
        return False
    return True


def has_lasting_controller(address: str) -> bool:
    """Return whether one broker became controller, for one term."""
    with zookeeper_client(address) as client:
        time.sleep(SITTING_SECONDS)
        first = _term(client)
        time.sleep(SITTING_SECONDS / 2)
        return first is not None and first == _term(client)


def _term(client: KazooClient) -> tuple[int, bytes] | None:
    try:
        content, stat = client.get("/controller")
    except NoNodeError:  # between two terms
        return None
    return (stat.czxid, content) if content and content.startswith(b"{") else None
