"""Hold the events of the connection's thread, in order and bounded, for the forwarder's thread to take."""

from __future__ import annotations

import threading
from collections import deque
from enum import Enum

from ingest.observed.observations import ZnodeEvent, ZnodeEventKind
from ingest.observed.paths import is_partition_state

MAX_WAITING_EVENTS = 200_000


class SessionState(Enum):
    """The watching session, as session and heartbeat records name it."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # the connection is lost, the session may live on
    LOST = "lost"  # the session is over


class Inbox:
    """Events and session states in the order of their arrival.

    A position counts all events so far. Taken events leave the inbox. With more than MAX_WAITING_EVENTS waiting, the
    inbox keeps only events that a complete read cannot replace, which are creations and deletions. It drops those of
    partition states, because they are numerous and follow from their topics.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: deque[ZnodeEvent] = deque()
        self._states: deque[SessionState] = deque()
        self._position = 0
        self._dropped = 0

    def put_event(self, event: ZnodeEvent) -> None:
        """Leave an event, from the connection's thread."""
        with self._changed:
            if len(self._events) >= MAX_WAITING_EVENTS:
                self._keep_what_no_read_tells()
            self._events.append(event)
            self._position += 1
            self._changed.notify()

    def put_state(self, state: SessionState) -> None:
        """Leave a session state, from the connection's thread."""
        with self._changed:
            self._states.append(state)
            self._changed.notify()

    def _keep_what_no_read_tells(self) -> None:
        kept = [
            event
            for event in self._events
            if event.kind in (ZnodeEventKind.CREATED, ZnodeEventKind.DELETED) and not is_partition_state(event.path)
        ]
        if len(kept) > MAX_WAITING_EVENTS // 2:  # otherwise each further event would repeat this
            kept = kept[-MAX_WAITING_EVENTS // 2 :]
        self._dropped += len(self._events) - len(kept)
        self._events = deque(kept)

    @property
    def position(self) -> int:
        """Return the number of events that ever came."""
        return self._position

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for something to take, at most this time. Return whether there is something."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._events or self._states), timeout_seconds)

    def take_events(self, position: int | None = None) -> list[ZnodeEvent]:
        """Return the events that wait, up to a position."""
        with self._changed:
            behind = 0 if position is None else self._position - position
            return [self._events.popleft() for _ in range(max(0, len(self._events) - behind))]

    def take_states(self) -> list[SessionState]:
        """Return the session states that wait."""
        with self._changed:
            states = list(self._states)
            self._states.clear()
            return states

    def take_dropped(self) -> int:
        """Return the number of events that were dropped since the last call."""
        with self._changed:
            dropped, self._dropped = self._dropped, 0
            return dropped
