"""Index of partitions by broker, identical after every step and when it is built at once."""

from __future__ import annotations

import msgspec
import pytest

from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.step import step
from tests.controller.znode_history import (
    ZnodeHistory,
    assert_the_issues_are_as_if_made_anew,
    assert_the_replica_index_is_as_if_made_anew,
    controller_znode,
    on,
)


def test_a_replica_index_knows_hosts_and_what_is_not_settled():
    history = ZnodeHistory().start(
        1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], -1, 3, [9])}, "u": {0: ([2, 3], 2, 0, [2, 3])}}
    )
    replica_index = BrokerReplicaIndex(history.context.topics)
    assert {host: dict(replica_index.hosted_by(host)) for host in replica_index.hosts} == {
        1: {"t": (0, 1)},
        2: {"t": (0, 1), "u": (0,)},
        3: {"u": (0,)},
    }
    assert replica_index.unsettled == {"t": {1}}
    assert dict(replica_index.hosted_by(7)) == {}


def test_hosts_that_host_nothing_any_more_are_forgotten():
    history = ZnodeHistory().start(1, 2, topics=on([2, 1], 2, 0, [2, 1]))
    history.reassign(("t", 0, [1]))
    history.the_controller_writes_its_due("t")
    history.topic("t", {0: [1]})
    history.state("t", 0, 1, 3, [1])
    assert list(history.context.replica_index.hosts) == [1]
    assert_the_replica_index_is_as_if_made_anew(history.context)
    assert_the_issues_are_as_if_made_anew(history.context)
    history.topic_vanishes("t", 0)
    assert list(history.context.replica_index.hosts) == []


def test_a_context_from_which_another_one_went_on_goes_on_as_if_it_had_not():
    history = ZnodeHistory().start(1, 2, 3, topics=on([2, 1], 2, 0, [2, 1]))
    earlier = history.context
    history.topic("more", {0: [2, 3]})
    history.broker_leaves(2)
    death = msgspec.structs.replace(history.records[-1], seq=earlier.header.position.seq + 1)
    first, second = step(earlier, death), step(earlier, death)
    assert first.effects == second.effects
    assert {row.topic for row in first.effects if hasattr(row, "topic")} >= {"t"}
    assert "more" not in {row.topic for row in first.effects if hasattr(row, "topic")}
    assert_the_replica_index_is_as_if_made_anew(first.context)
    assert_the_issues_are_as_if_made_anew(first.context)
    assert_the_replica_index_is_as_if_made_anew(second.context)
    assert_the_issues_are_as_if_made_anew(second.context)


@pytest.mark.parametrize("release", [(1, 1), (2, 3), (2, 8), (3, 9)])
def test_a_restart_between_the_two_writes_of_an_election_changes_no_later_row(release):
    """The failover drops a reassignment and takes it up again. The index it builds in between lacks the replica."""
    kept, restarted = _election_during_a_reassignment(release), _election_during_a_reassignment(release)
    restarted.restart()
    for history in (kept, restarted):
        history.write("/controller_epoch", b"2", same_zxid=True)
        history.broker(3)
        history.the_controller_writes_its_due()
        history.broker_leaves(3)
    assert kept.effects == restarted.effects
    assert_the_replica_index_is_as_if_made_anew(restarted.context)


def _election_during_a_reassignment(release: tuple[int, int]) -> ZnodeHistory:
    history = ZnodeHistory(release=release).start(1, 2, 3, controller=3, topics=on([2], 2, 0, [2]))
    history.reassign(("t", 0, [2, 3]))
    history.controller_dies(3)
    history.write("/controller", controller_znode(1))
    return history
