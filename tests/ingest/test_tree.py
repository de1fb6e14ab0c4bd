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


def test_differences_are_causes_first_and_marked() -> None:
    tree = Tree()
    state = "/brokers/topics/t/partitions/0/state"
    tree.apply(complete({"/controller": value(1, 1, 0), state: value(2, 2, 0), "/brokers/topics/u": value(3, 3, 0)}))
    found = tree.differences(
        {state: value(2, 9, 1), "/brokers/topics/t": value(8, 8, 0), "/brokers/ids/1": value(7, 7, 0)}
    )
    assert [(observation.kind.value, observation.path) for observation in found] == [
        ("deleted", "/controller"),
        ("node", "/brokers/ids/1"),
        ("deleted", "/brokers/topics/u"),
        ("node", "/brokers/topics/t"),
        ("node", state),
    ]
    assert all(observation.resync for observation in found)


def test_a_znode_whose_value_was_never_read_differs_until_it_is() -> None:
    tree = Tree()
    tree.apply([Observation(kind=RecordKind.CREATED, path="/controller", zxid=5)])
    values = {"/controller": value(5, 5, 0)}
    assert [observation.kind for observation in tree.differences(values)] == [RecordKind.NODE]
    tree.apply(tree.differences(values))
    assert tree.differences(values) == []
    assert [observation.kind for observation in tree.differences({})] == [RecordKind.DELETED]
