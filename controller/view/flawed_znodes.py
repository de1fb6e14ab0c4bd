"""Present findings of the table of what Kafka does not survive (`contract/consequences.py`), for answers and alerts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from controller.contract.consequences import CONSEQUENCES, Consequence, consequence_of
from controller.contract.flaw import Flaw, FoundFlaw
from controller.contract.ids import NO_BROKER, BrokerId
from controller.contract.znode_table import Place, place_of
from controller.model.context import Header
from controller.says.remedies.remedy import Advice
from controller.view.partition_issues import PartitionIssue
from wording.sentences import joined

OF_ZNODES: Final = "znodes"
"""Subject of the alert on znodes at which brokers end."""

_NAMED: Final = 3
_STATE_LOST: Final = PartitionIssue.STATE_LOST.of(())
_LOST_AFTER_MS: Final = 10_000
_CONTROLLER: Final = Place.CONTROLLER.value


class FlawedZnode(NamedTuple):
    """A znode with the consequence of its flaw in the cluster's release. `mend` ends with a failover if one helps."""

    path: str
    flaw: Flaw
    consequence: Consequence
    fault: str  # a clause without the effect
    mend: str

    @property
    def is_deadly(self) -> bool:
        """Return whether a broker or a controller ends, or misses what the present one knows."""
        return self.consequence.stops_start or self.consequence.stops_brokers or self.consequence.harms_failover

    @property
    def sentence(self) -> str:
        """Return the flaw and its consequence, without the remedy."""
        return f"{self.fault}: {self.consequence.effect}"

    @property
    def with_mend(self) -> str:
        """Return the flaw, its consequence and the remedy, without a full stop."""
        return f"{self.sentence}. {self.mend.removesuffix('.')}"

    @property
    def advice(self) -> Advice:
        """Return the step that mends the znode."""
        return Advice(self.mend)


def flawed_znodes(header: Header) -> Iterator[FlawedZnode]:
    """Yield the znodes that Kafka does not survive as they are, by path."""
    flaws = {
        f"/brokers/topics/{second}": FoundFlaw(Flaw.SAME_ID, f"has the topic_id of topic {first}")
        for _, first, second in header.term.duplicate_topic_ids
    }
    if header.term.is_persistent and header.controller != NO_BROKER and not header.kraft_owns_controller:
        flaws[_CONTROLLER] = FoundFlaw(Flaw.PERSISTENT)
    flaws |= {path: FoundFlaw(flaw) for path, flaw in ({**dict(_lost_states(header)), **header.flawed}).items()}
    found = []
    names = {path: found for path, found in header.besides.items() if found.flaw is Flaw.WRONG_NAME}
    for path, (flaw, details) in sorted({**header.besides, **flaws, **names}.items()):
        consequence = consequence_of(path, flaw, header.profile.release)
        if consequence is not None:
            found.append((path, flaw, consequence, f"{path} {details or flaw.predicate}"))
    harmful = [path for path, _, consequence, _ in found if consequence.harms_failover and path != _CONTROLLER]
    for path, flaw, consequence, fault in found:
        last = f" {_failover(header, [other for other in harmful if other != path])}"
        mend = consequence.mend + (last if consequence.then_fail_over else "")
        yield FlawedZnode(path, flaw, consequence, fault, mend)


def _failover(header: Header, others: Sequence[str] = ()) -> str:
    others = [*others, *(["the lost topic ids"] if topics_without_id(header) else [])]
    return f"Delete /controller after the mend of {znodes_in_words(others)}." if others else "Then delete /controller."


def topics_without_id(header: Header) -> int:
    """Return the number of topics that a failover gives an id, while other topics have one."""
    topics, with_id = header.tally.gauges.topics, header.tally.gauges.topics_with_id
    return topics - with_id if 0 < with_id < topics and header.profile.sends_topic_ids else 0


def _lost_states(header: Header) -> Iterator[tuple[str, Flaw]]:
    """Yield states that were there before. A single read may find a new partition, whose state comes in seconds."""
    patience_ms = 0 if header.knows_past else _LOST_AFTER_MS
    for key, group in header.tally.issues.items() if header.acting else ():
        if key == _STATE_LOST and header.time_ms - group.since_ms >= patience_ms:
            for topic, _, number in (name.rpartition("-") for name in group.examples):
                yield f"/brokers/topics/{topic}/partitions/{number}/state", Flaw.ABSENT


def no_controller_because(header: Header) -> FlawedZnode | None:
    """Return the znode that keeps all brokers from being controller, with all mends before a failover.

    It is /controller if that has a flaw. Topics' znodes do not count.
    """
    stopping = (each for each in flawed_znodes(header) if each.consequence.stops_controllers)
    others = [each for each in stopping if place_of(each.path) is not Place.TOPIC]
    first = min(others, key=lambda each: each.path != _CONTROLLER, default=None)
    return None if first is None else first._replace(mend=mends_before_failover(header))


def mends_before_failover(header: Header) -> str:
    """Return the steps that mend what a failover needs, each once, with the failover as the last one."""
    wanted = [each.consequence for each in flawed_znodes(header) if each.consequence.harms_failover]
    wanted.sort(key=lambda each: each in CONSEQUENCES[Place.CONTROLLER])
    last = [_failover(header)] if any(each.then_fail_over for each in wanted) else []
    return " ".join(dict.fromkeys([*(each.mend for each in wanted), *last]))


def harming_failovers(header: Header) -> tuple[FlawedZnode, ...]:
    """Return the znodes at which the next controller fails, or loses what the present one knows."""
    return tuple(
        each
        for each in flawed_znodes(header)
        if each.consequence.harms_failover and each.path != _CONTROLLER  # whose deletion is the cure
    )


def why_no_controller(header: Header) -> str:
    """Return the znodes at which every new controller fails, as a clause, empty if none is known."""
    flawed, unloadable = no_controller_because(header), header.damaged.unloadable
    if flawed is not None:
        return flawed.fault if flawed.path in header.besides else f"{flawed.path} cannot be read ({flawed.flaw.value})"
    return f"none can load {topic_znodes(unloadable)}" if unloadable else ""


def stopping_starts(header: Header, broker: BrokerId | None = None) -> Iterator[FlawedZnode]:
    """Yield the znodes that end the start of this broker, or of any broker."""
    for each in flawed_znodes(header):
        concerns = broker is None or each.flaw is not Flaw.SAME_ENDPOINT or each.path == f"/brokers/ids/{broker}"
        if each.consequence.stops_start and concerns:
            yield each


def topic_znodes(topics: Collection[str]) -> str:
    """Return the paths of some topics' znodes, the first by name, and the number of the rest."""
    return znodes_in_words([f"/brokers/topics/{name}" for name in sorted(topics)])


def znodes_in_words(paths: Sequence[str]) -> str:
    """Return the first paths, and the number of the rest."""
    more = len(paths) - _NAMED
    return joined([*paths[:_NAMED], f"{more} more"] if more > 0 else paths)
