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
