"""Where a broker is, what it has, and what its loss takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from controller.alerts.conditions import counted, plural
from controller.contract.metadata_rows import PartitionRow
from controller.contract.znodes import Brokers
from controller.derived.gauges import replicas_by_broker
from controller.model.context import Context
from controller.model.leadership import NO_LEADER
from questions.explain.causes import causes_of, last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, findings_about, whereabout
from questions.picture import NOT_KNOWN_MS, Origin, Picture


def is_known(picture: Picture, broker: int) -> bool:
    """Whether anything in the cluster names the broker."""
    header = picture.header
    return broker in header.brokers or broker in header.departures.last or broker in replicas_by_broker(header)


class Held(NamedTuple):
    """What of a partition counts for the brokers that hold its replicas."""

    replicas: Brokers
    adding: Brokers
    leader: int
    isr: Brokers | None  # None: ZooKeeper has no state of it yet


class Hosted(NamedTuple):
    """Counts of the partitions that have a replica on a broker."""

    partitions: int = 0
    preferred: int = 0
    led: int = 0
    lagging: int = 0  # it is out of sync
    alone: int = 0  # nobody else in sync is live


def hosted_by(broker: int, registered: Collection[int], partitions: Iterable[Held]) -> Hosted:
    """What the broker has of the partitions, while these brokers are registered."""
    count = preferred = led = lagging = alone = 0
    others = set(registered) - {broker}
    for replicas, adding, leader, isr in partitions:
        if broker not in replicas:
            continue
        count += 1
        preferred += replicas[0] == broker
        if isr is not None:
            led += leader == broker
            lagging += broker not in isr and broker not in adding
            alone += broker in isr and others.isdisjoint(isr)
    return Hosted(count, preferred, led, lagging, alone)


def held_in_rows(rows: Iterable[PartitionRow]) -> Iterator[Held]:
    """The partitions of these rows that are not being deleted."""
    return (
        Held(row.replicas, row.adding_replicas, row.leader, row.isr if row.leader_epoch >= 0 else None)
        for row in rows
        if not row.deleting
    )


def explain_broker(picture: Picture, broker: int, hosted: Hosted | None = None) -> Explanation:
    """The explanation of a broker that is known; `hosted` is given where the picture has not all partitions."""
    header = picture.header
    registered, departure = header.brokers.get(broker), header.departures.last.get(broker)
    away_ms = departure.time_ms if departure is not None else picture.away_since_ms.get(broker, NOT_KNOWN_MS)
    is_look = picture.origin is Origin.LOOK
    paths = [(f"/brokers/ids/{broker}", "it registered")]
    return Explanation(
        subject=f"broker {broker}",
        headline=whereabout(broker, picture).removeprefix(f"broker {broker} "),
        is_well=registered is not None,
        since=None if registered is not None else picture.since(away_ms),
        statements=tuple(_statements(picture, broker, _hosted(picture.context, broker) if hosted is None else hosted)),
        causes=last_writes(picture, paths) if is_look else causes_of(picture.story),
        findings=findings_about(picture, brokers=(broker,)),
        as_of_ms=picture.as_of_ms,
    )


def _hosted(context: Context, broker: int) -> Hosted:
    return hosted_by(broker, context.header.brokers.keys(), _held(context))


def _held(context: Context) -> Iterator[Held]:
    for _, topic in context.topics:
        if not topic.queued_for_deletion:
            for partition in topic.partitions.values():
                value = partition.zk_state
                leader, isr = (NO_LEADER, None) if value is None else (value.leader, value.isr)
                yield Held(partition.replicas, partition.adding, leader, isr)


def _statements(picture: Picture, broker: int, hosted: Hosted) -> Iterator[Statement]:
    header = picture.header
    registered = header.brokers.get(broker)
    if registered is not None and registered.inferred:
        yield Statement("mode", "KRaft: not in /brokers/ids, but it leads or is in sync", Certainty.INFERRED)
        yield Statement("listeners", ", ".join(registered.endpoints) or "not known")
    elif registered is not None:
        rack = f", rack {registered.rack}" if registered.rack else ", without a rack"
        session = "" if picture.origin is Origin.ROWS else f", session {registered.session:#x}"  # no row has it
        yield Statement("registered", f"epoch {registered.epoch:#x}{session}{rack}")
        yield Statement("listeners", ", ".join(registered.endpoints) or "none")
    if header.controller == broker:
        yield Statement("controller", f"it is named in /controller, epoch {header.controller_epoch}")
    hosts = f"hosts {hosted.partitions}, preferred leader of {hosted.preferred}, leads {hosted.led}"
    yield Statement("partitions", hosts)
    if hosted.lagging:
        yield Statement("out of sync", f"in {counted(hosted.lagging, 'partition')} that it hosts")
    if hosted.alone:
        are = plural(hosted.alone, "is", "are") if registered is None else "would go"
        says = f"{counted(hosted.alone, 'partition')} {are} offline without it: no other in-sync replica is live"
        yield Statement("alone", says, Certainty.EXPECTED)
