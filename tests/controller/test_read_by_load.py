"""A broker that fails while a new controller loads. The order of writes shows whether the load had read it."""

from __future__ import annotations

import pytest

from controller.contract.effect_rows import Status
from tests.controller.znode_history import Topics, ZnodeHistory, controller_znode

CONTROLLER = 0x1002  # the session of broker 2

# Broker 3 leads t-0 and follows in t-1; no replica of t-2 is on it.
TOPICS = {"t": {0: ([3, 1, 2], 3, 0, [3, 1, 2]), 1: ([1, 3, 2], 1, 0, [1, 3, 2]), 2: ([2, 1], 2, 0, [2, 1])}}


# Broker 3 leads no partition and is in no ISR.
OUT_OF_SYNC = {"t": {0: ([1, 3, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}


def a_failure_while_it_loads(
    after_ms: int = 200, *, session: int = 0, release: tuple[int, int] = (3, 9), topics: Topics = TOPICS
) -> ZnodeHistory:
    """Let broker 2 take over in epoch 2 under `session`, and fail broker 3 this long after it."""
    history = ZnodeHistory(release=release).start(1, 2, 3, topics=topics)
    history.delete("/controller", author=session, cxid=1)
    history.write("/controller", controller_znode(2), author=session, cxid=2)
    history.write("/controller_epoch", b"2", same_zxid=True, author=session, cxid=2)
    history.now_ms += after_ms
    history.broker_leaves(3)
    return history


def assert_all_explained(history: ZnodeHistory) -> None:
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences, gauges.inferred_events) == (0, {}, {"read-by-load": 1})
    assert [history.row("t", number).leader for number in range(3)] == [1, 1, 2]


@pytest.mark.parametrize("first", [0, 1])
def test_removals_before_any_election_are_the_failovers(first: int):
    history = a_failure_while_it_loads()
    removals = {0: (-1, 1, [1, 2]), 1: (1, 1, [1, 2])}
    effects = history.state("t", first, *removals.pop(first))
    assert "withdrawn t-0 OfflinePartition -> OnlinePartition" in history.transitions(effects)
    for number, written in removals.items():
        effects = history.state("t", number, *written)
    assert history.moves(effects, Status.FINAL) == [
        f"t-{n}@3 ReplicaDeletionIneligible -> OfflineReplica" for n in (0, 1)
    ]
    assert history.predicted("t", 0) == (1, 2, (1, 2))
    history.state("t", 0, 1, 2, [1, 2])
    assert_all_explained(history)


def test_the_failover_then_sent_the_failed_broker_nothing():
    # The log names sessions, so the term's begin is uncertain until the controller's next write.
    history = a_failure_while_it_loads(session=CONTROLLER)
    assert "final" not in {line.partition(" ")[0] for line in history.requests(tuple(history.effects))}
    effects = history.state("t", 0, -1, 1, [1, 2], author=CONTROLLER, cxid=3)
    assert "withdrawn t-0@3 OnlineReplica -> OnlineReplica" in history.transitions(effects)
    requests = history.requests(effects)
    assert "withdrawn LeaderAndIsr to 3" in requests
    assert "final LeaderAndIsr to 1: t-0 leader=3 epoch=0 isr=[3, 1, 2]" in requests
    assert "final UpdateMetadata to 1,2: no partitions" in requests
    assert not [line for line in requests if line.startswith("final") and "3" in line.partition(":")[0]]


def test_an_election_first_is_of_a_controller_that_was_notified():
    history = a_failure_while_it_loads()
    history.state("t", 0, 1, 1, [1, 2])
    history.state("t", 1, 1, 1, [1, 2])
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences, gauges.inferred_events) == (0, {}, {})


@pytest.mark.parametrize(
    ("after_ms", "written"),
    [
        pytest.param(2_000, (-1, 1, [1, 2]), id="after the load"),
        pytest.param(200, (-1, 1, [2, 1]), id="in another order than the controller writes"),
        pytest.param(200, (-1, 1, [1]), id="with a live broker"),
        pytest.param(200, (-1, 3, [1, 2]), id="with a later leader epoch"),
    ],
)
def test_other_removals_are_not_the_failovers(after_ms: int, written: tuple[int, int, list[int]]):
    history = a_failure_while_it_loads(after_ms)
    history.state("t", 0, *written)
    assert "read-by-load" not in history.gauges().inferred_events


def moves_of_broker_3(history: ZnodeHistory) -> list[str]:
    """Let the controller take up a notification, and return the moves that its write makes certain."""
    history.now_ms += 100
    effects = history.delete("/isr_change_notification/isr_change_0000000000", author=CONTROLLER, cxid=3)
    return [move for move in history.moves(effects, Status.FINAL) if "@3" in move]


@pytest.mark.parametrize(
    ("release", "moves"),
    [((3, 9), ["t-0@3 ReplicaDeletionIneligible -> OfflineReplica"]), ((1, 1), [])],  # up to 2.3 no failover does that
)
def test_a_broker_that_left_before_a_load_reads_the_brokers_was_read_as_gone(release, moves):
    history = a_failure_while_it_loads(0, session=CONTROLLER, release=release, topics=OUT_OF_SYNC)
    assert "final" not in {line.partition(" ")[0] for line in history.requests(tuple(history.effects))}
    assert moves_of_broker_3(history) == moves
    assert history.gauges().inferred_events == {"read-by-load": 1}
    rows = [row for row in history.effects if getattr(row, "inferred_by", "")]
    shown_by = {"it left 10 ms after broker 2 was elected, and nothing was due"}
    assert {row.inferred_from for row in rows} == (shown_by if moves else set())


@pytest.mark.parametrize(
    ("after_ms", "session"),
    [
        pytest.param(10, CONTROLLER, id="after the load read the brokers"),
        pytest.param(0, 0, id="where a watch made the load certain"),
    ],
)
def test_a_broker_that_left_later_is_a_failure(after_ms: int, session: int):
    history = a_failure_while_it_loads(after_ms, session=session, topics=OUT_OF_SYNC)
    moves_of_broker_3(history)
    assert history.moves(tuple(history.effects), Status.FINAL)[-1] == "t-0@3 OnlineReplica -> OfflineReplica"
    assert history.gauges().inferred_events == {}


def test_a_failure_that_writes_is_left_to_its_writes():
    history = a_failure_while_it_loads(0, session=CONTROLLER)
    assert history.predicted("t", 0) == (1, 1, (1, 2))  # by a BrokerChange, until a write shows a failover's
    assert history.gauges().inferred_events == {}
