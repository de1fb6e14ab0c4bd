"""Observed changes: the inbox, the order rules on windows as servers send them, and the tree that readers know."""

from __future__ import annotations

import pytest

from controller.contract.ids import UNKNOWN_ZXID
from controller.contract.records import RecordKind
from ingest.observed import inbox as inbox_module
from ingest.observed.inbox import Inbox
from ingest.observed.observations import Known, Observation, Value, ZnodeEvent, ZnodeEventKind, observe_window
from ingest.observed.tree import PublishedTree, complete

CREATED, DELETED, CHANGED = ZnodeEventKind.CREATED, ZnodeEventKind.DELETED, ZnodeEventKind.CHANGED
STATE = "/brokers/topics/t/partitions/0/state"
TOPIC = "/brokers/topics/t"
DELETION = "/admin/delete_topics/t"


def value(czxid: int, mzxid: int, version: int = 0) -> Value:
    return Value(b"x", czxid, mzxid, version, 0)


def told(observations: list[Observation]) -> list[tuple[str, str, int]]:
    return [(observation.kind.value, observation.path, observation.zxid) for observation in observations]


def test_a_znode_that_came_and_went_is_forwarded_though_it_was_never_read() -> None:
    events = [ZnodeEvent(CREATED, DELETION, 5), ZnodeEvent(DELETED, DELETION, 6)]
    assert told(observe_window(events, {DELETION: None}, {})) == [("created", DELETION, 5), ("deleted", DELETION, 6)]


def test_each_life_of_a_znode_is_forwarded_and_the_last_has_its_value() -> None:
    events = [
        ZnodeEvent(DELETED, DELETION, 4),
        ZnodeEvent(CREATED, DELETION, 5),
        ZnodeEvent(DELETED, DELETION, 6),
        ZnodeEvent(CREATED, DELETION, 7),
    ]
    observations = observe_window(events, {DELETION: value(7, 7)}, {DELETION: Known(3, 3, 0)})
    assert told(observations) == [
        ("deleted", DELETION, 4),
        ("created", DELETION, 5),
        ("deleted", DELETION, 6),
        ("node", DELETION, 7),
    ]


def test_a_created_znode_that_may_not_be_read_is_forwarded_without_a_value() -> None:
    assert told(observe_window([ZnodeEvent(CREATED, DELETION, 5)], {}, {})) == [("created", DELETION, 5)]


def test_the_controller_goes_before_the_broker_of_the_same_change() -> None:
    known = {"/controller": Known(1, 1, 0), "/brokers/ids/1": Known(2, 2, 0)}
    values = {"/controller": None, "/brokers/ids/1": None, STATE: value(3, 8, 1)}
    for before, zxid in ((8, 9), (UNKNOWN_ZXID, UNKNOWN_ZXID)):
        events = [
            ZnodeEvent(CHANGED, STATE, before),
            ZnodeEvent(DELETED, "/brokers/ids/1", zxid),
            ZnodeEvent(DELETED, "/controller", zxid),
        ]
        paths = [observation.path for observation in observe_window(events, values, known)]
        # Writes from before the end of the session stay before it.
        assert paths == [STATE, "/controller", "/brokers/ids/1"]


def test_a_cause_stands_at_its_first_change_and_a_state_at_its_last() -> None:
    events = [
        ZnodeEvent(CHANGED, STATE, 3),
        ZnodeEvent(CHANGED, TOPIC, 4),
        ZnodeEvent(CHANGED, STATE, 5),
        ZnodeEvent(CHANGED, TOPIC, 6),
        ZnodeEvent(CREATED, "/brokers/ids/2", 7),
    ]
    values = {STATE: value(1, 5, 2), TOPIC: value(2, 6, 2), "/brokers/ids/2": value(7, 7)}
    known = {STATE: Known(1, 1, 0), TOPIC: Known(2, 2, 0)}
    assert told(observe_window(events, values, known)) == [
        ("node", TOPIC, 4),
        ("node", STATE, 5),
        ("node", "/brokers/ids/2", 7),
    ]


def test_without_zxids_changes_keep_their_events_order_and_values_bring_their_own() -> None:
    events = [ZnodeEvent(CHANGED, STATE), ZnodeEvent(CHANGED, TOPIC), ZnodeEvent(CREATED, "/brokers/ids/2")]
    values = {STATE: value(1, 5, 2), TOPIC: value(2, 6, 2), "/brokers/ids/2": value(7, 7)}
    assert told(observe_window(events, values, {STATE: Known(1, 1, 0), TOPIC: Known(2, 2, 0)})) == [
        ("node", STATE, 5),
        ("node", TOPIC, 6),
        ("node", "/brokers/ids/2", 7),
    ]


def test_without_zxids_only_ends_that_follow_each_other_are_one_closing_session() -> None:
    known = {"/controller": Known(1, 1, 0), "/brokers/ids/1": Known(2, 2, 0), STATE: Known(3, 3, 0)}
    values = {"/controller": None, "/brokers/ids/1": None, STATE: value(3, 8, 1)}
    events = [ZnodeEvent(DELETED, "/brokers/ids/1"), ZnodeEvent(CHANGED, STATE), ZnodeEvent(DELETED, "/controller")]
    paths = [observation.path for observation in observe_window(events, values, known)]
    assert paths == ["/brokers/ids/1", STATE, "/controller"]


@pytest.mark.parametrize("names_zxids", [True, False])
def test_states_that_were_read_before_their_topic_was_removed_come_again_after_it(names_zxids: bool) -> None:
    changes = [(DELETED, STATE, 5), (DELETED, TOPIC, 6), (CREATED, TOPIC, 7), (CREATED, STATE, 8)]
    events = [ZnodeEvent(kind, path, zxid if names_zxids else UNKNOWN_ZXID) for kind, path, zxid in changes]
    known = {TOPIC: Known(2, 2, 0), STATE: Known(8, 8, 0)}  # a complete read met the former topic and the new state
    found = told(observe_window(events, {TOPIC: value(7, 7), STATE: value(8, 8)}, known))
    assert [(kind, path) for kind, path, _ in found] == [("deleted", TOPIC), ("node", TOPIC), ("node", STATE)]


def test_inside_one_change_ranks_order_its_znodes() -> None:
    events = [ZnodeEvent(CHANGED, STATE, 5), ZnodeEvent(CHANGED, TOPIC, 5), ZnodeEvent(CREATED, "/brokers/ids/2", 5)]
    values = {STATE: value(1, 5, 2), TOPIC: value(2, 5, 2), "/brokers/ids/2": value(5, 5)}
    observations = observe_window(events, values, {STATE: Known(1, 1, 0), TOPIC: Known(2, 2, 0)})
    assert [observation.path for observation in observations] == ["/brokers/ids/2", TOPIC, STATE]


@pytest.mark.parametrize("known", [Known(4, 9, 3), Known(4, 8, 2)])
def test_what_a_complete_read_has_forwarded_is_not_forwarded_again(known: Known) -> None:
    events = [ZnodeEvent(DELETED, TOPIC, 3), ZnodeEvent(CREATED, TOPIC, 4), ZnodeEvent(CHANGED, TOPIC, 8)]
    assert observe_window(events, {TOPIC: value(*known)}, {TOPIC: known}) == []


def test_an_old_deletion_without_a_zxid_is_recognised_by_the_znode_that_remains() -> None:
    events = [ZnodeEvent(DELETED, TOPIC), ZnodeEvent(CREATED, TOPIC)]
    assert observe_window(events, {TOPIC: value(4, 4)}, {TOPIC: Known(4, 4, 0)}) == []


def test_a_znode_deleted_and_made_again_in_one_transaction_keeps_that_order() -> None:
    events = [ZnodeEvent(DELETED, "/controller", 9), ZnodeEvent(CREATED, "/controller", 9)]
    observations = observe_window(events, {"/controller": value(9, 9)}, {"/controller": Known(1, 1, 0)})
    assert [observation.kind for observation in observations] == [RecordKind.DELETED, RecordKind.NODE]


def test_a_deletion_of_what_was_never_forwarded_is_not_forwarded() -> None:
    assert observe_window([ZnodeEvent(DELETED, TOPIC, 9)], {TOPIC: None}, {}) == []


def test_a_znode_that_a_watch_saw_go_and_the_read_found_again_comes_with_its_value() -> None:
    events = [ZnodeEvent(DELETED, "/controller"), ZnodeEvent(DELETED, "/brokers/ids/1")]
    values = {"/controller": value(9, 9), "/brokers/ids/1": None}
    known = {"/controller": Known(1, 1, 0), "/brokers/ids/1": Known(2, 2, 0)}
    assert told(observe_window(events, values, known)) == [
        ("deleted", "/controller", UNKNOWN_ZXID),
        ("node", "/controller", 9),
        ("deleted", "/brokers/ids/1", UNKNOWN_ZXID),
    ]


def test_a_complete_read_that_is_the_same_differs_in_nothing() -> None:
    values = {"/controller": value(1, 1, 0), "/brokers/ids/1": value(2, 3, 1)}
    tree = PublishedTree()
    tree.apply(complete(values))
    assert tree.differences(values) == []


def differences(before: dict[str, Value], after: dict[str, Value]) -> list[tuple[str, str]]:
    tree = PublishedTree()
    tree.apply(complete(before))
    found = tree.differences(after)
    assert all(observation.resync for observation in found)
    tree.apply(found)
    assert tree.differences(after) == []
    return [(observation.kind.value, observation.path) for observation in found]


def test_differences_come_in_the_order_of_zookeepers_changes() -> None:
    before = {"/controller": value(1, 1, 0), STATE: value(2, 2, 0), "/brokers/topics/u": value(3, 3, 0)}
    after = {STATE: value(2, 9, 1), "/brokers/topics/v": value(8, 8, 0), "/brokers/ids/1": value(7, 7, 0)}
    assert differences(before, after) == [
        ("deleted", "/controller"),
        ("deleted", "/brokers/topics/u"),
        ("node", "/brokers/ids/1"),
        ("node", "/brokers/topics/v"),
        ("node", STATE),
    ]


def test_a_registration_before_the_election_of_a_controller_comes_first() -> None:
    before = {"/controller": value(1, 1, 0), "/controller_epoch": value(1, 1, 0), "/brokers/ids/1": value(2, 2, 0)}
    after = {"/controller": value(8, 8, 0), "/controller_epoch": value(1, 8, 1), "/brokers/ids/1": value(7, 7, 0)}
    assert differences(before, after) == [
        ("deleted", "/controller"),
        ("deleted", "/brokers/ids/1"),
        ("node", "/brokers/ids/1"),
        ("node", "/controller"),
        ("node", "/controller_epoch"),
    ]


def test_a_znode_that_was_created_again_was_deleted_before_its_parent() -> None:
    entry = "/admin/delete_topics/t"
    before = {"/brokers/topics/t": value(1, 1, 0), STATE: value(2, 2, 0), entry: value(3, 3, 0)}
    after = {"/brokers/topics/t": value(7, 7, 0), STATE: value(8, 8, 0)}
    assert differences(before, after) == [
        ("deleted", STATE),
        ("deleted", "/brokers/topics/t"),
        ("node", "/brokers/topics/t"),
        ("node", STATE),
        ("deleted", entry),
    ]


def test_a_topic_comes_before_the_states_that_it_may_have_caused() -> None:
    before = {"/brokers/topics/t": value(1, 1, 0), STATE: value(2, 2, 0)}
    after = {"/brokers/topics/t": value(1, 9, 3), STATE: value(2, 7, 2), "/brokers/ids/1": value(5, 5, 0)}
    assert differences(before, after) == [("node", "/brokers/ids/1"), ("node", "/brokers/topics/t"), ("node", STATE)]


def test_a_request_is_removed_before_the_next_one() -> None:
    reassign = "/admin/reassign_partitions"
    before = {"/brokers/topics/t": value(1, 1, 0), reassign: value(3, 3, 0)}
    after = {"/brokers/topics/t": value(1, 5, 1), reassign: value(6, 6, 0), "/brokers/topics/u": value(7, 7, 0)}
    assert differences(before, after) == [
        ("node", "/brokers/topics/t"),
        ("deleted", reassign),
        ("node", reassign),
        ("node", "/brokers/topics/u"),
    ]


def test_a_znode_whose_value_was_never_read_differs_until_it_is() -> None:
    tree = PublishedTree()
    tree.apply([Observation(kind=RecordKind.CREATED, path="/controller", zxid=5)])
    values = {"/controller": value(5, 5, 0)}
    assert [observation.kind for observation in tree.differences(values)] == [RecordKind.NODE]
    tree.apply(tree.differences(values))
    assert tree.differences(values) == []
    assert [observation.kind for observation in tree.differences({})] == [RecordKind.DELETED]


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Inbox:
    monkeypatch.setattr(inbox_module, "MAX_WAITING_EVENTS", 10)
    return Inbox()


def test_what_came_and_went_is_kept_when_the_rest_is_dropped(inbox: Inbox) -> None:
    came, went = ZnodeEvent(ZnodeEventKind.CREATED, DELETION), ZnodeEvent(ZnodeEventKind.DELETED, DELETION)
    inbox.put_event(came)
    for _ in range(9):
        inbox.put_event(ZnodeEvent(ZnodeEventKind.CHANGED, STATE))
    assert inbox.take_dropped() == 0
    inbox.put_event(went)
    assert inbox.take_dropped() == 9
    assert inbox.take_dropped() == 0
    assert inbox.take_events() == [came, went]
    assert inbox.position == 11


def test_of_too_many_that_should_be_kept_the_newest_are(inbox: Inbox) -> None:
    events = [ZnodeEvent(ZnodeEventKind.CREATED, f"{DELETION}{number}") for number in range(11)]
    for event in events:
        inbox.put_event(event)
    assert inbox.take_dropped() == 5
    assert inbox.take_events() == events[5:]
