"""Partitions of keys, by the bytes of Kafka's serializers."""

from __future__ import annotations

import pytest

from questions.explain.key import ExplainKey, KeyFormat, key_bytes
from tests.questions.cluster import brokers, controller, look, settings, state, topic


@pytest.mark.parametrize(
    ("text", "key_format", "expected"),
    [
        ("ä", KeyFormat.UTF8, "ä".encode()),
        ("00FF", KeyFormat.HEX, b"\x00\xff"),
        ("1", KeyFormat.LONG, b"\0\0\0\0\0\0\0\x01"),
        ("-1", KeyFormat.LONG, b"\xff" * 8),
        ("123E4567-E89B-12D3-A456-426614174000", KeyFormat.UUID, b"123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_a_key_becomes_the_bytes_of_its_serializer(text, key_format, expected):
    assert key_bytes(text, key_format) == expected


@pytest.mark.parametrize(
    ("text", "key_format"),
    [("0", KeyFormat.HEX), ("1.5", KeyFormat.LONG), (str(2**63), KeyFormat.LONG), ("no", KeyFormat.UUID)],
)
def test_what_is_no_key_of_the_format_is_refused(text, key_format):
    with pytest.raises(ValueError, match=f"is no key of the format {key_format.value}"):
        key_bytes(text, key_format)


def test_acks_all_needs_enough_in_sync_and_acks_1_a_leader():
    base = {**brokers(1, 2), **controller(1), **topic("t", [1, 2]), **settings("t", min_insync_replicas="2")}
    well = ExplainKey(topic="t", key="k").ask(look(base))
    assert (well.leader, well.takes_acks_1, well.takes_acks_all, well.reason) == (1, True, True, None)
    lacking = ExplainKey(topic="t", key="k").ask(look({**base, **state("t", 0, 1, [1])}))
    assert (lacking.takes_acks_1, lacking.takes_acks_all) == (True, False)
    offline = ExplainKey(topic="t", key="k").ask(look({**base, **state("t", 0, -1, [9])}))
    assert (offline.leader, offline.takes_acks_1, offline.takes_acks_all) == (None, False, False)
    deleting = ExplainKey(topic="t", key="k").ask(look({**base, "/admin/delete_topics/t": {}}))
    assert (deleting.takes_acks_1, deleting.reason) == (False, "its topic is being deleted")
