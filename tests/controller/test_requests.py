"""Which requests the controller must send where nothing but metadata changes, and how sure they are."""

from controller.outputs import Request, Row, Status
from tests.controller.znode_history import ZnodeHistory


def metadata(effects: tuple[Row, ...]) -> list[tuple[tuple[int, ...], tuple | None]]:
    rows = [row for row in effects if isinstance(row, Request) and row.api == "UpdateMetadata"]
    return [(row.brokers, row.partitions) for row in rows if row.status is not Status.WITHDRAWN]


def two_partitions() -> ZnodeHistory:
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
    return ZnodeHistory().start(1, 2, 3, topics=topics)


def test_the_death_of_a_broker_without_replicas_is_told_to_the_others():
    assert metadata(two_partitions().broker_leaves(3)) == [((1, 2), ())]


def test_an_isr_change_is_told_to_all():
    assert metadata(two_partitions().state("t", 0, 1, 0, [1])) == [((1, 2, 3), (("t", 0),))]


def test_the_start_of_a_deletion_is_told_to_all_so_that_they_stop_serving():
    effects = two_partitions().delete_topic("t")
    assert ((1, 2, 3), (("t", 0), ("t", 1))) in metadata(effects)


def test_a_new_broker_is_told_of_all_and_the_others_of_the_broker():
    assert metadata(two_partitions().broker(4))[:2] == [((1, 2, 3), ()), ((4,), None)]


def test_metadata_that_belongs_to_a_write_is_as_sure_as_the_write():
    history = two_partitions()
    rows = [row for row in history.broker_leaves(2) if isinstance(row, Request)]
    assert {row.status for row in rows} == {Status.PROVISIONAL}


def test_of_an_event_that_never_was_nothing_stays_final_but_what_zookeeper_showed():
    history = two_partitions()
    effects = history.broker_leaves(2)
    undone = {row.effect.rpartition("-")[0] for row in effects if isinstance(row, Request)}
    effects += history.delete("/controller")  # before it wrote anything
    final = [row for row in effects if isinstance(row, Request) and row.status is Status.FINAL]
    assert [row for row in final if row.effect.rpartition("-")[0] in undone] == []
