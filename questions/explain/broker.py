"""State of a broker, its partitions, and the effect of its loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.contract.ids import BrokerId
from controller.contract.row import NOT_KNOWN_MS
from controller.view.health import is_without_session
from controller.view.types import Context, Partition
from questions.explain.causes import causes_of, last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, explanation_of, findings_about, whereabout
from questions.picture import Origin, Picture
from wording.facts import Fact
from wording.sentences import counted


class Hosted(NamedTuple):
    """Counts of the partitions that have a replica on a broker."""

    partitions: int = 0
    preferred: int = 0
    led: int = 0
    lagging: int = 0  # it is out of sync
    alone: int = 0  # no other in-sync replica is live


def explain_broker(picture: Picture, broker: BrokerId) -> Explanation:
    """Explain a known broker. The picture needs only the partitions that it hosts."""
    header = picture.header
    registered, departure = header.brokers.get(broker), header.departures.last.get(broker)
    away_ms = departure.time_ms if departure is not None else NOT_KNOWN_MS
    is_look = picture.origin is Origin.LOOK
    paths = [(f"/brokers/ids/{broker}", "it registered")]
    return explanation_of(
        picture,
        f"broker {broker}",
        whereabout(broker, picture).removeprefix(f"broker {broker} "),
        is_well=registered is not None and not is_without_session(broker, header),
        since=None if registered is not None else picture.since(away_ms),
        statements=_statements(picture, broker),
        causes=last_writes(picture, paths) if is_look else causes_of(picture.story),
        findings=findings_about(picture, brokers=(broker,)),
    )


def _hosted(context: Context, broker: BrokerId) -> Hosted:
    others = context.header.brokers.keys() - {broker}
    count = preferred = led = lagging = alone = 0
    for partition in _partitions(context):
        if broker not in partition.replicas:
            continue
        count += 1
        preferred += partition.replicas[0] == broker
        value = partition.zk_state
        if value is not None:
            led += value.leader == broker
            lagging += broker not in value.isr and broker not in partition.adding
            alone += broker in value.isr and others.isdisjoint(value.isr)
    return Hosted(count, preferred, led, lagging, alone)


def _partitions(context: Context) -> Iterator[Partition]:
    for _, topic in context.topics:
        if not topic.queued_for_deletion:
            yield from topic.partitions.values()


def _statements(picture: Picture, broker: BrokerId) -> Iterator[Statement]:
    header, hosted = picture.header, _hosted(picture.context, broker)
    registered = header.brokers.get(broker)
    if registered is not None and registered.inferred:
        yield Statement(
            "mode", "KRaft, because it leads or is in sync without a registration in /brokers/ids", Certainty.INFERRED
        )
        yield Statement("listeners", ", ".join(registered.endpoints) or "unknown")
    elif is_without_session(broker, header):
        says = f"by a persistent znode. Delete /brokers/ids/{broker}, so that the broker can register"
        yield Statement("registered", says)
    elif registered is not None:
        rack = f", rack {registered.rack}" if registered.rack else ", without a rack"
        yield Statement("registered", f"epoch {registered.epoch:#x}, session {registered.session:#x}{rack}")
        yield Statement("listeners", ", ".join(registered.endpoints) or "none")
    if header.controller == broker:
        yield Statement("controller", f"named in /controller, epoch {header.controller_epoch}")
    hosts = f"hosts {hosted.partitions}, preferred leader of {hosted.preferred}, leads {hosted.led}"
    yield Statement("partitions", hosts)
    if hosted.lagging:
        yield Statement("out of sync", f"in {counted(hosted.lagging, 'partition')} that it hosts")
    if hosted.alone:
        fact = Fact.OFFLINE.of(hosted.alone) if registered is None else Fact.ONE_LOSS_FROM_OFFLINE.of(hosted.alone)
        says = f"{fact}, because no other in-sync replica is alive"
        yield Statement("alone", says, Certainty.EXPECTED)
