"""ZooKeeper's answers as bytes. Invalid ones count as a lost connection, and cost no more than their length."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.serialization import Exists, GetChildren, GetData

from ingest.observed.observations import Value
from ingest.zookeeper.requests import Answer, MultiRead, SingleRead

PATHS = [b"/a", b"/b"]
STAT = struct.pack("!qqqqiiiqiiq", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
VALUE = struct.pack("!i", 3) + b"abc" + STAT
CHILDREN = struct.pack("!i", 2) + struct.pack("!i", 1) + b"x" + struct.pack("!i", 1) + b"y"
END = struct.pack("!i?i", -1, True, -1)


def result(operation: int, content: bytes) -> bytes:
    return struct.pack("!i?i", operation, False, 0) + content


READ = result(GetData.type, VALUE) + result(GetChildren.type, CHILDREN) + END


def multi_read() -> MultiRead:
    return MultiRead(GetData.type, PATHS, lambda: (1, 2))


def test_an_answer_has_values_and_children():
    assert multi_read().deserialize(READ, 0).results == [Value(b"abc", 1, 2, 5, 8, mtime_ms=4, ctime_ms=3), ["x", "y"]]


@pytest.mark.parametrize(
    "buffer",
    [
        result(GetChildren.type, struct.pack("!ii", 2**31 - 1, -4)) * 2 + END,
        result(GetChildren.type, struct.pack("!ii", 2**31 - 1, 0)) * 2 + END,
        result(GetData.type, struct.pack("!i", 2**31 - 1)) * 2 + END,
        result(GetChildren.type, struct.pack("!ii", 1, 1) + b"\xff") * 2 + END,
        READ[: -len(END)],
        result(GetData.type, VALUE) + END,
        result(GetData.type, VALUE) * 3 + END,
    ],
    ids=["names of less than nothing", "names of nothing", "a long value", "no text", "no end", "too few", "too many"],
)
def test_an_answer_that_cannot_be_read_is_a_lost_connection(buffer):
    with pytest.raises(ConnectionLoss, match=r"MultiRead\(2 paths\) has an answer that cannot be read"):
        multi_read().deserialize(buffer, 0)


def damaged(valid: bytes) -> st.SearchStrategy[bytes]:
    """Return the bytes with one piece replaced by arbitrary bytes."""
    return st.builds(
        lambda start, length, piece: valid[:start] + piece + valid[start + length :],
        st.integers(0, len(valid)),
        st.integers(0, 16),
        st.binary(max_size=16),
    )


@given(st.binary() | damaged(READ))
def test_any_bytes_are_an_answer_or_a_lost_connection(buffer):
    try:
        answer = multi_read().deserialize(buffer, 0)
    except ConnectionLoss:
        return
    assert isinstance(answer, Answer)
    assert len(answer.results) == len(PATHS)


@given(st.sampled_from([Exists.type, GetData.type, GetChildren.type]), st.binary() | damaged(VALUE) | damaged(CHILDREN))
def test_any_bytes_are_the_answer_to_a_single_read_or_a_lost_connection(operation, buffer):
    try:
        answer = SingleRead(operation, b"/a").deserialize(buffer, 0)
    except ConnectionLoss:
        return
    assert answer is True or isinstance(answer, Value | list)
