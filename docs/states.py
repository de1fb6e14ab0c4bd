"""Prints `states.md`: the state machines of partitions and replicas as diagrams and tables, from `controller.states`.

Run it by `make docs`. Here belongs the page's form; what is legal is decided by the tables that it reads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from controller.profile import profile_of  # noqa: E402 (needs the path above)
from controller.states import (  # noqa: E402
    PARTITION_VALID_PREVIOUS,
    REPLICA_VALID_PREVIOUS,
    PartitionState,
    ReplicaState,
)

AnyState = PartitionState | ReplicaState

_HEAD = """# The state machines

The controller's own, with Kafka's names (`PartitionState`, `ReplicaState`). This page is made from
`controller/states.py` by `make docs`; a test holds it current. An arrow is a move that the controller may make. One
that is not drawn is illegal: the controller refuses it with an error, and the replica does not make it either.
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
    ReplicaState.DELETION_STARTED: "its broker was told to delete it",
    ReplicaState.DELETION_SUCCESSFUL: "its broker deleted it",
    ReplicaState.DELETION_INELIGIBLE: "its deletion cannot go on until its broker is back",
}


def states_page() -> str:
    """The whole page."""
    partition = _section("Partition", PARTITION_VALID_PREVIOUS, _PARTITION_MEANING, PartitionState.NON_EXISTENT)
    replica = _section("Replica", REPLICA_VALID_PREVIOUS, _REPLICA_MEANING, ReplicaState.NON_EXISTENT)
    return "\n".join([_HEAD, partition, replica, _older()])


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
