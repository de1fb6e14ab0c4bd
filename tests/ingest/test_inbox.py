"""The inbox under too many events, which keeps the events that no complete read could replace."""

from __future__ import annotations

import pytest

from ingest.observed import inbox as inbox_module
from ingest.observed.inbox import Inbox
from ingest.observed.observations import ZnodeEvent, ZnodeEventKind

STATE = "/brokers/topics/t/partitions/0/state"
DELETION = "/admin/delete_topics/t"


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Inbox:
    monkeypatch.setattr(inbox_module, "MAX_WAITING_EVENTS", 10)
    return Inbox()


def test_what_came_and_went_is_kept_when_the_rest_is_dropped(inbox: Inbox) -> None:
    came, went = ZnodeEvent(ZnodeEventKind.CREATED, DELETION), ZnodeEvent(ZnodeEventKind.DELETED, DELETION)
    inbox.put_event(came)
    for _ in range(9):
        inbox.put_event(ZnodeEvent(ZnodeEventKind.CHANGED, STATE))
    assert inbox.take_dropped() == 0
    inbox.put_event(went)
    assert inbox.take_dropped() == 9
    assert inbox.take_dropped() == 0
    assert inbox.take_events() == [came, went]
    assert inbox.position == 11


def test_of_too_many_that_should_be_kept_the_newest_are(inbox: Inbox) -> None:
    events = [ZnodeEvent(ZnodeEventKind.CREATED, f"{DELETION}{number}") for number in range(11)]
    for event in events:
        inbox.put_event(event)
    assert inbox.take_dropped() == 5
    assert inbox.take_events() == events[5:]
