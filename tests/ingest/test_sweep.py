"""A sweep over all znodes, which finds what no watch reports: ACLs that hide a znode, and changes behind them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions

from tests.ingest.conftest import Watching, replayed_tree, server_tree
from tests.waiting import eventually

HIDDEN = [ACL(Permissions.ALL & ~Permissions.READ, ANYONE_ID_UNSAFE)]


def test_a_znode_that_an_acl_hides_is_counted_and_its_change_is_published_later(
    watch: Callable[..., Watching], kafka: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create("/config/topics/orders", b"{}", makepath=True)
    kafka.create("/brokers/topics/orders", b'{"partitions": {}}', makepath=True)
    watching = watch(sweep_seconds=1)
    kafka.set_acls("/config/topics/orders", HIDDEN)
    eventually(lambda: watching.forwarding.forbidden_znodes, lambda hidden: hidden == 1, within_seconds=30)
    assert "/config/topics/orders may not be read" in caplog.text
    kafka.set("/config/topics/orders", b'{"config": {}}')
    kafka.set_acls("/config/topics/orders", OPEN_ACL_UNSAFE)
    eventually(lambda: replayed_tree(watching.records()) == server_tree(kafka), within_seconds=30)
    assert watching.forwarding.forbidden_znodes == 0


def test_znodes_below_a_list_that_an_acl_hid_are_found(watch: Callable[..., Watching], kafka: KazooClient) -> None:
    kafka.create("/brokers/topics", b"", makepath=True, acl=HIDDEN)
    kafka.create("/brokers/topics/early", b'{"partitions": {}}')
    watching = watch(sweep_seconds=1)
    eventually(lambda: watching.forwarding.forbidden_znodes, lambda hidden: hidden == 1)
    kafka.set_acls("/brokers/topics", OPEN_ACL_UNSAFE)
    eventually(lambda: "/brokers/topics/early" in replayed_tree(watching.records()), within_seconds=30)
    assert watching.forwarding.differences > 0
