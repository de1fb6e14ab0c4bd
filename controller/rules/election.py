"""Leader elections, with the choice of the leader, its ISR, and the brokers that receive LeaderAndIsr.

Pure choices (Kafka 3.9 `PartitionLeaderElectionAlgorithms` and `Election`). `partition_machine` runs them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

import msgspec

from controller.contract.ids import BrokerId


class Strategy(Enum):
    """Kafka's four election strategies. An offline election is clean or, if allowed, unclean."""

    OFFLINE = "OfflinePartitionLeaderElection"
    REASSIGN = "ReassignPartitionLeaderElection"
    PREFERRED = "PreferredReplicaPartitionLeaderElection"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElection"


class Elected(msgspec.Struct, frozen=True, gc=False):
    """Result of an election. `unclean` means that records may be lost."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    unclean: bool = False


def elect_offline(
    assignment: Sequence[BrokerId], isr: Sequence[BrokerId], online: Collection[BrokerId], *, allow_unclean: bool
) -> Elected | None:
    """Elect the first live in-sync replica in assignment order, else, if allowed, the first live one.

    The ISR keeps its live members.
    """
    for replica in assignment:
        if replica in online and replica in isr:
            return Elected(replica, tuple(member for member in isr if member in online))
    if allow_unclean:
        for replica in assignment:
            if replica in online:
                return Elected(replica, (replica,), unclean=True)
    return None


def elect_for_reassignment(
    target: Sequence[BrokerId], isr: Sequence[BrokerId], online: Collection[BrokerId]
) -> Elected | None:
    """Elect the first live in-sync replica of the target.

    The ISR keeps all members, those on failed brokers too.
    """
    for replica in target:
        if replica in online and replica in isr:
            return Elected(replica, tuple(isr))
    return None


def elect_preferred(
    assignment: Sequence[BrokerId], isr: Sequence[BrokerId], online: Collection[BrokerId]
) -> Elected | None:
    """Elect the first assigned replica if it is live and in sync. The ISR stays as it is."""
    if assignment and assignment[0] in online and assignment[0] in isr:
        return Elected(assignment[0], tuple(isr))
    return None


def elect_for_controlled_shutdown(
    assignment: Sequence[BrokerId],
    isr: Sequence[BrokerId],
    registered: Collection[BrokerId],
    shutting_down: Collection[BrokerId],
) -> Elected | None:
    """Elect the first registered in-sync replica whose broker is not shutting down.

    Replicas on brokers that shut down leave the ISR.
    """
    for replica in assignment:
        if replica in registered and replica in isr and replica not in shutting_down:
            return Elected(replica, tuple(member for member in isr if member not in shutting_down))
    return None


def recipients(
    strategy: Strategy, candidates: Sequence[BrokerId], online: Collection[BrokerId]
) -> tuple[BrokerId, ...]:
    """Return the replicas that receive the result of an election.

    In a controlled shutdown `online` means registered, as in its election. Candidates are the assignment, in a
    reassignment its target. Only a preferred election and a reassignment name offline replicas too. A broker that is
    shutting down must learn that it no longer leads (since 2.1, KAFKA-7482).
    """
    if strategy in (Strategy.PREFERRED, Strategy.REASSIGN):
        return tuple(candidates)
    return tuple(replica for replica in candidates if replica in online)
