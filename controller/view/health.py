"""Judgement of a partition's usability, as a Problem for machines and as a sentence for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from controller.contract.ids import NO_LEADER, BrokerId, PartitionId
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.problem import UNUSABLE, Problem
from controller.model.context import Header
from controller.model.tally import CountingRules
from controller.model.topics import Partition, Topic
from controller.rules.election import elect_offline
from controller.rules.states import PartitionState
from controller.says.alert_kinds.brokers import BROKER_UNKNOWN
from wording.facts import Fact, Left, down, without_trace
from wording.sentences import counted, joined, listed, one_of, verb


def is_without_session(broker: BrokerId, header: Header) -> bool:
    """Return whether the broker's znode is persistent, so that a person or tool wrote it and no process owns it."""
    registered = header.brokers.get(broker)
    return registered is not None and not registered.session and not registered.inferred


def never_registered(header: Header, broker: BrokerId) -> bool:
    """Return whether nothing in ZooKeeper shows that the broker ever ran, though replicas are assigned to it."""
    return header.knows_all_topics and is_without_trace(header, broker)


def is_without_trace(header: Header, broker: BrokerId) -> bool:
    """Return whether the topics that were read do not show that the broker ever ran.

    It was not seen to leave, and each of its replicas is being added, or of a partition that was never created. An open
    BrokerUnknown is enough, because a controller up to 2.3 forgets at a failover which replicas are being added.
    """
    if broker in header.brokers or broker in header.departures.last:
        return False
    counts = header.tally.gauges
    hosted = counts.replicas_on.get(broker, 0)
    is_told = False
    for alert in header.alerts.open.values():  # a page asks this several times, and a generator costs as many calls
        is_told = is_told or (alert.kind == BROKER_UNKNOWN.name and broker in alert.brokers)
    return hosted > 0 and (broker < 0 or is_told or hosted == counts.unproven_on.get(broker, 0))


def absence(brokers: Iterable[BrokerId], header: Header) -> str:
    """Return that unregistered brokers are down, or have never registered, as a clause."""
    absent = sorted(brokers)
    strangers = [broker for broker in absent if is_without_trace(header, broker)]
    lost = [broker for broker in absent if broker not in strangers]
    said = [down(lost)] if lost else []
    said += [without_trace(strangers, _searched(header))] if strangers else []
    return ", and ".join(said)


def _searched(header: Header) -> str:
    return "ZooKeeper" if header.knows_all_topics else "this topic"


def whereabouts(brokers: Iterable[BrokerId], header: Header) -> tuple[str, ...]:
    """Return a sentence for each broker on whether it is live or how it left."""
    return tuple(whereabout(broker, header) for broker in sorted(brokers))


def whereabout(broker: BrokerId, header: Header, *, knows_past: bool = True) -> str:
    """Return whether a broker is live or how it left. Without the past, an absent broker is called not registered."""
    knows_past = knows_past and header.knows_past
    registered = header.brokers.get(broker)
    if registered is not None and not registered.session and not registered.inferred:
        return f"broker {broker} is registered by a znode of no session, so no process is this broker"
    if registered is not None:
        leaving = ", and shutting down" if broker in header.shutdowns.under_way else ""
        return f"broker {broker} is live{leaving}"
    if is_without_trace(header, broker):
        return without_trace((broker,), _searched(header))
    departure = header.departures.last.get(broker)
    if departure is None:
        return f"broker {broker} {Left.NEVER_REGISTERED.value if knows_past else 'is not registered'}"
    is_known = not header.led_by_kraft  # because KRaft shuts brokers down without a trace in ZooKeeper
    how = Left.SHUT_DOWN if departure.in_order else Left.CRASHED if is_known else Left.LEFT
    return f"broker {broker} {how.value}" + (f" at zxid {departure.zxid:#x}" if departure.zxid >= 0 else ", unseen")


_UNDER_REPLICATED: Final = Problem.UNDER_REPLICATED
_UNDER_MIN_ISR: Final = Problem.UNDER_MIN_ISR
_WHEREABOUTS: Final = 2  # in a sentence


def ordinary(topic: Topic, live: frozenset[BrokerId], rules: CountingRules) -> frozenset[PartitionId]:
    """Return the partitions of which nothing can be said but their leader, ISR and replicas, which all are live.

    Nearly all partitions are ordinary, and at the end of a complete read this saves three quarters of their time.
    """
    found, least = [], topic.min_insync_replicas
    for number, partition in topic.partitions.items() if not topic.queued_for_deletion else ():
        value, replicas = partition.zk_state, partition.replicas
        if value is None or value.recovering or value.leader not in replicas or not live.issuperset(replicas):
            continue
        if value.isr != replicas and sorted(value.isr) != sorted(replicas):
            continue
        is_enough = needed_in_sync(least, value.leader, len(replicas), rules) <= len(replicas)
        if is_enough and partition == Partition(replicas, None, PartitionState.ONLINE, value):
            found.append(number)
    return frozenset(found)


def judged(  # noqa: PLR0913 (all that decides it)
    partition: Partition,
    topic: Topic,
    header: Header,
    rules: CountingRules,
    predicted: LeaderAndIsr | None,
    now_ms: int,
) -> Partition:
    """Return the partition with its present problem, the same object if it is unchanged.

    `predicted` is its state after the controller's pending writes. Partitions of a topic that is queued for deletion
    have no problem.
    """
    value = partition.zk_state
    absent = absent_in_sync(value, header)
    if value is None or topic.queued_for_deletion or not _is_online(value.leader, partition, header):
        lacking, problem = 0, _problem_without_leader(partition, topic, header, predicted)
    else:
        in_sync, replicas = len(value.isr), len(partition.replicas)
        problem = _UNDER_REPLICATED if is_under_replicated(in_sync, replicas, len(partition.adding)) else None
        lacking = _lacking_of_led(foreseen(partition, value, absent), replicas, topic, rules)
        problem = _UNDER_MIN_ISR if lacking else problem
    if problem is partition.problem and lacking == partition.in_sync_lacking and absent == partition.absent:
        return partition
    since_ms = _problem_since(partition, problem, now_ms)
    return msgspec.structs.replace(
        partition, problem=problem, problem_since_ms=since_ms, in_sync_lacking=lacking, absent=absent
    )


def absent_in_sync(value: LeaderAndIsr | None, header: Header) -> tuple[BrokerId, ...]:
    """Return the in-sync replicas that the next controller will remove. It never empties an ISR."""
    if value is None or all(map(header.brokers.__contains__, value.isr)) or header.acting or header.led_by_kraft:
        return ()
    gone = tuple([broker for broker in value.isr if broker not in header.brokers])
    return () if len(gone) == len(value.isr) else gone


def in_sync_lacking(partition: Partition, topic: Topic, header: Header, rules: CountingRules) -> int:
    """Return the number of replicas that must join the ISR before a partition with a leader takes acks=all again."""
    value = partition.zk_state
    if value is None or topic.queued_for_deletion or not _is_online(value.leader, partition, header):
        return 0
    return _lacking_of_led(foreseen(partition, value, partition.absent), len(partition.replicas), topic, rules)


def _lacking_of_led(value: LeaderAndIsr, replicas: int, topic: Topic, rules: CountingRules) -> int:
    return max(0, needed_in_sync(topic.min_insync_replicas, value.leader, replicas, rules) - len(value.isr))


def foreseen(partition: Partition, value: LeaderAndIsr, absent: tuple[BrokerId, ...]) -> LeaderAndIsr:
    """Return the state after the due writes of this controller or the next, which removes `absent` from the ISR.

    Clients do not wait for these writes. A dead replica in an ISR holds up acks=all as a removed one does.
    """
    if partition.queue and partition.write_due:
        return partition.value(value.controller_epoch) or value
    return msgspec.structs.replace(value, isr=tuple([at for at in value.isr if at not in absent])) if absent else value


def needed_in_sync(by_topic: int | None, leader: BrokerId, replicas: int, rules: CountingRules) -> int:
    """Return how many in-sync replicas acks=all needs in a partition with this leader and number of replicas."""
    # Called four times for a change of an ISR. Each saved call is a thirtieth of the change.
    needed = by_topic or (rules.least_in_sync_under(leader) if rules.least_in_sync_on else rules.least_in_sync)
    is_capped = needed > replicas and rules.least_is_capped and leader not in rules.uncapped
    return replicas if is_capped else needed


def _problem_without_leader(
    partition: Partition, topic: Topic, header: Header, predicted: LeaderAndIsr | None
) -> Problem | None:
    if topic.queued_for_deletion:
        return None
    value = partition.zk_state
    if value is None:
        if partition.unreadable:
            return Problem.STATE_UNREADABLE
        created = partition.write_due or any(replica in header.brokers for replica in partition.replicas)
        return Problem.NOT_YET_CREATED if created else Problem.NO_LIVE_REPLICA_AT_CREATION
    if successor(partition, topic, header, predicted) is not None:
        return Problem.ELECTION_DUE
    if any(_is_online(member, partition, header) for member in electable(partition, value)):
        return Problem.LEADERLESS
    return Problem.NO_LIVE_IN_SYNC_REPLICA


def _problem_since(partition: Partition, problem: Problem | None, now_ms: int) -> int:
    """Return when the problem began.

    If one problem follows another and both make a partition unusable, it began with the first.
    """
    if problem is None:
        return 0
    was = partition.problem
    lasts = problem is was or (problem in UNUSABLE and was in UNUSABLE)
    return partition.problem_since_ms if lasts else now_ms


def _is_online(replica: BrokerId, partition: Partition, header: Header) -> bool:
    return replica in header.brokers and replica not in partition.offline_dirs


def electable(partition: Partition, value: LeaderAndIsr) -> tuple[BrokerId, ...]:
    """Return the in-sync brokers that a controller elects without loss, which are the assigned brokers.

    The controller takes the first live in-sync replica of the assignment (`Election.leaderForOffline`, 3.9).
    """
    return tuple([member for member in value.isr if member in partition.replicas])


def successor(partition: Partition, topic: Topic, header: Header, predicted: LeaderAndIsr | None) -> BrokerId | None:
    """Return the live broker that the controller must elect, or the next controller if none is active.

    Return None without such a broker.
    """
    if header.acting:
        if predicted is not None and predicted.leader in header.brokers:
            return predicted.leader
        owed = partition.owed(header.controller_epoch)
        return owed.leader if owed is not None and _is_online(owed.leader, partition, header) else None
    value = partition.zk_state
    assert value is not None, "a successor in a partition that has no state"
    unclean = header.allows_unclean_election_of(topic)
    elected = elect_offline(partition.replicas, value.isr, header.brokers, allow_unclean=unclean)
    return None if elected is None else elected.leader


def is_under_replicated(in_sync: int, replicas: int, adding: int) -> bool:
    """Return whether the ISR is smaller than the assignment without its adding replicas (Kafka's definition)."""
    return in_sync < replicas - adding


def takes_acks_all(partition: Partition, topic: Topic) -> bool:
    """Return whether the partition takes acks=all, by its state in ZooKeeper.

    Return False if its topic is queued for deletion.
    """
    return not topic.queued_for_deletion and partition.problem in (None, _UNDER_REPLICATED)


def back_in_sync_for_acks_all(partition: Partition) -> tuple[BrokerId, ...]:
    """Return the replicas out of the ISR, `in_sync_lacking` of which must return before acks=all works again."""
    value = partition.zk_state
    if value is None or not partition.in_sync_lacking:
        return ()
    in_sync = foreseen(partition, value, partition.absent).isr
    return tuple([replica for replica in partition.replicas if replica not in in_sync])


def reason_for(
    problem: Problem, partition: Partition, topic: Topic, header: Header, predicted: LeaderAndIsr | None
) -> str:
    """Return the problem as a sentence with brokers and zxids."""

    def where(brokers: Iterable[BrokerId]) -> str:
        return joined([_whereabout(broker, partition, header) for broker in brokers], most=_WHEREABOUTS)

    value = partition.zk_state
    if problem is _UNDER_REPLICATED and value is not None:
        missing = [replica for replica in partition.replicas if replica not in value.isr]
        return f"only {_in_sync(partition, value)}: {where(missing)}"
    if problem is _UNDER_MIN_ISR and value is not None:
        return _refuses_acks_all(partition, foreseen(partition, value, partition.absent), where)
    elector = _elector(header)
    if problem is Problem.NOT_YET_CREATED:
        if partition.write_due:
            return f"{elector} must write its first state"
        return f"it has no state: {elector} writes the first state of a new partition, and none that was lost"
    if problem is Problem.STATE_UNREADABLE:
        return "its state cannot be read. Brokers that led it go on, and the next controller fails at it"
    if problem is Problem.NO_LIVE_REPLICA_AT_CREATION or value is None:
        replicas = [_whereabout(broker, partition, header) for broker in partition.replicas] or ["none is assigned"]
        return f"no replica was live at its creation: {joined(replicas, most=1)}"
    if problem is Problem.NO_LIVE_IN_SYNC_REPLICA:
        return _no_live_in_sync(partition, value, where, unclean=header.allows_unclean_election_of(topic))
    gone = "it has no leader" if value.leader == NO_LEADER else f"leader {where((value.leader,))}"
    if problem is Problem.ELECTION_DUE:
        passed_over = header.acting and not partition.write_due
        since = ". It has passed over this election" if passed_over else ""
        elected = successor(partition, topic, header, predicted)
        lossy = "" if elected in value.isr else ". It is not in sync, so acknowledged records are lost"
        return f"{gone}, and {elector} must elect broker {elected}{since}{lossy}"
    live = [member for member in electable(partition, value) if _is_online(member, partition, header)]
    return f"{gone}. {one_of(live).capitalize()} is live and in sync, but the controller has no reason to elect it"


def _elector(header: Header) -> str:
    if header.led_by_kraft:
        return f"KRaft controller {header.migration.claim.controller}"
    return "the controller" if header.acting else "the next controller (none is active)"


def _refuses_acks_all(partition: Partition, value: LeaderAndIsr, where: Callable[[Iterable[BrokerId]], str]) -> str:
    lacking, missing = partition.in_sync_lacking, back_in_sync_for_acks_all(partition)
    in_sync = f"{_in_sync(partition, value)}, {len(value.isr) + lacking} needed"
    if lacking > len(missing):
        return f"{Fact.REJECTS_ACKS_ALL.singular}: {in_sync}, more than it has replicas. No broker can help"
    which = "Missing" if lacking == len(missing) else f"Missing {lacking} of these"
    return f"{Fact.REJECTS_ACKS_ALL.singular}: {in_sync}. {which}: {where(missing)}"


def _no_live_in_sync(
    partition: Partition, value: LeaderAndIsr, where: Callable[[Iterable[BrokerId]], str], *, unclean: bool
) -> str:
    replicas = partition.replicas
    if not value.isr:
        only = "Only an unclean election makes a replica leader"
        if unclean:
            only = f"It stays offline until {one_of(replicas)} returns and is elected uncleanly"
        return f"no live in-sync replica: the ISR is empty, {where(replicas)}. {only}"
    in_reach = replicas if unclean else electable(partition, value)
    if not in_reach:
        assigned = f"{listed(value.isr, 'is')} in sync, but {listed(replicas, 'is')} assigned"
        return f"no in-sync broker is assigned: {assigned}. No return and no failover elects one"
    back = "its directory is back" if partition.offline_dirs else f"{one_of(in_reach)} returns"
    lossy = ", even if records are lost, because unclean elections are allowed" if {*in_reach} - {*value.isr} else ""
    return f"no live in-sync replica: {where(value.isr)}. It stays offline until {back}{lossy}"


def _in_sync(partition: Partition, value: LeaderAndIsr) -> str:
    count = len(value.isr)
    return f"{count} of {counted(len(partition.replicas), 'replica')} {verb(count, 'is')} in sync"


def _whereabout(broker: BrokerId, partition: Partition, header: Header) -> str:
    if broker in header.brokers and broker in partition.offline_dirs:
        return f"broker {broker} is live, but its log directory failed"
    return whereabout(broker, header, knows_past=False)
