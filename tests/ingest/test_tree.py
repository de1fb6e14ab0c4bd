"""The tree that readers know, of which only differences are published again."""

from controller.contract.records import RecordKind
from ingest.observed.observations import Observation, Value
from ingest.observed.tree import Tree, complete


def value(czxid: int, mzxid: int, version: int) -> Value:
    return Value(b"", czxid, mzxid, version, 0)


def test_a_complete_read_that_is_the_same_differs_in_nothing() -> None:
    values = {"/controller": value(1, 1, 0), "/brokers/ids/1": value(2, 3, 1)}
    tree = Tree()
    tree.apply(complete(values))
    assert tree.differences(values) == []


STATE = "/brokers/topics/t/partitions/0/state"


def differences(before: dict[str, Value], after: dict[str, Value]) -> list[tuple[str, str]]:
    tree = Tree()
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
    tree = Tree()
    tree.apply([Observation(kind=RecordKind.CREATED, path="/controller", zxid=5)])
    values = {"/controller": value(5, 5, 0)}
    assert [observation.kind for observation in tree.differences(values)] == [RecordKind.NODE]
    tree.apply(tree.differences(values))
    assert tree.differences(values) == []
    assert [observation.kind for observation in tree.differences({})] == [RecordKind.DELETED]
