"""UncleanLeaderElectionEnable and other dynamic broker configuration in /config/brokers.

ZooKeeper ACLs can hide these znodes. The static settings then apply.
"""

from __future__ import annotations

from typing import Final

from controller.contract.ids import TopicPartition
from controller.contract.problem import UNUSABLE
from controller.contract.znodes import ConfigZnode
from controller.events import flawed_znodes
from controller.machines import partition_machine
from controller.model.context import LEAST_IN_SYNC, THROTTLES, UNCLEAN_ELECTION
from controller.model.event import EventKind
from controller.model.mutable_state import MutableState
from controller.transaction.transaction import Transaction
from controller.view.health import in_sync_lacking

_USED: Final = (UNCLEAN_ELECTION, LEAST_IN_SYNC, *THROTTLES)


def written(tx: Transaction, name: str, znode: ConfigZnode) -> None:
    """Apply the dynamic configuration of a broker, or the cluster-wide default."""
    header = tx.header
    flawed_znodes.note_unparsable(header, f"/config/brokers/{name}", znode.config)
    was_allowed = header.allows_unclean_election
    used = {key: value for key, value in znode.config.items() if key in _USED}
    others = {key: value for key, value in header.configuration.dynamic.items() if key != name}
    header.configuration.dynamic = {**others, name: used} if used else others
    if header.acting and header.allows_unclean_election and not was_allowed:
        tx.events.begin(EventKind.UNCLEAN_LEADER_ELECTION_ENABLE, "unclean leader election was allowed for all topics")
        partition_machine.trigger_online(tx)


def judge_again(state: MutableState) -> None:
    """Judge those partitions again whose problem depends on a changed setting."""
    header = state.header
    if header.tally.judged_by != state.rules:
        header.tally.judged_by = state.rules
        _judge_acks_all(state)
    if header.configuration.unclean_as_judged != header.allows_unclean_election:
        header.configuration.unclean_as_judged = header.allows_unclean_election
        state.touch_unled(lambda partition: partition.problem in UNUSABLE)


def _judge_acks_all(state: MutableState) -> None:
    header, rules = state.header, state.rules
    for name, topic in state.topics:
        for number, partition in topic.partitions.items():
            if in_sync_lacking(partition, topic, header, rules) != partition.in_sync_lacking:
                state.touch(TopicPartition(name, number))
