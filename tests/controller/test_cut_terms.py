"""Terms that end before their controller has written, with the effects it had all the same and their certainty."""

from __future__ import annotations

import pytest

from controller.contract.effect_rows import Status, Transition
from controller.contract.records import RecordKind
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.rules import timing
from tests.controller.znode_history import ZnodeHistory

SCRIPT = 0x99  # the session of the tool that deletes /controller
SESSION_TIMEOUT_MS = 18_000  # zookeeper.session.timeout.ms of 3.9

# The leader of t-1 is dead, so a new controller has a state to write.
TOPIC = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([3, 2], 3, 0, [3, 2])}}

LOADS = [f"{replica} OnlineReplica -> OnlineReplica" for replica in ("t-0@1", "t-0@2", "t-1@2")]


def a_controller_that_loads(release: tuple[int, int] = (3, 9)) -> ZnodeHistory:
    """Let broker 2 take over in epoch 2, with the partition of a dead broker to take care of."""
    history = ZnodeHistory(release=release).start(1, 2, 4, topics=TOPIC)
    history.delete("/controller", author=SCRIPT, cxid=1)
    history.controller(2, 2)
    return history


def moves(history: ZnodeHistory, epoch: int) -> list[str]:
    """Return the final moves of the controller with this epoch."""
    final = [
        row
        for row in history.effects
        if isinstance(row, Transition) and row.subject != "controller" and row.controller_epoch == epoch
    ]
    return history.moves(tuple(final), Status.FINAL)


def a_controller_that_lost_its_term_while_it_loads() -> ZnodeHistory:
    """Let broker 4 take over from that controller in epoch 3."""
    history = a_controller_that_loads()
    history.delete("/controller", author=SCRIPT, cxid=2)
    history.controller(4, 3)
    return history


def test_a_controller_deposed_while_it_loads_has_moved_every_replica_if_it_lives_on():
    history = a_controller_that_lost_its_term_while_it_loads()
    history.heartbeat(SESSION_TIMEOUT_MS)
    assert moves(history, 2) == []
    history.heartbeat(1_000)
    assert moves(history, 2) == LOADS
    rows = [row for row in history.effects if isinstance(row, Transition) and row.inferred_by]
    assert {(row.inferred_by, row.inferred_from.partition(" ")[0], row.controller_epoch) for row in rows} == {
        ("ran-to-fenced-write", "/brokers/ids/2", 2)
    }
    assert history.gauges().inferred_events["ran-to-fenced-write"] == 1


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(
            lambda history: history.delete("/brokers/ids/2", author=history.session_of(2), cxid=0), id="it expires"
        ),
        pytest.param(lambda history: history.broker_leaves(2), id="nobody knows how it ends"),
        pytest.param(lambda history: history.broker_bounces(2), id="its broker is back at once"),
        pytest.param(lambda history: history.send(RecordKind.SNAPSHOT_BEGIN), id="a complete read begins"),
    ],
)
def test_a_process_whose_session_ends_within_its_timeout_may_have_been_killed(ends):
    history = a_controller_that_lost_its_term_while_it_loads()
    history.heartbeat(4_000)
    effects = ends(history)
    withdrawn = tuple(row for row in effects if isinstance(row, Transition) and row.controller_epoch == 2)
    assert history.moves(withdrawn, Status.WITHDRAWN) == LOADS
    assert any(request.startswith("withdrawn LeaderAndIsr to 2") for request in history.requests(effects))
    history.heartbeat(SESSION_TIMEOUT_MS)
    assert moves(history, 2) == []
    assert "ran-to-fenced-write" not in history.context.header.tally.happened.inferred_events


def test_what_is_held_back_outlasts_a_restart():
    history = a_controller_that_lost_its_term_while_it_loads()
    chunks = changed_chunks(new_context("c", chunk_count=8), history.context)
    history.context = restore_context("c", encode_header(history.context), chunks.get)
    history.heartbeat(SESSION_TIMEOUT_MS + 1_000)
    assert moves(history, 2) == LOADS


def test_a_controller_that_is_cut_among_its_removals_is_poisoned_by_them():
    history = a_controller_that_loads()
    history.delete("/controller")
    history.controller(4, 3)
    assert history.context.header.former.poisoned == {2: history.context.header.brokers[2].epoch}


# --- times


def test_a_cluster_that_loads_slowly_is_given_the_time_that_it_took():
    history = a_controller_that_loads()
    assert history.context.header.loaded_within_ms == timing.CONTEXT_LOADED.of(2)
    history.heartbeat(7_000)
    history.the_controller_writes_its_due()
    took_ms = history.context.header.former.slowest_load_ms
    assert took_ms > 7_000
    assert history.context.header.loaded_within_ms == took_ms
    history.controller_dies(1)
    history.delete("/controller")
    history.controller(4, 3)  # the leader of t-0 is dead by now
    history.heartbeat(5_000)
    history.delete("/controller")
    assert moves(history, 3) == []
    history.controller(2, 4)
    history.heartbeat(SESSION_TIMEOUT_MS + 1_000)
    assert moves(history, 3) == ["t-0@2 OnlineReplica -> OnlineReplica", "t-1@2 OnlineReplica -> OnlineReplica"]


def test_every_time_says_what_it_was_measured_from_and_how_it_grows():
    times = {name: value for name, value in vars(timing).items() if isinstance(value, timing.Time)}
    assert len(times) > 15
    for name, time in times.items():
        assert len(time.measured) > 30, name
        assert time.of(0) == time.ms, name
        assert time.of(200_000) == time.ms + 200 * time.us_per_partition, name


def test_the_largest_clusters_measured_load_within_the_estimate():
    assert timing.CONTEXT_LOADED.of(100) >= 680
    assert timing.CONTEXT_LOADED.of(10_000) >= 3_700
    assert timing.CONTEXT_LOADED.of(200_000) >= 53_000
