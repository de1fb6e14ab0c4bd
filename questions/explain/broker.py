"""Where a broker is, what it has, and what its loss takes."""

from __future__ import annotations

from collections.abc import Iterator

from controller.alerts.conditions import counted, plural
from controller.derived.gauges import replicas_by_broker
from controller.model.context import Context
from questions.explain.causes import causes_of, last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, findings_about, whereabout
from questions.picture import NOT_KNOWN_MS, Origin, Picture


def is_known(picture: Picture, broker: int) -> bool:
    """Whether anything in the cluster names the broker."""
    header = picture.header
    return broker in header.brokers or broker in header.departures.last or broker in replicas_by_broker(header)


def explain_broker(picture: Picture, broker: int) -> Explanation:
    """The explanation of a broker that is known."""
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
        statements=tuple(_statements(picture, broker)),
        causes=last_writes(picture, paths) if is_look else causes_of(picture.story),
        findings=findings_about(picture, brokers=(broker,)),
        as_of_ms=picture.as_of_ms,
    )


def _statements(picture: Picture, broker: int) -> Iterator[Statement]:
    header = picture.header
    registered = header.brokers.get(broker)
    if registered is not None and registered.inferred:
        yield Statement("mode", "KRaft: not in /brokers/ids, but it leads or is in sync", Certainty.INFERRED)
        yield Statement("listeners", ", ".join(registered.endpoints) or "not known")
    elif registered is not None:
        rack = f", rack {registered.rack}" if registered.rack else ", without a rack"
        yield Statement("registered", f"epoch {registered.epoch:#x}, session {registered.session:#x}{rack}")
        yield Statement("listeners", ", ".join(registered.endpoints) or "none")
    if header.controller == broker:
        yield Statement("controller", f"it is named in /controller, epoch {header.controller_epoch}")
    hosted = _Hosted(picture.context, broker)
    yield Statement("partitions", f"hosts {hosted.count}, preferred leader of {hosted.preferred}, leads {hosted.led}")
    if hosted.lagging:
        yield Statement("out of sync", f"in {counted(hosted.lagging, 'partition')} that it hosts")
    if hosted.alone:
        are = plural(hosted.alone, "is", "are") if registered is None else "would go"
        says = f"{counted(hosted.alone, 'partition')} {are} offline without it: no other in-sync replica is live"
        yield Statement("alone", says, Certainty.EXPECTED)


class _Hosted:
    """Counts of the partitions that have a replica on a broker."""

    def __init__(self, context: Context, broker: int) -> None:
        self.count = self.preferred = self.led = self.lagging = self.alone = 0
        live = context.header.brokers.keys() - {broker}
        for _, topic in context.topics:
            for partition in topic.partitions.values():
                value = partition.zk_state
                if broker not in partition.replicas or topic.queued_for_deletion:
                    continue
                self.count += 1
                self.preferred += partition.replicas[0] == broker
                if value is not None:
                    self.led += value.leader == broker
                    self.lagging += broker not in value.isr and broker not in partition.adding
                    self.alone += broker in value.isr and live.isdisjoint(value.isr)
