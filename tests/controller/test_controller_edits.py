"""Edits of /controller in the acting controller's name. It acts on until its process or the znode goes.

`tests/conformance/test_controller_edits.py` records the reaction of real brokers to each edit. The tests here cover the
time after it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.contract.effect_rows import Transition
from controller.contract.metadata_rows import BrokerRow, ControllerRow
from controller.contract.records import RecordKind
from controller.restore.context_of_rows import context_of_rows
from controller.restore.stored_context import new_context
from controller.view.types import Context
from questions.explain.controller import explain_controller
from questions.picture import Origin, Picture
from tests.controller.znode_history import ZnodeHistory, assert_all_as_expected, controller_znode

SOMEBODYS = 0xF00
LED_BY_2 = {"t": {0: ([2, 3], 2, 0, [2, 3])}}


def gone_and_there(history: ZnodeHistory) -> None:
    history.delete("/controller")
    history.write("/controller", controller_znode(1), same_zxid=True, owner=SOMEBODYS)


def another_znode(history: ZnodeHistory) -> None:
    del history.znodes["/controller"]
    history.write("/controller", controller_znode(1), owner=SOMEBODYS)


def edited(history: ZnodeHistory) -> None:
    history.write("/controller", {**controller_znode(1), "timestamp": "99"})


replaced = pytest.mark.parametrize("replace", [gone_and_there, another_znode])
written = pytest.mark.parametrize("write", [gone_and_there, another_znode, edited])
Edit = Callable[[ZnodeHistory], None]


def started(**more) -> ZnodeHistory:
    return ZnodeHistory(**more).start(1, 2, 3, topics=LED_BY_2)


def acts(history: ZnodeHistory) -> bool:
    """Return whether a controller is expected to elect leaders after a death."""
    row = history.row("t", 0)
    return row.problem == "election_due" and history.predicted("t", 0) is not None


def open_kinds(history: ZnodeHistory) -> set[str]:
    history.heartbeat(60_000)
    return {alert.alert for alert in history.open_alerts().values()} & {"GhostController", "NoController"}


def moves(history: ZnodeHistory) -> list[tuple[str, str]]:
    rows = [row for row in history.effects if isinstance(row, Transition) and row.subject == "controller"]
    return [(row.from_state, row.to_state) for row in rows]


@written
def test_what_it_still_owes_is_expected_of_it_as_before(write: Edit):
    history = started()
    history.broker_leaves(2)
    write(history)
    assert acts(history)
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)
    assert open_kinds(history) == set()
    assert history.context.header.former.changes == 0


def test_a_znode_that_was_never_away_moves_nothing():
    history = started()
    another_znode(history)
    assert moves(history) == []


def test_one_that_seemed_to_be_away_is_published_as_resigned_and_active_again():
    history = started()
    gone_and_there(history)
    assert moves(history) == [("Active", "Resigned"), ("Resigned", "Active")]
    rows = [row.broker for row in history.effects if isinstance(row, ControllerRow)]
    assert rows[-2:] == [-1, 1]


@replaced
def test_the_next_election_is_one_as_ever(replace: Edit):
    """The znode goes with its maker's session. The same broker or another one takes over."""
    for broker in (1, 3):
        history = started()
        replace(history)
        history.delete("/controller")
        history.broker_leaves(2)
        assert not acts(history)
        history.controller(broker, 2)
        assert acts(history)
        assert open_kinds(history) == set()
        assert (history.context.header.former.changes, history.context.header.term.in_its_name) == (1, None)


@pytest.mark.parametrize("is_seen", [True, False])
@replaced
def test_its_session_ends_seen_or_not_and_it_comes_back_as_a_ghost(replace: Edit, is_seen: bool):
    history = started()
    replace(history)
    (history.broker_leaves if is_seen else history.broker_bounces)(1)
    history.broker_leaves(2)
    assert not acts(history)
    assert open_kinds(history) == {"GhostController"}
    if is_seen:
        history.broker(1)
        assert not acts(history)
        assert open_kinds(history) == {"GhostController"}
    history.delete("/controller")
    history.controller(1, 2)
    assert acts(history)
    assert open_kinds(history) == set()


@written
def test_a_complete_read_finds_it_acting(write: Edit):
    history = started()
    write(history)
    content, owner = history.contents["/controller"], history.records[-1].ephemeral_owner
    history.generation, history.seq = 2, -1
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.write("/controller", content, owner=owner)
    for path in list(history.contents):
        if path != "/controller":
            history.write(path, history.contents[path])
    history.send(RecordKind.SNAPSHOT_END)
    history.broker_leaves(2)
    assert acts(history)
    assert open_kinds(history) == set()


@pytest.mark.parametrize("found", ["another edit", "nobody", "another process"])
def test_a_complete_read_finds_something_else(found):
    history = started()
    another_znode(history)
    history.generation, history.seq = 2, -1
    history.send(RecordKind.SNAPSHOT_BEGIN)
    if found == "another edit":
        history.zxid += 1
        history.write("/controller", {**controller_znode(1), "timestamp": "99"}, owner=SOMEBODYS)
    elif found == "another process":
        history.write("/controller", controller_znode(1), owner=SOMEBODYS)
        del history.znodes["/brokers/ids/1"]
        history.broker(1)
    for path in list(history.contents):
        if path != "/controller" and not (found == "another process" and path == "/brokers/ids/1"):
            history.write(path, history.contents[path])
    history.send(RecordKind.SNAPSHOT_END)
    history.broker_leaves(2)
    assert not acts(history)
    assert open_kinds(history) == ({"NoController"} if found == "nobody" else {"GhostController"})


@pytest.mark.parametrize("epoch_first", [False, True])
def test_an_election_that_only_looks_like_it_is_one(epoch_first):
    """After the broker's restart the new /controller comes first, from servers that send no zxids."""
    history = started()
    history.delete("/controller")
    history.sessions[1] += 0x10000
    history.write("/controller", controller_znode(1))
    new_epoch = lambda: history.write("/controller_epoch", b"2", same_zxid=True)  # noqa: E731
    if epoch_first:
        new_epoch()
    del history.znodes["/brokers/ids/1"]
    history.registered.discard(1)
    history.broker(1)
    if not epoch_first:
        new_epoch()
    history.broker_leaves(2)
    assert acts(history)
    assert open_kinds(history) == set()
    header = history.context.header
    assert (header.former.changes, header.term.epoch, header.term.in_its_name) == (1, 2, None)


def test_what_a_gap_hid_may_have_been_an_election():
    history = started()
    del history.znodes["/controller"]
    history.write("/controller", controller_znode(1), owner=SOMEBODYS, resync=True)
    history.broker_leaves(2)
    assert not acts(history)


@pytest.mark.parametrize("change", ["another process", "another epoch", "kraft"])
def test_it_does_not_act_on_where_more_than_the_znode_has_changed(change):
    history = started()
    history.delete("/controller")
    if change == "another process":
        history.broker_bounces(1)
    elif change == "another epoch":
        history.write("/controller_epoch", b"7")
    kraft = {"kraftControllerEpoch": 3} if change == "kraft" else {}
    history.write("/controller", controller_znode(1) | kraft, owner=SOMEBODYS)
    history.broker_leaves(2)
    assert not acts(history)
    assert history.context.header.term.in_its_name is None


PERSISTENT = 0


def of_rows(history: ZnodeHistory) -> Context:
    """Return the context that a reader of the published rows has."""
    rows = [row for row in history.effects if isinstance(row, ControllerRow | BrokerRow)]
    return context_of_rows(new_context("c"), rows, history.gauges())


def test_a_persistent_znode_blocks_every_later_election_and_a_page_says_so():
    history = started()
    history.delete("/controller")
    history.write("/controller", controller_znode(1), owner=PERSISTENT)
    history.heartbeat(60_000)
    (alert,) = history.open_alerts().values()
    assert alert.alert == "GhostController"
    assert "no broker can be elected after controller 1" in alert.cause
    assert alert.evidence[0] == "/controller is owned by no session, because it is persistent"
    history.broker_leaves(2)
    assert acts(history)
    context = of_rows(history)
    assert (context.header.acting, context.header.term.is_persistent) == (True, True)
    history.broker_leaves(1)
    history.heartbeat(60_000)
    assert "no broker acts as controller" in history.open_alerts()["GhostController"].cause


def test_a_znode_that_is_found_persistent_is_published():
    history = started()
    history.write("/controller", controller_znode(1), owner=PERSISTENT)  # its removal and creation are one change
    context = of_rows(history)
    assert (context.header.acting, context.header.term.is_persistent) == (True, True)


def test_one_read_and_the_stream_say_the_same_of_a_persistent_znode():
    history = started()
    history.delete("/controller")
    history.write("/controller", controller_znode(1), owner=PERSISTENT)
    read = started()
    read.generation, read.seq = 2, -1
    read.send(RecordKind.SNAPSHOT_BEGIN)
    for path in list(read.contents):
        read.write(path, read.contents[path], owner=PERSISTENT if path == "/controller" else None)
    read.send(RecordKind.SNAPSHOT_END)
    said = []
    for of in (history, read):
        of.heartbeat(60_000)
        alerts = [(alert.alert, alert.cause, alert.evidence[0]) for alert in of.open_alerts().values()]
        said.append((alerts, explain_controller(Picture(origin=Origin.HISTORY, context=of.context)).headline))
    said.append((said[0][0], explain_controller(Picture(origin=Origin.HISTORY, context=of_rows(history))).headline))
    assert said[0] == said[1] == said[2]
    assert "the znode is persistent: no broker can be elected" in said[0][1]
