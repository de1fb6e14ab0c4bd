"""State of a broker, its partitions, and the effect of its loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.contract.ids import BrokerId
from controller.contract.row import NOT_KNOWN_MS
from controller.rules.releases import release_word
from controller.says.remedies.reassignments import REASSIGN
from controller.view.flawed_znodes import FlawedZnode, flawed_znodes
from controller.view.health import is_without_session, whereabout
from controller.view.returns import bring_back
from controller.view.types import Broker, Context, Header
from questions.doubts import blindness
from questions.explain.causes import causes_of, last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, explanation_of, findings_about
from questions.known_brokers import host_of
from questions.picture import Origin, Picture
from wording.facts import Fact
from wording.sentences import counted


class Hosted(NamedTuple):
    """Counts of the partitions that have a replica on a broker."""

    partitions: int = 0
    preferred: int = 0
    led: int = 0
    lagging: int = 0  # the broker is out of sync
    alone: int = 0  # no other in-sync replica is live
    most_replicas: int = 0  # replicas of the partition that has the most
    deleting: int = 0  # partitions of topics that are being deleted


def explain_broker(picture: Picture, broker: BrokerId, *, decommission: bool = False) -> Explanation:
    """Explain a known broker, on request with the steps to remove it. The picture needs only what it hosts."""
    header = picture.header
    registered, departure = header.brokers.get(broker), header.departures.last.get(broker)
    away_ms = departure.time_ms if departure is not None else NOT_KNOWN_MS
    is_look = picture.origin is Origin.LOOK
    paths = [(f"/brokers/ids/{broker}", "it registered")]
    return explanation_of(
        picture,
        f"broker {broker}",
        whereabout(broker, picture.context.header, knows_past=False).removeprefix(f"broker {broker} "),
        is_well=registered is not None and not is_without_session(broker, header) and not _flawed(header, broker),
        since=None if registered is not None else picture.since(away_ms),
        statements=_statements(picture, broker, decommission=decommission),
        causes=last_writes(picture, paths) if is_look else causes_of(picture.story),
        findings=findings_about(picture, brokers=(broker,)),
    )


def _flawed(header: Header, broker: BrokerId) -> list[FlawedZnode]:
    return [each for each in flawed_znodes(header) if each.path == f"/brokers/ids/{broker}"]


def _hosted(context: Context, broker: BrokerId) -> Hosted:
    others = context.header.brokers.keys() - {broker}
    count = preferred = led = lagging = alone = most = deleting = 0
    for _, topic in context.topics:
        hosted = [partition for partition in topic.partitions.values() if broker in partition.replicas]
        if topic.queued_for_deletion:
            deleting += len(hosted)
            continue
        count += len(hosted)
        for partition in hosted:
            most = max(most, len(partition.replicas))
            preferred += partition.replicas[0] == broker
            value = partition.zk_state
            if value is not None:
                led += value.leader == broker
                lagging += broker not in value.isr and broker not in partition.adding
                alone += broker in value.isr and others.isdisjoint(value.isr)
    return Hosted(count, preferred, led, lagging, alone, most, deleting)


def _statements(picture: Picture, broker: BrokerId, *, decommission: bool) -> Iterator[Statement]:
    header, hosted = picture.header, _hosted(picture.context, broker)
    registered, departure = header.brokers.get(broker), header.departures.last.get(broker)
    if registered is None and hosted.partitions and not header.led_by_kraft:
        yield Statement("next step", bring_back((broker,), header))
    yield from (Statement("registration", f"{each.with_mend}.") for each in _flawed(header, broker))
    yield from _machine(registered or (None if departure is None else departure.was), is_away=registered is None)
    if registered is not None and registered.inferred:
        yield Statement(
            "mode", "KRaft, because it leads or is in sync without a registration in /brokers/ids", Certainty.INFERRED
        )
        yield Statement("listeners", ", ".join(registered.endpoints) or "unknown")
    elif is_without_session(broker, header):
        says = f"by a persistent znode. Delete /brokers/ids/{broker}, so that the broker can register"
        yield Statement("registered", says)
    elif registered is not None:
        yield Statement("registered", f"epoch {registered.epoch:#x}, session {registered.session:#x}")
        yield Statement("listeners", ", ".join(registered.endpoints) or "none")
    if header.controller == broker:
        yield Statement("controller", f"named in /controller, epoch {header.controller_epoch}")
    leads = f"{hosted.led} of {counted(hosted.partitions, 'partition')}, preferred leader of {hosted.preferred}"
    yield Statement("leads", leads)
    if hosted.lagging:
        yield Statement("out of sync", f"in {counted(hosted.lagging, 'partition')} that it hosts")
    if hosted.alone:
        fact = Fact.OFFLINE.of(hosted.alone) if registered is None else Fact.ONE_LOSS_FROM_OFFLINE.of(hosted.alone)
        says = f"{fact}, because no other in-sync replica is alive"
        yield Statement("alone", says, Certainty.EXPECTED)
    if decommission and not header.migration.led_by_kraft and blindness(picture) is None:
        yield from _decommission(picture, broker, hosted)


def _machine(broker: Broker | None, *, is_away: bool) -> Iterator[Statement]:
    """Yield the host, the rack and the release as the broker registered them, the last time if it is away."""
    if broker is None:
        return
    rack = f"rack {broker.rack}" if broker.rack else "without a rack"
    yield Statement("last host" if is_away else "host", f"{host_of(broker.endpoints) or 'unknown'}, {rack}")
    if broker.least_release is not None:
        says = f"Kafka {release_word(broker.least_release)} or later, by the form of its registration"
        yield Statement("release", says, Certainty.INFERRED)


def _decommission(picture: Picture, broker: BrokerId, hosted: Hosted) -> Iterator[Statement]:
    """Yield whether the broker can be removed for good, and otherwise the steps to that end."""
    header = picture.header
    is_live = broker in header.brokers
    if not hosted.partitions and hosted.deleting:
        says = (
            f"not yet, because {counted(hosted.deleting, 'partition')} of deleted topics must be removed from it first"
        )
        yield Statement("decommission", says)
        return
    if not hosted.partitions:
        moves = ", and another broker becomes controller" if header.controller == broker else ""
        says = f"possible, because it hosts no replica. Stop it{moves}" if is_live else "done: it hosts no replica"
        yield Statement("decommission", says)
        return
    left = counted(hosted.partitions, "replica")
    yield Statement("decommission", f"not yet, because {left} must move to other brokers first")
    others = len(header.brokers.keys() - {broker})
    if not is_live and hosted.alone:
        only = counted(hosted.alone, "partition")
        says = f"start broker {broker} first, because only it has an in-sync replica of {only} to copy from"
        yield Statement("", says)
    elif others < hosted.most_replicas:
        who = f"only {counted(others, 'other broker', 'is')}" if others else "no other broker is"
        says = f"{who} registered, but a partition has {counted(hosted.most_replicas, 'replica')}. Add a broker first"
        yield Statement("", says)
    elif header.acting:
        move = REASSIGN.filled(**{"move.json": "drained.json"}).way(header.profile.release)
        place = f"kontrast place --from-cluster --drain {broker} --zookeeper ZOOKEEPER > drained.json"
        for command in (place, *move.commands):
            yield Statement("", command)
        yield Statement("", f"stop broker {broker} once it hosts no replica")
    else:
        yield Statement("", "first a controller must be active, because it moves the replicas")
