"""Departures that the controller never read, and superfluous writes. Both are withdrawn or given up in time.

The histories in `never_missed.txt` must leave exactly what they left before, and the tests below them look deeper.
`REWRITE=1 pytest tests/controller/test_never_missed.py` writes what is left now.
"""

from __future__ import annotations

from pathlib import Path

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.metadata_rows import PartitionRow
from tests.controller.trace_language import obey, partition_line, run_story
from tests.controller.znode_history import (
    ZnodeHistory,
    assert_each_effect_ends_once,
    broker_znode,
    controller_znode,
    on,
    state_znode,
    topic_znode,
)
from tests.kept_texts import assert_as_before

PAGE = Path(__file__).with_name("never_missed.txt")


def provisional(history: ZnodeHistory) -> set[str]:
    """Return the expected effects that have not ended."""
    rows = [row for row in history.effects if isinstance(row, (Transition, Request))]
    ended = {row.effect for row in rows if row.status is not Status.PROVISIONAL}
    return {row.effect for row in rows} - ended


def what_is_left(history: ZnodeHistory, _: int) -> list[str]:
    """Return the partitions, the effects that have not ended, and the open alerts."""
    assert_each_effect_ends_once(history)
    rows = {(row.topic, row.partition): row for row in history.effects if isinstance(row, PartitionRow)}
    lines = [partition_line(rows[key]) for key in sorted(rows) if not rows[key].removed]
    effects, alerts = provisional(history), history.open_alerts()
    lines += [f"effects without an end: {len(effects)}"] * bool(effects)
    return [*lines, *[f"open: {', '.join(sorted(alerts))}"] * bool(alerts)]


def told(story: str) -> str:
    """Return the history as it goes now, alike with each of its releases."""
    title, releases, body = story.split("\n", 2)
    (again,) = {
        run_story(f"release {release}\n{body}", what_is_left).split("\n", 1)[1]
        for release in releases.removeprefix("releases ").split()
    }
    return f"{title}\n{releases}\n{again}"


def test_each_history_leaves_what_it_left_before():
    head, *stories = PAGE.read_text(encoding="utf-8").split("== ")
    assert_as_before("\n== ".join([head.rstrip("\n") + "\n", *map(told, stories)]), PAGE)


def assert_nothing_is_expected(history: ZnodeHistory) -> None:
    assert provisional(history) == set()
    assert history.gauges().pending_writes == 0
    assert not [key for key in history.open_alerts() if key.startswith(("ControllerOverdue", "Partitions", "Election"))]
    assert_each_effect_ends_once(history)


def test_a_partition_without_a_leader_keeps_its_election():
    topics = {"t": {0: ([1], -1, 1, [1]), 1: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(2, 8)).start(2, 3, controller=3, topics=topics)
    history.controller_dies(3)
    history.controller(2, 2)
    history.broker(1)
    obey(history, ["at-rest"])
    assert history.predicted("t", 0) is not None


def test_a_needless_reassignment_is_given_up_with_its_assignment():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.reassign(("t", 0, [1, 2]))
    obey(history, ["isr-notification", "at-rest"])
    assert_nothing_is_expected(history)
    assert history.context.topics["t"].partitions[0].pending_assignments == ()


def test_a_person_who_takes_a_new_partition_out_changes_no_memory():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([4],)}}
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, topics=topics)
    history.write("/brokers/topics/t", topic_znode({0: [1, 2]}), author=0x999, cxid=1)
    assert history.row("t", 1).state == "NewPartition"


def test_a_person_who_removes_the_entry_of_a_new_topic_stops_no_deletion():
    history = ZnodeHistory(release=(3, 4)).start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.topic("new", {0: [1, 2]})
    history.write("/admin/delete_topics/new", None)
    history.delete("/admin/delete_topics/new", author=0x999, cxid=1)
    assert history.context.topics["new"].queued_for_deletion


def test_a_complete_read_in_a_failover_poisons_no_controller():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([3], 3, 0, [3]))
    history.broker_leaves(3)
    history.delete("/controller")
    history.controller(2, 2)
    assert history.predicted("t", 0) == (-1, 1, (3,)), "its failover takes a replica out of an ISR"
    history.generation, history.seq = 2, -1
    history.start(1, 2, controller=2, epoch=2, topics=on([3], 3, 0, [3]))
    history.heartbeat()
    assert not history.context.header.is_poisoned
    assert not [key for key in history.open_alerts() if key.startswith("ControllerPoisoned")]


def test_a_shutdown_attempt_that_no_write_follows_was_not_made():
    topics = {"t": {0: ([1, 2], 1, 0, [1]), 1: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, controller=3, topics=topics)
    history.state("t", 1, 2, 1, [2])  # only the shutdown of broker 1, which cannot give up t-0, explains it
    assert history.context.header.shutdowns.under_way == (1,)
    history.state("t", 0, 1, 0, [1, 2])
    history.state("t", 1, 2, 1, [2, 1])
    history.heartbeat(6_000)
    assert history.gauges().pending_writes == 2, "it asks again"
    obey(history, ["at-rest"])
    assert_nothing_is_expected(history)
    assert history.context.header.shutdowns.under_way == ()


def test_a_broker_that_stays_in_its_isrs_did_not_shut_down():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, controller=3, topics=topics)
    history.state("t", 0, 2, 1, [2])
    assert history.context.header.shutdowns.under_way == (1,)
    assert history.predicted("t", 1) == (2, 1, (2,))
    obey(history, ["isr-notification", "at-rest"])
    assert provisional(history) == set()
    assert history.context.header.shutdowns.under_way == ()


def reassigned_by_znode(read: dict[str, object], isr: list[int], replicas: list[int]) -> ZnodeHistory:
    """Return a complete read of 2.0 with t-0 on its way to [3], with this assignment and ISR."""
    entry = {"topic": "t", "partition": 0, "replicas": [3]}
    history = ZnodeHistory(release=(2, 0))
    writes = {"/controller": controller_znode(1), "/controller_epoch": 1}
    writes |= {"/admin/reassign_partitions": {"version": 1, "partitions": [entry]}}
    writes |= {f"/brokers/ids/{broker}": broker_znode(broker) for broker in (1, 2, 3)}
    writes |= {"/brokers/topics/t": {"version": 1, "partitions": {"0": replicas}}}
    writes |= {"/brokers/topics/t/partitions/0/state": state_znode(2, 1, isr)} | read
    history.snapshot(*writes.items())
    return history


def test_a_complete_read_leaves_out_reassignments_that_the_controller_drops():
    done = reassigned_by_znode({}, [3], [3])
    assert done.predicted("t", 0) is None
    queued = reassigned_by_znode({"/admin/delete_topics/t": None}, [2], [3, 2])
    assert queued.row("t", 0).removing_replicas == ()
    of_another = {"version": 1, "partitions": [{"topic": "u", "partition": 0, "replicas": [3]}]}
    unknown = reassigned_by_znode({"/admin/reassign_partitions": of_another}, [2], [2])
    assert unknown.predicted("t", 0) is None
    nobody = reassigned_by_znode({"/controller": None}, [2], [3, 2])
    assert nobody.row("t", 0).removing_replicas == ()


def test_an_election_that_is_given_up_takes_no_led_partition_offline():
    """Broker 2 registers twice and broker 4 once before the controller reads /brokers/ids, and handles both at once."""
    topics = {"t": {0: ([2], 2, 0, [2]), 1: ([2, 1, 4], 2, 0, [2, 1, 4]), 2: ([4, 1], 4, 0, [4, 1])}}
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, 4, controller=3, topics=topics)
    for broker in (2, 2, 4):
        history.broker_bounces(broker)
    history.state("t", 1, 1, 1, [1])
    history.state("t", 2, 1, 1, [1])
    history.state("t", 0, -1, 1, [2])
    history.state("t", 0, 2, 2, [2])
    obey(history, ["at-rest"])
    assert history.row("t", 0).state == "OnlinePartition"
    assert history.gauges().offline_partitions == 0
    final = [row for row in history.effects if isinstance(row, Transition) and row.status is Status.FINAL]
    moves = [row.to_state for row in final if (row.subject, row.topic, row.partition) == ("partition", "t", 0)]
    assert moves[-1:] == ["OnlinePartition"]
    assert_each_effect_ends_once(history)
