"""Prints `states.md`: the state machines of partitions and replicas, the migration's, and partitions' problems.

Run it by `make docs`. What is legal is decided by the tables that it reads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from controller.contract.problem import Problem  # noqa: E402
from controller.rules.migration_phases import NEXT_PHASE, MigrationPhase  # noqa: E402
from controller.rules.releases import profile_of  # noqa: E402 (needs the path above)
from controller.rules.states import (  # noqa: E402
    PARTITION_VALID_PREVIOUS,
    REPLICA_VALID_PREVIOUS,
    PartitionState,
    ReplicaState,
)

AnyState = PartitionState | ReplicaState

_HEAD = """# The state machines

The controller's own, with Kafka's names (`PartitionState`, `ReplicaState`). This page is made by `make docs` from
`controller/rules/states.py`; a test holds it current. An arrow is a move that the controller may make. One that is not
drawn is illegal: the controller refuses it with an error, and the replica does not make it either.
"""

_MIGRATION_HEAD = """## The way to KRaft

From `controller/rules/migration_phases.py`, as ZooKeeper shows it. In *zookeeper*, *waiting* and *rolled_back* the
ZooKeeper controller rules and is predicted; in all others KRaft leads.
"""

_PARTITION_MEANING: Mapping[PartitionState, str] = {
    PartitionState.NON_EXISTENT: "never seen, or deleted",
    PartitionState.NEW: "assigned, but no leader was ever elected",
    PartitionState.ONLINE: "a leader was elected, and is not known to be dead",
    PartitionState.OFFLINE: "its leader is known to be dead",
}

_REPLICA_MEANING: Mapping[ReplicaState, str] = {
    ReplicaState.NON_EXISTENT: "never seen, or deleted",
    ReplicaState.NEW: "just assigned; may become a follower",
    ReplicaState.ONLINE: "its broker is live",
    ReplicaState.OFFLINE: "its broker, or its log directory there, is not",
    ReplicaState.DELETION_STARTED: "its broker was sent a StopReplica that deletes it",
    ReplicaState.DELETION_SUCCESSFUL: "its broker deleted it",
    ReplicaState.DELETION_INELIGIBLE: "its deletion cannot go on until its broker is back",
}

_PROBLEM_MEANING: Mapping[Problem, str] = {
    Problem.NO_LIVE_IN_SYNC_REPLICA: "offline until a broker of its ISR returns",
    Problem.ELECTION_DUE: "its leader is gone, and the controller must elect another replica",
    Problem.NOT_YET_CREATED: "the controller must still write its first state",
    Problem.NO_LIVE_REPLICA_AT_CREATION: "created while none of its replicas was live",
    Problem.LEADERLESS: "an in-sync replica is live, and nothing makes the controller elect it",
    Problem.UNDER_MIN_ISR: "led, but fewer replicas are in sync than `min.insync.replicas`: `acks=all` is refused",
    Problem.UNDER_REPLICATED: "led and taking `acks=all`, but not every assigned replica is in sync",
}


def states_page() -> str:
    """The whole page."""
    partition = _section("Partition", PARTITION_VALID_PREVIOUS, _PARTITION_MEANING, PartitionState.NON_EXISTENT)
    replica = _section("Replica", REPLICA_VALID_PREVIOUS, _REPLICA_MEANING, ReplicaState.NON_EXISTENT)
    return "\n".join([_HEAD, partition, replica, _migration(), _problems(), _older()])


def _migration() -> str:
    """The phases on the way to KRaft, and the evidence that leads from one to the next."""
    arrows = [
        (before, evidence.value, after) for before, left in NEXT_PHASE.items() for evidence, after in left.items()
    ]
    diagram = [f"    [*] --> {MigrationPhase.ZOOKEEPER.value}"]
    diagram += sorted({f"    {before.value} --> {after.value}" for before, _, after in arrows})
    rows = [
        f"| {phase.value} | {'; '.join(f'{why}: {after.value}' for before, why, after in arrows if before is phase)} |"
        for phase in MigrationPhase
    ]
    table = ["| phase | what ends it: the next phase |", "| --- | --- |", *rows]
    return "\n".join([_MIGRATION_HEAD, "```mermaid", "stateDiagram-v2", *diagram, "```", "", *table, ""])


def _section(
    title: str,
    valid_previous: Mapping[AnyState, frozenset[AnyState]],
    meaning: Mapping[AnyState, str],
    start: AnyState,
) -> str:
    arrows = sorted((previous, target) for target, found in valid_previous.items() for previous in found)
    diagram = [f"    [*] --> {start.word}", *(f"    {before.word} --> {after.word}" for before, after in arrows)]
    rows = [
        f"| {state.word} | {text} | {', '.join(after.word for before, after in arrows if before is state)} |"
        for state, text in meaning.items()
    ]
    table = ["| state | meaning | may become |", "| --- | --- | --- |", *rows]
    return "\n".join([f"## {title}", "", "```mermaid", "stateDiagram-v2", *diagram, "```", "", *table, ""])


def _problems() -> str:
    rows = [f"| `{problem.value}` | {_PROBLEM_MEANING[problem]} |" for problem in Problem]
    return "\n".join(
        [
            "## What is wrong with a partition",
            "",
            "The `problem` of a partition's row, the worst first: a partition shows the first that applies, so one",
            "that is under min ISR mostly is under-replicated too. With the first five nobody can use it.",
            "`problem_since_ms` goes on from one of these to another, and begins again with each of the others.",
            "`writable_acks_all` is whether a write with `acks=all` is taken; of a partition under min ISR",
            "`in_sync_lacking` says how many of `in_sync_candidates` must get in sync before it is taken again.",
            "What is needed is the topic's `min.insync.replicas`, else the leader's in `/config/brokers`, else that",
            "of `/config/brokers/<default>`, else the static one (`broker_config`); from 3.7 on never more than",
            "there are replicas. A topic that is being deleted has no problems, and takes no write that anybody",
            "could rely on.",
            "",
            "| problem | meaning |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def _older() -> str:
    """What Kafka's older releases allow otherwise."""
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
