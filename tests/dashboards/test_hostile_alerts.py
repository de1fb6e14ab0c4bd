"""Alerts with any field at any extreme. A real Alertmanager accepts each, and returns it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from controller.contract.alert_row import AlertRow
from controller.contract.outputs import BadRowError, decode_row, encode_row
from controller.says.alert_kinds.kind import NAME_PREFIX
from dashboards.alerting.alertmanager import Alertmanager, RefusedError
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import Message, message_of
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.extremes import any_change, as_json, changes
from tests.rows import Rows

BASE = json.loads(encode_row(Rows().alert("a", topic="orders", partition=1, broker=2, examples=("orders-1",))))
NOW_MS = 1_800_000_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AlertmanagerServer]:
    running = AlertmanagerServer(tmp_path_factory.mktemp("hostile") / "alertmanager")
    running.start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def alertmanager(server: AlertmanagerServer) -> Alertmanager:
    return Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,)))


def messages_of(lines: Sequence[bytes]) -> list[Message]:
    """Return the messages about lines that are rows."""
    found = []
    for line in lines:
        with suppress(BadRowError):
            row = decode_row(line)
            assert isinstance(row, AlertRow)
            message = message_of(row, AlertmanagerConfig(urls=("http://unused",)))
            found += [message, message.unknown(), message.annotated(description=row.cause)]
    return found


def is_taken(alertmanager: Alertmanager, messages: Sequence[Message]) -> bool:
    """Return whether it accepts all messages, and returns those with a possible name of a Kontrast alert."""
    try:
        alertmanager.send(messages, NOW_MS)
    except RefusedError:
        return False
    names = {message.labels: message.label("alertname").removeprefix(NAME_PREFIX) for message in messages}
    told = {labels for labels, name in names.items() if name.isidentifier()}
    return told <= {message.labels for message in alertmanager.alerts()}


def test_each_field_at_each_extreme(alertmanager):
    tried = [(name, as_json(changed)) for name, changed in changes(AlertRow, BASE)]
    messages = messages_of([line for _, line in tried])
    assert len(messages) > len(tried), "nearly all were refused: what was tried?"
    if not is_taken(alertmanager, messages):
        for name, line in tried:
            assert is_taken(alertmanager, messages_of([line])), f"{name}: {line[:2000]!r}"


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_fields_at_extremes(alertmanager, data):
    rows = data.draw(st.lists(any_change(AlertRow, BASE), max_size=5))
    assert is_taken(alertmanager, messages_of([as_json(row) for row in rows]))
