"""Deletion in all its turns, with its obstacles, its resumption, and topics that grow, move or are unknown.

After Kafka's own TopicDeletionManagerTest and DeleteTopicTest, by meaning.
"""

from controller.contract.effect_rows import Status
from controller.contract.metadata_rows import PartitionRow
from controller.contract.records import RecordKind
from tests.controller.znode_history import ZnodeHistory, broker_znode

TOPIC = {"t": {0: ([1, 2], 1, 0, [1, 2])}}


def deletion_states(history: ZnodeHistory, topic: str = "t") -> dict[int, str]:
    known = history.context.topics.get(topic)
    return {broker: state.word for broker, state in sorted(known.partitions[0].all_replica_states.items())}


def finish(history: ZnodeHistory, *partitions: int) -> None:
    """Let all brokers answer, and the controller remove the topic."""
    history.the_controller_writes_its_due()
    history.topic_vanishes("t", *partitions)
    gauges = history.gauges()
    assert (gauges.topics, gauges.partitions, gauges.topics_to_delete, gauges.replicas_to_delete) == (0, 0, 0, 0)
    assert (gauges.pending_writes, gauges.divergences) == (0, {})


def test_a_broker_that_registers_again_has_yet_to_be_seen_at_work():
    history = ZnodeHistory().start(1, 2, topics={"u": {0: ([2, 1], 2, 0, [2])}})
    history.state("u", 0, 2, 0, [2, 1])
    assert history.context.header.brokers[2].at_work
    history.write("/brokers/ids/2", broker_znode(2) | {"rack": "r1"})
    assert history.context.header.brokers[2].at_work
    history.broker_leaves(2)
    history.broker(2)
    assert not history.context.header.brokers[2].at_work


def test_a_deletion_is_seen_in_its_name_alone():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    effects = history.send(RecordKind.CREATED, path="/admin/delete_topics/t", zxid=history.zxid)
    assert "t-0@1 OfflineReplica -> ReplicaDeletionStarted" in history.moves(effects, Status.PROVISIONAL)
    assert history.transitions(history.send(RecordKind.CREATED, path="/controller", zxid=history.zxid)) == []


def test_a_snapshot_finds_a_deletion_in_the_middle():
    history = ZnodeHistory()
    history.start(1, 2, topics={"kept": {0: ([1], 1, 0, [1])}})
    history.generation, history.seq = 2, -1
    history.znodes.clear()
    history.snapshot(
        *((f"/brokers/ids/{broker}", {"version": 1, "host": "h", "port": 1, "jmx_port": -1}) for broker in (1, 2)),
        ("/controller", {"version": 2, "brokerid": 1, "timestamp": "1"}),
        ("/controller_epoch", b"1"),
        ("/brokers/topics/t", {"version": 1, "partitions": {"0": [1, 9]}}),
        ("/brokers/topics/t/partitions/0/state", {"leader": -1, "leader_epoch": 3, "controller_epoch": 1, "isr": [1]}),
        ("/admin/delete_topics/t", None),
        ("/admin/delete_topics/unknown", None),
    )
    assert deletion_states(history) == {1: "ReplicaDeletionStarted", 9: "ReplicaDeletionIneligible"}
    gauges = history.gauges()
    assert (gauges.topics, gauges.topics_to_delete, gauges.topics_ineligible_to_delete) == (1, 1, 1)
    assert history.row("t", 0).problem is None
    history.broker(9)
    finish(history, 0)


def test_the_topics_own_settings_outlive_nothing_but_themselves():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.write("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "2"}})
    history.delete_topic("t")
    finish(history, 0)
    assert history.context.topics.get("t").exists is False
    history.delete("/config/topics/t")
    assert history.context.topics.get("t") is None


def test_the_rows_of_a_topic_show_its_deletion_from_the_request_to_the_end():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}, "u": {0: ([1, 2], 1, 0, [1, 2])}})

    def deleting() -> list[tuple[str, bool]]:
        rows = [row for row in history.effects if isinstance(row, PartitionRow)]
        return list(dict.fromkeys((row.topic, row.deleting) for row in rows))

    assert deleting() == [("t", False), ("u", False)]
    history.delete_topic("t")
    assert deleting() == [("t", False), ("u", False), ("t", True)]
    last = [row for row in history.effects if isinstance(row, PartitionRow) and row.topic == "t"][-1]
    assert (last.deleting, last.problem) == (True, None)
