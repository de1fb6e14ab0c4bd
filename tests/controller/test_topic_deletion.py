"""Deletion in all its turns, with its obstacles, its resumption, and topics that grow, move or are unknown.

After Kafka's own TopicDeletionManagerTest and DeleteTopicTest, by meaning.
"""

import pytest

from controller.contract.effect_rows import Status, Transition
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


def test_a_deletion_goes_through_all_states_of_its_replicas():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    asked = history.delete_topic("t")
    assert history.moves(asked, Status.PROVISIONAL) == [
        "t-0 OnlinePartition -> OfflinePartition",
        "t-0 OfflinePartition -> NonExistentPartition",
        "t-0@1 OnlineReplica -> OfflineReplica",
        "t-0@2 OnlineReplica -> OfflineReplica",
        "t-0@1 OfflineReplica -> ReplicaDeletionStarted",
        "t-0@2 OfflineReplica -> ReplicaDeletionStarted",
    ]
    history.the_controller_writes_its_due()
    gone = history.topic_vanishes("t", 0)
    assert history.moves(gone, Status.FINAL) == [
        "t-0@1 ReplicaDeletionStarted -> ReplicaDeletionSuccessful",
        "t-0@2 ReplicaDeletionStarted -> ReplicaDeletionSuccessful",
        "t-0@1 ReplicaDeletionSuccessful -> NonExistentReplica",
        "t-0@2 ReplicaDeletionSuccessful -> NonExistentReplica",
        "topic t Existing -> NonExistent",
    ]


def test_up_to_2_0_the_partitions_are_retired_at_the_end():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, topics=TOPIC)
    asked = history.delete_topic("t")
    assert not [move for move in history.transitions(asked) if " t-0 " in move]
    history.the_controller_writes_its_due()
    gone = history.moves(history.topic_vanishes("t", 0), Status.FINAL)
    assert gone.index("t-0 OfflinePartition -> NonExistentPartition") > gone.index(
        "t-0@2 ReplicaDeletionStarted -> ReplicaDeletionSuccessful"
    )


def test_the_end_of_a_topic_proves_its_brokers_answers_while_other_writes_are_due():
    history = ZnodeHistory().start(1, 2, topics=TOPIC | {"u": {0: ([2, 1], 2, 0, [2, 1])}})
    history.delete_topic("u")  # the controller's due writes for it never come
    history.delete_topic("t")
    history.the_controller_writes_its_due("t")
    gone = history.topic_vanishes("t", 0)
    assert history.moves(gone, Status.WITHDRAWN) == []
    assert [move for move in history.moves(gone, Status.FINAL) if "@" in move] == [
        "t-0@1 ReplicaDeletionStarted -> ReplicaDeletionSuccessful",
        "t-0@2 ReplicaDeletionStarted -> ReplicaDeletionSuccessful",
        "t-0@1 ReplicaDeletionSuccessful -> NonExistentReplica",
        "t-0@2 ReplicaDeletionSuccessful -> NonExistentReplica",
    ]


@pytest.mark.parametrize("name", ["nobody-knows-me", "__consumer_offsets", "x" * 249])
def test_an_entry_for_an_unknown_topic_changes_nothing(name):
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    effects = history.delete_topic(name)
    effects += history.delete(f"/admin/delete_topics/{name}")
    assert (history.transitions(effects), history.gauges().topics_to_delete) == ([], 0)


def test_an_entry_for_a_topic_that_is_queued_already_changes_nothing():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.delete_topic("t")
    assert history.transitions(history.delete_topic("t")) == []
    assert history.gauges().pending_writes == 2


def test_with_deletion_disabled_the_entry_goes_and_the_topic_stays():
    settings = {"delete.topic.enable": False}
    history = ZnodeHistory(settings=settings).start(1, 2, topics=TOPIC)
    effects = history.delete_topic("t")
    assert history.transitions(effects) == []
    assert history.gauges().pending_writes == 0
    history.delete("/admin/delete_topics/t")
    gauges = history.gauges()
    assert (gauges.topics, gauges.topics_to_delete, gauges.divergences) == (1, 0, {})
    assert history.row("t", 0).state == "OnlinePartition"


def test_a_deletion_taken_back_by_hand_is_forgotten_by_the_next_controller_only():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.delete_topic("t")
    history.delete("/admin/delete_topics/t")
    gauges = history.gauges()
    assert (gauges.topics, gauges.topics_to_delete, gauges.divergences) == (1, 1, {"deletion_given_up": 1})
    history.delete("/controller")
    history.controller(2, 2)
    assert history.gauges().topics_to_delete == 0


def test_an_entry_that_is_made_again_is_known_to_the_next_controller():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.delete_topic("t")
    history.delete("/admin/delete_topics/t")
    history.delete_topic("t")
    history.delete("/controller")
    history.controller(2, 2)
    assert history.gauges().topics_to_delete == 1


def test_a_topic_without_partitions_vanishes_without_a_write():
    history = ZnodeHistory().start(1, 2)
    history.topic("t", {})
    assert history.gauges().topics == 1
    history.delete_topic("t")
    assert history.gauges().pending_writes == 0
    finish(history)


def test_a_topic_that_never_had_a_leader_vanishes_too():
    history = ZnodeHistory().start(1)
    history.topic("t", {0: [9]})
    history.delete_topic("t")
    assert deletion_states(history) == {9: "OnlineReplica"}  # from there it may not become ineligible
    history.heartbeat(60_000)
    assert deletion_states(history) == {9: "OnlineReplica"}
    history.broker(9)
    assert deletion_states(history) == {9: "ReplicaDeletionStarted"}
    history.delete("/brokers/topics/t")
    history.delete("/admin/delete_topics/t")
    assert history.gauges().topics == 0


@pytest.mark.parametrize(
    ("shows", "deleted"),
    [
        (lambda history: None, False),  # 2 and 3 are registered, and no znode shows an action by them
        (lambda history: history.state("u", 0, 2, 0, [2]), True),  # 2 leads, and changes an ISR
        (lambda history: history.state("u", 0, 2, 0, [2, 4, 3]), True),  # 3 gets into one
        (lambda history: history.topic_vanishes("v", 0), True),  # 3 has deleted a topic
    ],
    ids=["nothing", "leads", "joins", "deletes"],
)
def test_answers_are_expected_only_where_a_broker_of_the_topic_was_seen_at_work(shows, deleted):
    topics = {
        "t": {0: ([2, 3, 9], 2, 0, [2, 3])},
        "u": {0: ([2, 4, 3], 2, 0, [2, 4])},
        "v": {0: ([3], 3, 0, [3])},
    }
    history = ZnodeHistory().start(1, 2, 3, 4, topics=topics)
    history.delete_topic("v")
    history.the_controller_writes_its_due()
    shows(history)
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(60_000)
    left = "ReplicaDeletionSuccessful" if deleted else "ReplicaDeletionStarted"
    assert deletion_states(history) == {
        2: left,
        3: left,
        9: "OfflineReplica" if deleted else "ReplicaDeletionIneligible",
    }


def test_a_broker_that_registers_again_has_yet_to_be_seen_at_work():
    history = ZnodeHistory().start(1, 2, topics={"u": {0: ([2, 1], 2, 0, [2])}})
    history.state("u", 0, 2, 0, [2, 1])
    assert history.context.header.brokers[2].at_work
    history.write("/brokers/ids/2", broker_znode(2) | {"rack": "r1"})
    assert history.context.header.brokers[2].at_work
    history.broker_leaves(2)
    history.broker(2)
    assert not history.context.header.brokers[2].at_work


def test_a_write_for_the_dead_replica_shows_that_the_live_brokers_have_answered():
    history = ZnodeHistory().start(1, topics={"t": {0: ([1], 1, 0, [1]), 1: ([9], -1, 3, [9])}})
    history.delete_topic("t")
    history.state("t", 0, -1, 1, [1])
    effects = history.state("t", 1, -1, 4, [9])
    assert set(history.moves(effects, Status.FINAL)) == {
        "t-0@1 ReplicaDeletionStarted -> ReplicaDeletionSuccessful",
        "t-1@9 ReplicaDeletionIneligible -> OfflineReplica",
    }
    assert history.gauges().divergences == {}


def test_a_broker_that_dies_before_it_answered_holds_the_deletion():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(1_000)
    history.broker_leaves(2)
    history.heartbeat(20_000)
    assert deletion_states(history)[1] == "ReplicaDeletionStarted"  # had it answered, 2 would have left the ISR
    history.state("t", 0, -1, 3, [2])
    gauges = history.gauges()
    assert deletion_states(history)[1] == "ReplicaDeletionSuccessful"
    assert gauges.topics_ineligible_to_delete == 1
    history.broker(2)
    assert deletion_states(history)[2] == "ReplicaDeletionStarted"
    finish(history, 0)


@pytest.mark.parametrize(
    ("after_ms", "cause"),
    [
        (20, "TopicDeletionStopReplicaResponseReceived: the live brokers deleted their replicas of topic t"),
        (1_000, "BrokerChange: the deletion of topic t waits for a broker that left"),  # 1 had answered long before
    ],
)
def test_a_failure_right_after_the_request_precedes_the_answers(after_ms, cause):
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(after_ms)
    history.broker_leaves(2)
    history.heartbeat(20_000)
    effects = history.state("t", 0, -1, 3, [2])
    assert [row.cause for row in effects if isinstance(row, Transition) and row.broker == 2] == [cause]


def deletions_that_seem_answered(*, while_a_write_is_due: bool = False) -> ZnodeHistory:
    """Let broker 9 block the deletions of t and u. 1 and 2 seem to have answered when 5 registers, and 2 leaves."""
    topics = {name: {0: ([1, 2, 9], 1, 0, [1, 2])} for name in "tu"} | {"k": {0: ([3, 1], 3, 0, [3, 1])}}
    history = ZnodeHistory().start(1, 2, 3, topics=topics)
    for name in "tu":
        history.delete_topic(name)
        history.the_controller_writes_its_due(name)
    history.heartbeat(1_000)
    if while_a_write_is_due:
        history.broker_leaves(3)
    history.broker(5)
    assert {deletion_states(history, name)[2] for name in "tu"} == {"ReplicaDeletionSuccessful"}
    history.broker_leaves(2)
    return history


@pytest.mark.parametrize(
    ("written", "unanswered"),
    [("t", {"t", "u"}), ("u", {"u"})],  # requests are answered in their order
)
@pytest.mark.parametrize("is_due", [False, True])
def test_a_failed_broker_whose_replica_is_written_again_had_answered_nothing_since(written, unanswered, is_due):
    history = deletions_that_seem_answered(while_a_write_is_due=is_due)
    effects = history.state(written, 0, -1, 3, [2])
    rows = [row for row in effects if isinstance(row, Transition) and row.inferred_by == "deletion-unanswered"]
    assert {row.topic for row in rows if row.broker == 2} == unanswered
    assert {(row.from_state, row.to_state) for row in rows if row.broker == 2} >= {
        ("ReplicaDeletionStarted", "ReplicaDeletionIneligible"),
        ("ReplicaDeletionIneligible", "OfflineReplica"),
    }
    assert history.gauges().divergences == {}


def test_a_write_without_the_failed_broker_is_no_sign_of_its_silence():
    history = deletions_that_seem_answered()
    history.state("t", 0, -1, 3, [1])
    assert history.gauges().divergences.keys() == {"unexplained_write"}


def test_a_write_for_replicas_that_are_not_deleted_yet_is_no_sign_of_silence():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.delete_topic("t")
    effects = history.state("t", 0, 7, 1, [1, 2])
    assert "deletion-unanswered" not in {row.inferred_by for row in effects if isinstance(row, Transition)}


def test_a_broker_without_a_seen_answer_answers_after_another_has_come_back():
    history = ZnodeHistory().start(1, topics={"t": {0: ([1, 8, 9], 1, 0, [1]), 1: ([8], -1, 3, [8])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(1_000)
    history.broker(8)  # the deletion was not tried again before: 8 would have left the ISR by a write
    assert deletion_states(history) == {
        1: "ReplicaDeletionStarted",
        8: "OnlineReplica",
        9: "ReplicaDeletionIneligible",
    }
    effects = history.state("t", 1, -1, 4, [8])  # now 1 has answered, and 8 is asked as well
    assert history.moves(effects, Status.FINAL)[-5:] == [
        "t-0@1 ReplicaDeletionStarted -> ReplicaDeletionSuccessful",
        "t-0@9 ReplicaDeletionIneligible -> OfflineReplica",
        "t-0@9 OfflineReplica -> ReplicaDeletionIneligible",
        "t-0@8 OnlineReplica -> OfflineReplica",
        "t-0@8 OfflineReplica -> ReplicaDeletionStarted",
    ]
    assert history.gauges().divergences == {}


@pytest.mark.parametrize(
    ("author", "cxid", "answered"),
    [
        ("itself", 9, True),  # it closed its session
        ("itself", 0, False),  # it expired, perhaps after a long silence
        ("a hand", 9, True),  # somebody deleted its znode
        ("unknown", 0, False),  # a live watch cannot show it
    ],
)
def test_a_broker_that_was_there_until_its_znode_went_had_answered(author, cxid, answered):
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2, 9], 1, 0, [1, 2])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(1_000)
    authors = {"itself": history.session_of(2), "a hand": 0x999, "unknown": 0}
    history.delete("/brokers/ids/2", author=authors[author], cxid=cxid)
    history.the_controller_writes_its_due()
    left = "ReplicaDeletionSuccessful" if answered else "ReplicaDeletionIneligible"
    assert deletion_states(history)[2] == left


@pytest.mark.parametrize(("told_ms_before", "answered"), [(0, False), (30, True), (1_000, True)])
def test_a_broker_that_may_shut_down_when_it_is_asked_to_delete_does_not_answer(told_ms_before, answered):
    topics = {"t": {0: ([1, 2, 9], 1, 0, [1, 2])}, "u": {0: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory().start(1, 2, 3, topics=topics)
    history.now_ms += 10_000  # no broker is just starting
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.now_ms += told_ms_before
    history.state("u", 0, 1, 1, [1])  # 2 shuts down, and leads no partition any more
    history.now_ms += 300
    history.broker_closes(2)
    history.the_controller_writes_its_due()
    left = "ReplicaDeletionSuccessful" if answered else "OfflineReplica"  # and waits for it
    assert deletion_states(history)[2] == left


def test_a_broker_without_replicas_of_the_topic_resumes_nothing():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 9], 1, 0, [1])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    effects = history.broker(3)
    assert not [move for move in history.transitions(effects) if "t-0" in move]
    assert history.gauges().topics_ineligible_to_delete == 1


def test_a_failover_takes_up_a_deletion_where_it_was():
    history = ZnodeHistory().start(1, 2, 3, topics=TOPIC)
    history.delete_topic("t")
    history.state("t", 0, -1, 1, [2])
    history.delete("/controller")
    effects = history.controller(3, 2)
    assert history.predicted("t", 0) == (-1, 2, (2,))  # 1 has left already
    assert "t-0@1 OfflineReplica -> ReplicaDeletionStarted" in history.moves(effects, Status.PROVISIONAL)
    finish(history, 0)


def test_a_failover_with_a_dead_broker_holds_the_deletion_from_the_start():
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([2, 9], 2, 0, [2])}})
    history.delete("/controller")
    history.delete_topic("t")
    effects = history.controller(3, 2)
    assert not [row for row in history.requests(effects) if "delete" in row]
    gauges = history.gauges()
    assert (gauges.topics_to_delete, gauges.topics_ineligible_to_delete) == (1, 1)
    assert history.predicted("t", 0) is None


def test_a_request_that_a_lost_controller_got_is_found_by_the_next():
    history = ZnodeHistory().start(1, 2, 3, topics=TOPIC)
    history.delete("/controller")
    assert history.transitions(history.delete_topic("t")) == []
    history.controller(3, 2)
    assert history.predicted("t", 0) is not None
    finish(history, 0)


def test_a_deletion_is_seen_in_its_name_alone():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    effects = history.send(RecordKind.CREATED, path="/admin/delete_topics/t", zxid=history.zxid)
    assert "t-0@1 OfflineReplica -> ReplicaDeletionStarted" in history.moves(effects, Status.PROVISIONAL)
    assert history.transitions(history.send(RecordKind.CREATED, path="/controller", zxid=history.zxid)) == []


@pytest.mark.parametrize("release", [(1, 1), (2, 0), (3, 9)])
@pytest.mark.parametrize("is_restored", [True, False])
def test_partitions_added_meanwhile_are_the_next_controllers(release, is_restored):
    history = ZnodeHistory(release=release).start(1, 2, topics={"t": {0: ([1, 9], 1, 0, [1])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    effects = history.topic("t", {0: [1, 9], 1: [2]})
    if is_restored:
        effects += history.topic("t", {0: [1, 9]})
    assert history.transitions(effects) == []
    history.delete("/controller")
    history.controller(2, 2)
    effects = history.heartbeat(5_000)
    moves = history.transitions(tuple(history.effects))
    assert ("final t-1@2 OnlineReplica -> OnlineReplica" in moves) == (not is_restored)


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


def test_a_reassignment_of_a_topic_that_is_being_deleted_is_dropped():
    history = ZnodeHistory().start(1, 2, 3, topics=TOPIC)
    history.delete_topic("t")
    due = history.gauges().pending_writes
    history.reassign(("t", 0, [3]))
    assert history.gauges().pending_writes == due
    assert history.row("t", 0).adding_replicas == ()


def test_two_topics_are_deleted_beside_each_other():
    topics = TOPIC | {"u": {0: ([2], 2, 0, [2])}}
    history = ZnodeHistory().start(1, 2, topics=topics)
    history.delete_topic("t")
    history.delete_topic("u")
    history.the_controller_writes_its_due("u")
    history.topic_vanishes("u", 0)
    assert history.gauges().topics_to_delete == 1
    finish(history, 0)


def test_the_topics_own_settings_outlive_nothing_but_themselves():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.write("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "2"}})
    history.delete_topic("t")
    finish(history, 0)
    assert history.context.topics.get("t").exists is False
    history.delete("/config/topics/t")
    assert history.context.topics.get("t") is None


def test_a_topic_that_goes_while_a_broker_holds_it_counts_ineligible_until_failover():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 9], 1, 0, [1])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.topic_vanishes("t", 0)
    history.heartbeat(60_000)
    gauges = history.gauges()
    assert (gauges.topics, gauges.topics_to_delete, gauges.topics_ineligible_to_delete) == (0, 0, 1)
    history.delete("/controller")
    history.controller(2, 2)
    assert history.gauges().topics_ineligible_to_delete == 0


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
