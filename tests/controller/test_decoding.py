"""Bytes from others, which are decoded or refused with the one error of their place."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from controller.contract.decoding import JsonDecoder, MsgpackDecoder, UndecodableError
from controller.contract.outputs import BadRowError, decode_row, encode_row
from controller.contract.records import BadRecordError, decode_record, encode_record
from controller.contract.znodes import BrokerZnode, ClusterIdZnode, TopicZnode, ZnodeError, decode
from controller.restore.stored_context import StateVersionError, encode_header, restore_context
from tests.controller.znode_history import ZnodeHistory

ROOT = Path(__file__).parents[2]

DEEP = 1_000_000  # Python 3.14 reads a hundred thousand on a stack of 8 MB
DEEPLY_NESTED = {
    "arrays": b"[" * DEEP,
    "closed arrays": b"[" * DEEP + b"]" * DEEP,
    "objects": b'{"a":' * DEEP,
    "arrays in an unknown field": b'{"unknown":' + b"[" * DEEP,
    "arrays in a known field": b'{"data":' + b"[" * DEEP,
    "objects in a field of rows": b'{"kind":"gauges","v":1,"elections":' + b'{"a":' * DEEP,
}


def a_life() -> ZnodeHistory:
    return ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 2, 0, [2])}})


VALID_RECORDS = [encode_record(record) for record in a_life().records]
STORED_HEADER = encode_header(a_life().context)
VALID_ROWS = [encode_row(row) for row in a_life().effects]


@pytest.mark.parametrize("line", DEEPLY_NESTED.values(), ids=DEEPLY_NESTED)
def test_what_is_nested_too_deeply_is_refused_at_every_place(line):
    with pytest.raises(BadRecordError, match="not a record"):
        decode_record(line)
    with pytest.raises(BadRowError, match="not an output row"):
        decode_row(line)
    for content in (BrokerZnode, TopicZnode):
        with pytest.raises(ZnodeError):
            decode(line, content)
    with pytest.raises(UndecodableError):
        JsonDecoder(object).decode(line)


def test_a_record_and_a_row_that_carry_deep_nesting_say_so():
    record = VALID_RECORDS[0][:-1] + b',"unknown":' + b"[" * DEEP
    with pytest.raises(BadRecordError, match="nested too deeply"):
        decode_record(record)
    row = VALID_ROWS[0][:-1] + b',"unknown":' + b'{"a":' * DEEP
    with pytest.raises(BadRowError, match="nested too deeply"):
        decode_row(row)


def test_deep_nesting_that_is_a_value_of_a_record_is_refused_by_the_znode():
    history = a_life()
    history.write("/brokers/topics/t", b'{"version":1,"unknown":' + b'{"0":' * DEEP)
    assert any(row.output == "refused" and "nested too deeply" in row.reason for row in history.effects)


def test_half_of_a_character_in_a_znode_is_a_question_mark_as_java_writes_it():
    content = rb'{"version":5,"jmx_port":-1,"endpoints":["PLAINTEXT://h:1"],"rack":"\udfff","more":[1,"\ud800"]}'
    broker = decode(content, BrokerZnode)
    assert broker.rack == "?"
    assert decode(rb'{"id":"\ud83d\udca5"}', ClusterIdZnode).id == "\U0001f4a5"


def test_deep_nesting_around_half_of_a_character_is_refused():
    content = b'{"a":' * 990 + rb'"\ud800"' + b"}" * 990
    with pytest.raises(ZnodeError, match="nested too deeply"):
        decode(content, ClusterIdZnode)


@pytest.mark.parametrize("encoded", [b"\x91" * DEEP, b"\x81\xa1a" * DEEP, b"", b"\xc1", b"\xdf\xff\xff\xff\xff"])
def test_stored_state_that_is_damaged_is_refused(encoded):
    with pytest.raises(StateVersionError, match="stored state"):
        restore_context("c", STORED_HEADER[:2] + encoded, {}.get)
    with pytest.raises(UndecodableError):
        MsgpackDecoder(dict[str, object]).decode(encoded)


def test_messagepack_that_is_nested_too_deeply_says_so():
    with pytest.raises(UndecodableError, match="nested too deeply"):
        MsgpackDecoder(object).decode(b"\x91" * DEEP)


def damaged(valid: list[bytes]) -> st.SearchStrategy[bytes]:
    """Return valid lines in which one piece was replaced by arbitrary bytes."""
    return st.builds(
        lambda line, start, length, piece: line[:start] + piece + line[start + length :],
        st.sampled_from(valid),
        st.integers(0, 400),
        st.integers(0, 40),
        st.binary(max_size=20) | st.sampled_from([b"[" * DEEP, b"1e400", b"9" * 5000, b'"\\ud800"', b"\x00", b"null"]),
    )


@pytest.mark.parametrize(
    ("valid", "decode", "encode", "refused"),
    [(VALID_RECORDS, decode_record, encode_record, BadRecordError), (VALID_ROWS, decode_row, encode_row, BadRowError)],
    ids=("record", "row"),
)
@given(data=st.data())
def test_any_bytes_are_decoded_or_refused(valid, decode, encode, refused, data):
    with contextlib.suppress(refused):
        decoded = decode(data.draw(st.binary() | damaged(valid)))
        assert decode(encode(decoded)) == decoded


@given(st.binary() | st.builds(lambda end: STORED_HEADER[2:end], st.integers(2, len(STORED_HEADER) - 1)))
def test_any_bytes_that_are_no_stored_state_are_refused(encoded):
    with pytest.raises(StateVersionError):
        restore_context("c", STORED_HEADER[:2] + encoded, {}.get)


# Files that Kontrast or Spark wrote on the same machine.
OWN_FILES = {"transport/segments.py", "streaming/checkpoint/directory.py"}


def test_nothing_else_decodes_json_or_messagepack():
    found = set()
    for package in ("cli", "controller", "dashboards", "ingest", "outputs", "streaming", "transport"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and ast.unparse(node) in (
                    "json.loads",
                    "json.load",
                    "msgspec.json.decode",
                    "msgspec.json.Decoder",
                    "msgspec.msgpack.decode",
                    "msgspec.msgpack.Decoder",
                ):
                    found.add(str(path.relative_to(ROOT)))
    assert found - OWN_FILES == {"controller/contract/decoding.py"}
