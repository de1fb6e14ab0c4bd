"""States that violate a named invariant, refused after a complete read and on restoring."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from controller.model.context import Context, Header
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.rules.migration_phases import LED_BY_KRAFT
from controller.transaction.transaction import Transaction
from controller.view.invariants import (
    EVENTS_ARE_PENDING,
    EVENTS_KNOW_THEIR_QUEUES,
    IDLE_UNDER_KRAFT,
    TOPICS_ARE_IN_THEIR_CHUNKS,
    InvariantError,
)
from controller.watch import complete_read
from tests.controller.znode_history import ZnodeHistory, on

ALL = (1, 2, 3)


def with_an_election_due() -> ZnodeHistory:
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.broker_leaves(2)
    assert history.context.header.events
    return history


def stored_with(change: Callable[[Header], None]) -> bytes:
    context = with_an_election_due().context
    header = context.header.copy()
    change(header)
    return encode_header(Context(header, context.topics))


def without_what_is_left(header: Header) -> None:
    header.events = {number: replace(event, pending=0) for number, event in header.events.items()}


def numbered_again(header: Header) -> None:
    header.next_event = 0


def led_by_kraft(header: Header) -> None:
    header.migration.phase = next(iter(LED_BY_KRAFT))


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (without_what_is_left, EVENTS_ARE_PENDING),
        (numbered_again, EVENTS_ARE_PENDING),
        (led_by_kraft, IDLE_UNDER_KRAFT),
    ],
)
def test_a_stored_header_that_violates_an_invariant_is_not_restored(change, invariant):
    with pytest.raises(InvariantError, match=invariant):
        restore_context("c", stored_with(change), lambda _: None)


def test_a_stored_event_that_miscounts_its_queues_is_not_restored():
    history = with_an_election_due()
    chunks = changed_chunks(new_context("c", chunk_count=8), history.context)
    (event,) = history.context.header.events.values()
    assert restore_context("c", encode_header(history.context), chunks.get).header.events == {event.id: event}
    with pytest.raises(InvariantError, match=f"{EVENTS_KNOW_THEIR_QUEUES}: BrokerChange"):
        restore_context("c", encode_header(history.context), lambda _: None)


def test_a_topic_in_another_chunk_is_found_when_the_chunk_is_loaded():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    stored = changed_chunks(new_context("c", chunk_count=8), history.context)
    (at,) = stored
    restored = restore_context("c", encode_header(history.context), lambda _: stored[at])
    assert set(restored.topics.chunk(at)) == {"t"}
    with pytest.raises(InvariantError, match=f"{TOPICS_ARE_IN_THEIR_CHUNKS}: t in chunk {at + 1}"):
        restored.topics.chunk(at + 1)


def test_a_complete_read_after_which_an_event_miscounts_its_queues_fails(monkeypatch):
    adopt = complete_read.adopt
    (event,) = with_an_election_due().context.header.events.values()

    def planted(tx: Transaction) -> None:
        adopt(tx)
        tx.header.events = {event.id: replace(event, topics={"gone": None, **event.topics})}
        tx.header.next_event = event.id + 1

    monkeypatch.setattr(complete_read, "adopt", planted)
    with pytest.raises(InvariantError, match=f"{EVENTS_KNOW_THEIR_QUEUES}: BrokerChange"):
        ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))


def test_a_complete_read_keeps_the_invariants_of_events_in_flight():
    history = with_an_election_due()
    history.start(1, 3, topics=on([2, 3], 2, 0, [2, 3]))
    assert not history.context.header.feed.quarantined
