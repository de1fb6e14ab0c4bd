"""The controller: its identity, activity, due writes and predecessors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.contract.ids import NO_BROKER
from controller.view.ensemble import ensemble_in_words
from controller.view.flawed_znodes import harming_failovers, no_controller_because, topic_znodes, why_no_controller
from controller.view.migration import next_step, rollback_of
from controller.view.types import Header
from questions.explain.causes import causes_of, last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, explanation_of, findings_about, since_zxid
from questions.picture import Origin, Picture
from wording.sentences import counted

_NAMED_EVENTS: Final = 10
_GROUP: Final = "controller"  # group of the alerts about the controller


def explain_controller(picture: Picture) -> Explanation:
    """Explain the controller, or its absence. The picture needs no partitions."""
    header = picture.header
    since_ms = header.ghost_since_ms if header.is_ghost else header.term.since_ms
    paths = [("/controller", f"broker {header.controller} took it"), ("/controller_epoch", "its epoch")]
    is_look = picture.origin is Origin.LOOK
    return explanation_of(
        picture,
        _GROUP,
        _headline(picture),
        is_well=_acts(picture),
        since=None if _acts(picture) else picture.since(since_ms),
        statements=_statements(picture),
        causes=last_writes(picture, paths) if is_look else causes_of(picture.story),
        findings=findings_about(picture, group=_GROUP),
    )


def _acts(picture: Picture) -> bool:
    header = picture.header
    if header.kraft_owns_controller:
        return True
    return (
        header.acting
        and header.controller in header.brokers
        and not (header.is_ghost or header.is_poisoned or header.term.is_persistent)
    )


def _headline(picture: Picture) -> str:
    header = picture.header
    if "/controller" in picture.forbidden:
        return "Kontrast may not read /controller"
    if header.controller == NO_BROKER:
        reason = why_no_controller(header)
        because = reason and f", because {reason}"
        return f"no broker is controller{because}, so dead leaders stay unreplaced, and no topic is created or deleted"
    who = f"broker {header.controller} in epoch {header.controller_epoch}"
    if header.kraft_owns_controller:
        claim = f"KRaft epoch {header.migration.claim.kraft_epoch}, /controller_epoch {header.controller_epoch}"
        return f"KRaft controller {header.controller} owns /controller, {claim}. Kontrast does not predict its actions"
    if _acts(picture):
        return f"{who} is active"
    return f"/controller names {who}, but {_why_not(picture)}"


def _why_not(picture: Picture) -> str:
    header = picture.header
    if header.migration.led_by_kraft:
        return "the cluster migrates to KRaft, and a KRaft controller acts"
    if header.term.is_persistent:
        return "the znode is persistent: no broker can be elected, and that one acts only if it was controller before"
    if header.is_ghost:
        return "that broker never took over, because the znode was edited or another session owns it"
    if header.term.failed_at:
        return f"no broker can load {topic_znodes(header.term.failed_at)}, whose content Kafka cannot read"
    if header.term.duplicate_topic_ids:
        return "two topics share one id, so no broker can load them"
    if header.is_poisoned:
        return "it can no longer move a replica (KAFKA-12315)"
    if header.acting:
        return "it is not registered, so brokers cannot find it"
    return "it has not taken over, or has resigned"


def _statements(picture: Picture) -> Iterator[Statement]:
    header = picture.header
    if header.kraft_owns_controller:
        yield Statement("migration", f"phase {header.migration.phase.value.replace('_', ' ')}: {next_step(header)}")
        yield Statement("way back", rollback_of(header).sentence)
    elif header.controller in header.brokers:
        yield Statement(
            "broker", f"{header.controller}, registered with epoch {header.brokers[header.controller].epoch:#x}"
        )
    elif header.controller == NO_BROKER:
        if flawed := no_controller_because(header):
            yield Statement("do", flawed.mend)
    else:
        yield Statement("broker", f"{header.controller} is not registered, so brokers cannot find it")
    if header.controller != NO_BROKER and not header.kraft_owns_controller:
        owner = "no session" if header.term.is_persistent else f"{header.term.session:#x}"
        yield Statement("session", f"{owner} owns /controller")
        if harming := next(iter(harming_failovers(header)), None):
            yield Statement("failover", harming.with_mend)
    if zookeeper := ensemble_in_words(header):
        yield Statement("ZooKeeper", zookeeper)
    yield from _release(picture)
    yield from _due(header)
    for name in sorted(
        name for name, topic in picture.context.topics if topic.queued_for_deletion and topic.ineligible
    ):
        yield Statement("deletion", f"of {name} waits for a broker", Certainty.EXPECTED)
    if header.former.changes:
        yield Statement("changes", f"{counted(header.former.changes, 'controller')} took over in the known history")


def _release(picture: Picture) -> Iterator[Statement]:
    header = picture.header
    low, high = header.configuration.evidence.releases()
    release = header.profile.release
    said = ".".join(map(str, release))
    if header.configuration.profile_is_set:
        yield Statement("release", f"{said}, as given", Certainty.ASSUMED)
    else:
        between = f"between {'.'.join(map(str, low))} and {'.'.join(map(str, high))}"
        yield Statement("release", f"{between}, by the form of its znodes", Certainty.INFERRED)


def _due(header: Header) -> Iterator[Statement]:
    due = [event for event in header.events.values() if event.writes_due]
    for event in due[:_NAMED_EVENTS]:
        writes = counted(event.writes_due, "write")
        yield Statement("next", f"{event.sentence}{since_zxid(event.zxid)}: {writes} due", Certainty.EXPECTED)
    if not due and header.acting:
        yield Statement("next", "no write is due", Certainty.EXPECTED)
