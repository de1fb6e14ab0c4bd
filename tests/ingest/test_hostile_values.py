"""Hostile content of a real ZooKeeper, published unchanged, with extreme fields, odd names, and binary data."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient

from controller.contract.records import decode_record, encode_record
from ingest.errors import IngestError
from tests.extremes import TEXTS
from tests.ingest.conftest import Watching, make_cluster, replayed_tree, server_tree
from tests.lanes import in_gate
from tests.znode_contents import contents_at_extremes

pytestmark = pytest.mark.usefixtures("shared_chroot")

Watch = Callable[..., Watching]

NO_TEXT = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x00" * 100_000,
    bytes(range(256)),
    b"[" * 50_000,
]
CONTENTS = [content for _, content in contents_at_extremes()] + NO_TEXT
TOGETHER = 100  # znodes in one request, which may have a megabyte


# Characters that ZooKeeper forbids in paths (`PathUtils`). It sees a character beyond 16 bits as two, which are both
# forbidden.
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff/]")


def names() -> list[str]:
    """Return the texts that ZooKeeper accepts as a name."""
    return [text[:5_000] for text in TEXTS if text and not FORBIDDEN.search(text)]


def in_requests(kafka: KazooClient, contents: list[tuple[str, bytes]], *, create: bool) -> None:
    """Write them all, many at once."""
    small = [each for each in contents if len(each[1]) < 5_000]
    for path, content in contents:
        if len(content) >= 5_000:
            (kafka.create if create else kafka.set)(path, content)
    for at in range(0, len(small), TOGETHER):
        transaction = kafka.transaction()
        for path, content in small[at : at + TOGETHER]:
            (transaction.create if create else transaction.set_data)(path, content)
        assert not any(isinstance(result, Exception) for result in transaction.commit())


def comes_through(watching: Watching, kafka: KazooClient) -> bool:
    watching.settled()
    records = watching.records()
    assert all(decode_record(encode_record(record)) == record for record in records)
    if watching.error:
        raise IngestError("it ended") from watching.error
    return replayed_tree(records) == server_tree(kafka)


@pytest.mark.parametrize("parent", in_gate("/brokers/topics", of=["/brokers/topics", "/config/topics"]))
def test_contents_are_read_and_their_changes_are_seen(kafka: KazooClient, watch: Watch, parent: str) -> None:
    make_cluster(kafka)
    paths = [f"{parent}/x-{number}" for number in range(len(CONTENTS))]
    in_requests(kafka, list(zip(paths, CONTENTS, strict=True)), create=True)
    watching = watch()
    assert comes_through(watching, kafka)
    others = [*CONTENTS[1:], CONTENTS[0]]
    in_requests(kafka, list(zip(paths, others, strict=True)), create=False)
    assert comes_through(watching, kafka)


def test_names_are_forwarded_as_they_are(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    found = names()
    assert len(found) > 5
    for name in found:
        kafka.create(f"/brokers/topics/{name}/partitions/0/state", b'{"leader":1}', makepath=True)
    watching = watch()
    assert comes_through(watching, kafka)
    for name in found:
        kafka.create(f"/config/topics/{name}", b"{}")
        kafka.create(f"/admin/delete_topics/{name}", None)
    assert comes_through(watching, kafka)
    for name in found:
        kafka.delete(f"/brokers/topics/{name}", recursive=True)
    assert comes_through(watching, kafka)
