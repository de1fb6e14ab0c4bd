"""The core's reading of edits of /controller, compared with the reaction of brokers of several releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.rules.releases import read_release
from tests.controller.znode_history import ZnodeHistory, controller_znode

# What a broker did at each edit: whether it counted itself as active, and whether it wrote a new topic's state.
SEEN = [json.loads(line) for line in (Path(__file__).parent / "controller-edits.jsonl").read_text().splitlines()]

OF_ANOTHER_SESSION = 0xF00


def replaced(value: object = None, owner: int = OF_ANOTHER_SESSION) -> Callable[[ZnodeHistory], None]:
    """Return one transaction in a watch's form, a deletion and a creation."""

    def edit(history: ZnodeHistory) -> None:
        history.delete("/controller")
        history.write("/controller", value or controller_znode(1), same_zxid=True, owner=owner)

    return edit


def replaced_at_once(value: object = None, owner: int = OF_ANOTHER_SESSION) -> Callable[[ZnodeHistory], None]:
    """Return the same in the form of ZooKeeper's log, a znode with another czxid."""

    def edit(history: ZnodeHistory) -> None:
        del history.znodes["/controller"]
        history.write("/controller", value or controller_znode(1), owner=owner)

    return edit


def twice(edit: Callable[[ZnodeHistory], None]) -> Callable[[ZnodeHistory], object]:
    return lambda history: [edit(history), edit(history)]


LATER = {**controller_znode(1), "timestamp": "99"}
NOBODYS = 0

# Each edit, in each form in which it can arrive.
MAKE: dict[str, tuple[Callable[[ZnodeHistory], object], ...]] = {
    "nothing": (lambda _: None,),
    "the same value": (lambda history: history.write("/controller", controller_znode(1)),),
    "the same id": (lambda history: history.write("/controller", LATER),),
    "another id": (lambda history: history.write("/controller", controller_znode(7)),),
    "another id, then its own": (
        lambda history: [history.write("/controller", controller_znode(id_)) for id_ in (7, 1)],
    ),
    "no JSON": (lambda history: history.write("/controller", b"garbage"),),
    "JSON without an id": (lambda history: history.write("/controller", b'{"version":1}'),),
    "empty": (lambda history: history.write("/controller", b""),),
    "deleted and created by another session in one transaction": (replaced(), replaced_at_once()),
    "the same, with another time in it": (replaced(LATER), replaced_at_once(LATER)),
    "the same, with another id": (replaced(controller_znode(7)), replaced_at_once(controller_znode(7))),
    "the same, twice": (twice(replaced()), twice(replaced_at_once())),
    "the same, nobody's": (replaced(owner=NOBODYS), replaced_at_once(owner=NOBODYS)),
}


def test_each_edit_was_recorded_of_each_release():
    releases = {seen["kafka"] for seen in SEEN}
    assert len(releases) >= 5
    assert {(seen["kafka"], seen["edit"]) for seen in SEEN} == {(kafka, edit) for kafka in releases for edit in MAKE}


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: f"{seen['kafka']} {seen['edit']}")
def test_the_controller_acts_where_the_broker_did(seen, way):
    ways = MAKE[seen["edit"]]
    history = ZnodeHistory(release=read_release(seen["kafka"])).start(1, topics={"t": {0: ([1], 1, 0, [1])}})
    ways[min(way, len(ways) - 1)](history)
    history.heartbeat(6_000)
    history.topic("made-by-hand", {0: [1]})
    acts = history.predicted("made-by-hand", 0) is not None
    assert acts is seen["acts"]
    # A broker that counts itself as active without acting is the ghost of the alert.
    ghost = seen["counts_itself"] and not seen["acts"]
    assert not ghost or "GhostController" in history.open_alerts()
    assert not acts or not {"GhostController", "NoController"} & set(history.open_alerts())
