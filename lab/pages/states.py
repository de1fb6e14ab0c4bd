"""Print `reference/states.md`: the state machines, the migration's phases, and problems of partitions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TypeVar

from controller.contract.problem import Problem
from controller.rules.migration_phases import NEXT_PHASE, MigrationPhase
from controller.rules.releases import profile_of
from controller.rules.states import PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS, PartitionState, ReplicaState

AnyState = TypeVar("AnyState", bound=PartitionState | ReplicaState)

_HEAD = """# The state machines

Look up a state and its legal successors here. The names are Kafka's (`PartitionState`, `ReplicaState`). An arrow is a
legal transition. The controller rejects any other transition with an error, and Kontrast does the same. [The
ZooKeeper-mode controller](../explanation/the-controller.md) explains how events cause transitions.
"""

_MIGRATION_HEAD = """## The way to KRaft

The phases as ZooKeeper shows them, from `controller/rules/migration_phases.py`. In *zookeeper*, *waiting* and
*rolled_back* the ZooKeeper controller leads and Kontrast predicts its writes. In all other phases KRaft leads.
"""

_PARTITION_MEANING: Mapping[PartitionState, str] = {
    PartitionState.NON_EXISTENT: "never seen, or deleted",
    PartitionState.NEW: "assigned, but no leader was ever elected",
    PartitionState.ONLINE: "a leader was elected, and is not known to be dead",
    PartitionState.OFFLINE: "its leader is known to be dead",
}

_REPLICA_MEANING: Mapping[ReplicaState, str] = {
    ReplicaState.NON_EXISTENT: "never seen, or deleted",
    ReplicaState.NEW: "just assigned, may become a follower",
    ReplicaState.ONLINE: "its broker is live",
    ReplicaState.OFFLINE: "its broker or its log directory is not live",
    ReplicaState.DELETION_STARTED: "its broker was sent a StopReplica that deletes it",
    ReplicaState.DELETION_SUCCESSFUL: "its broker deleted it",
    ReplicaState.DELETION_INELIGIBLE: "its deletion cannot go on until its broker is back",
}

_PROBLEM_MEANING: Mapping[Problem, str] = {
    Problem.NO_LIVE_IN_SYNC_REPLICA: "offline until a broker of its ISR returns",
    Problem.ELECTION_DUE: "its leader is gone, and the controller must elect another replica",
    Problem.NOT_YET_CREATED: "the controller must still write its first state",
    Problem.NO_LIVE_REPLICA_AT_CREATION: "created while none of its replicas was live",
    Problem.LEADERLESS: "an in-sync replica is live, but no event makes the controller elect it",
    Problem.STATE_UNREADABLE: "the znode of its state is there, but Kafka cannot read it, so its leader is not known",
    Problem.UNDER_MIN_ISR: "led, but rejects `acks=all`: the ISR is smaller than `min.insync.replicas`",
    Problem.UNDER_REPLICATED: "led and accepts `acks=all`, but the ISR lacks an assigned replica",
}


def states_page() -> str:
    """Return the whole page."""
    partition = _section("Partition", PARTITION_VALID_PREVIOUS, _PARTITION_MEANING, PartitionState.NON_EXISTENT)
    replica = _section("Replica", REPLICA_VALID_PREVIOUS, _REPLICA_MEANING, ReplicaState.NON_EXISTENT)
    return "\n".join([_HEAD, partition, replica, _migration(), _problems(), _older()])


def _migration() -> str:
    """Return the section on the migration's phases with the evidence that ends each."""
    arrows = [
        (before, evidence.value, after) for before, left in NEXT_PHASE.items() for evidence, after in left.items()
    ]
    found: dict[tuple[str, MigrationPhase], list[str]] = {}
    for before, why, after in arrows:
        found.setdefault((why, after), []).append(before.value)
    rows = [f"| {why} | {', '.join(befores)} | {after.value} |" for (why, after), befores in found.items()]
    table = ["| evidence | phase before | phase after |", "| --- | --- | --- |", *rows]
    return "\n".join([_MIGRATION_HEAD, *table, ""])


def _section(
    title: str, valid_previous: Mapping[AnyState, frozenset[AnyState]], meaning: Mapping[AnyState, str], start: AnyState
) -> str:
    arrows = sorted((previous, target) for target, found in valid_previous.items() for previous in found)
    diagram = [f"    [*] --> {start.word}", *(f"    {before.word} --> {after.word}" for before, after in arrows)]
    rows = [f"| {state.word} | {text} |" for state, text in meaning.items()]
    table = ["| state | meaning |", "| --- | --- |", *rows]
    return "\n".join([f"## {title}", "", "```mermaid", "stateDiagram-v2", *diagram, "```", "", *table, ""])


def _problems() -> str:
    rows = [f"| `{problem.value}` | {_PROBLEM_MEANING[problem]} |" for problem in Problem]
    return "\n".join(
        [
            "## Problems of a partition",
            "",
            "The `problem` field of a partition's row names the worst problem. A partition under min ISR is mostly",
            "under-replicated too. With the first five, no client can use the partition.",
            "",
            "- `problem_since_ms` continues while one of these five follows another. Otherwise it restarts.",
            "- `writable_acks_all` shows whether the leader accepts a write with `acks=all`.",
            "- `in_sync_lacking` counts the replicas out of `in_sync_candidates` that must join the ISR first.",
            "- The minimum comes from the topic's `min.insync.replicas`, else `/config/brokers` of the leader, else",
            "  `/config/brokers/<default>`, else `broker_config`. From 3.7 on it never exceeds the number of replicas.",
            "- A topic in deletion has no problems and accepts no reliable write.",
            "",
            "| problem | meaning |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def _older() -> str:
    """Return the section on older releases."""
    old = profile_of((2, 2)).replica_valid_previous(ReplicaState.DELETION_INELIGIBLE)
    now = REPLICA_VALID_PREVIOUS[ReplicaState.DELETION_INELIGIBLE]
    lost = ", ".join(state.word for state in sorted(now - old))
    return "\n".join(
        [
            "## Older releases",
            "",
            f"Up to Kafka 2.2 a replica does not become {ReplicaState.DELETION_INELIGIBLE.word} from {lost}.",
            "The other moves are the same from 0.10 to 3.9.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(states_page())
