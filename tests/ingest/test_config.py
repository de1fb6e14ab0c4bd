"""Settings of a forwarder, and the sentences for wrong ones."""

from pathlib import Path

import pytest

from ingest.config import IngestConfig
from ingest.errors import IngestError
from transport.address import JournalAddress


def config(**settings: object) -> IngestConfig:
    values = {"cluster": "blue", "zookeeper": "zk:2181", "to": JournalAddress(Path("j")), **settings}
    return IngestConfig(**values)


@pytest.mark.parametrize(
    ("zookeeper", "servers", "chroot"),
    [
        ("zk:2181", "zk:2181", ""),
        ("zk:2181/", "zk:2181", ""),
        ("a:1,b.example:2,[::1]:3/kafka/blue", "a:1,b.example:2,[::1]:3", "/kafka/blue"),
        ("zk:2181/kafka/", "zk:2181", "/kafka"),
    ],
)
def test_an_address_has_servers_and_a_chroot(zookeeper: str, servers: str, chroot: str) -> None:
    assert (config(zookeeper=zookeeper).servers, config(zookeeper=zookeeper).chroot) == (servers, chroot)


@pytest.mark.parametrize("zookeeper", ["", "zk", "zk:", "zk:2181,", "zk:2181//x", "zk:2181/a b", "/kafka", "zk:2181\n"])
def test_what_is_no_address_is_refused_by_name(zookeeper: str) -> None:
    with pytest.raises(IngestError, match="is no address. Give HOST:PORT"):
        config(zookeeper=zookeeper)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster", ""),
        ("cluster", "two words"),
        ("coalesce_ms", -1),
        ("heartbeat_seconds", 0),
        ("heartbeat_seconds", float("nan")),
        ("connect_timeout_seconds", 0),
        ("session_timeout_seconds", 0),
        ("multi_read_paths", 0),
        ("read_budget_znodes_per_second", 0),
        ("journal_retain_bytes", 0),
        ("journal_retain_seconds", 0),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(IngestError, match=name):
        config(**{name: value})
