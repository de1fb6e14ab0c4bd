"""Whether a partition can be used, and if not, why: in a word for machines and in a sentence for people.

Here belong pure judgements over a partition and the header. When they are asked, and the alerts that follow, is the
business of `turn` and `alerts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

from controller.context import Header
from controller.election import elect_offline
from controller.leadership import NO_LEADER, LeaderAndIsr
from controller.topics import Partition, Problem, Topic

_UNDER_REPLICATED: Final = Problem.UNDER_REPLICATED
UNUSABLE: Final = frozenset(problem for problem in Problem if problem is not _UNDER_REPLICATED)
UNUSABLE_WORDS: Final = frozenset(problem.value for problem in UNUSABLE)  # as rows have them


def problem_of(partition: Partition, topic: Topic, header: Header, predicted: LeaderAndIsr | None) -> Problem | None:
    """What is wrong with the partition now; a topic that is being deleted has no problems.

    `predicted` is its value once the controller has done what it must.
    """
    if topic.queued:
        return None
    value = partition.confirmed
    if value is None:
        created = partition.write_due or any(replica in header.brokers for replica in partition.replicas)
        return Problem.NOT_YET_CREATED if created else Problem.NO_LIVE_REPLICA_AT_CREATION
    if _is_online(value.leader, partition, header):
        lacking = is_under_replicated(len(value.isr), len(partition.replicas), len(partition.adding))
        return _UNDER_REPLICATED if lacking else None
    if successor(partition, topic, header, predicted) is not None:
        return Problem.ELECTION_DUE
    if any(_is_online(member, partition, header) for member in value.isr):
        return Problem.LEADERLESS
    return Problem.NO_LIVE_IN_SYNC_REPLICA


def with_problem(partition: Partition, problem: Problem | None, now_ms: int) -> Partition:
    """The partition with this problem, the very same if it had it before."""
    if problem is partition.problem:
        return partition
    return msgspec.structs.replace(
        partition, problem=problem, problem_since_ms=_problem_since(partition, problem, now_ms)
    )


def _problem_since(partition: Partition, problem: Problem | None, now_ms: int) -> int:
    if problem is None:
        return 0
    if partition.problem is not None and (problem in UNUSABLE) == (partition.problem in UNUSABLE):
        return partition.problem_since_ms
    return now_ms


def _is_online(replica: int, partition: Partition, header: Header) -> bool:
    return replica in header.brokers and replica not in partition.offline_dirs


def successor(partition: Partition, topic: Topic, header: Header, predicted: LeaderAndIsr | None) -> int | None:
    """The live broker that the controller, or without one the next controller, must make leader; None if nobody."""
    if header.acting:
        if predicted is not None and predicted.leader in header.brokers:
            return predicted.leader
        owed = partition.owed(header.controller_epoch)
        return owed.leader if owed is not None and _is_online(owed.leader, partition, header) else None
    value = partition.confirmed
    assert value is not None, "a successor in a partition that has no state"
    by_topic = topic.unclean_election
    unclean = header.allows_unclean_election if by_topic is None else by_topic
    elected = elect_offline(partition.replicas, value.isr, header.brokers, allow_unclean=unclean)
    return None if elected is None else elected.leader


def is_under_replicated(in_sync: int, replicas: int, adding: int) -> bool:
    """Kafka's definition: fewer in-sync replicas than assigned ones, those that are being added not counted."""
    return in_sync < replicas - adding


def reason_for(
    problem: Problem, partition: Partition, topic: Topic, header: Header, predicted: LeaderAndIsr | None
) -> str:
    """The problem as a sentence that names brokers and zxids."""

    def where(brokers: Iterable[int]) -> str:
        return ", ".join([_whereabout(broker, partition, header) for broker in brokers])

    value = partition.confirmed
    if problem is _UNDER_REPLICATED and value is not None:
        missing = [replica for replica in partition.replicas if replica not in value.isr]
        return f"in sync {_listed(value.isr)} of {_listed(partition.replicas)}: {where(missing)}"
    elector = "the controller" if header.acting else "no controller is active; the next one"
    if problem is Problem.NOT_YET_CREATED:
        return f"{elector} must write its first state"
    if problem is Problem.NO_LIVE_REPLICA_AT_CREATION or value is None:
        return f"it was created while none of its replicas was live: {where(partition.replicas)}"
    if problem is Problem.NO_LIVE_IN_SYNC_REPLICA:
        back = "its directory is back" if partition.offline_dirs else f"broker {_either(value.isr)} returns"
        in_sync = f"in sync {_listed(value.isr)}, {where(value.isr)}"
        return f"no live in-sync replica: {in_sync}; it stays offline until {back}"
    gone = "it has no leader" if value.leader == NO_LEADER else f"leader {where((value.leader,))}"
    if problem is Problem.ELECTION_DUE:
        passed_over = header.acting and not partition.write_due
        since = ", which it owes: it has written what came later" if passed_over else ""
        return f"{gone}; {elector} must elect broker {successor(partition, topic, header, predicted)}{since}"
    live = [member for member in value.isr if _is_online(member, partition, header)]
    return f"{gone}; in-sync replica {_either(live)} is live, but nothing makes the controller elect it"


def _whereabout(broker: int, partition: Partition, header: Header) -> str:
    if broker in header.brokers and broker in partition.offline_dirs:
        return f"broker {broker} is live, but its log directory failed"
    if broker in header.brokers:
        return f"broker {broker} is live"
    departure = header.departed.get(broker)
    if departure is None:
        return f"broker {broker} is not registered"
    at = f" at zxid {departure.zxid:#x}" if departure.zxid >= 0 else " unseen"
    return f"broker {broker} left{at}"


@lru_cache(1 << 14)
def _listed(brokers: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, brokers)) + "]"


def _either(brokers: Iterable[int]) -> str:
    return " or ".join(map(str, brokers))
