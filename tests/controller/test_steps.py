"""Many records at once are the same as one after the other, whatever they are and wherever they are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from controller.contract.effect_rows import Request, Transition
from controller.contract.metadata_rows import PartitionRow, TopicRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.model.context import Context
from controller.restore.stored_context import changed_chunks, encode_header, new_context
from controller.step import step, steps
from controller.watch import loaded_states
from tests.controller.znode_history import ZnodeHistory

CHUNKS = 4


def a_life() -> list[Record]:
    """Return two complete reads with changes after each. Some states are unreadable or out of place."""
    history = ZnodeHistory()
    for generation in (1, 2):
        history.generation, history.seq = generation, -1
        history.send(RecordKind.SNAPSHOT_BEGIN)
        history.write("/controller", {"version": 2, "brokerid": 1, "timestamp": "1"})
        history.write("/controller_epoch", b"1")
        for broker in (1, 2, 3):
            history.broker(broker)
        for name in ("a", "state"):
            history.topic(name, {number: [1, 2, 3] for number in range(4)})
        for name in ("a", "state", "unknown"):
            for number in range(4):
                history.state(name, number, 1, generation, [1, 2])
        history.write("/brokers/topics/a/partitions/0/state", b"\xff not JSON")
        history.write("/brokers/topics/a/partitions/x/state", b"{}")
        history.state("a", 1, 1, generation, [1, 2, 3])
        history.topic("state", {number: [1, 2, 3] for number in range(2)})
        history.send(RecordKind.SNAPSHOT_END)
        history.broker_leaves(1)
        history.state("a", 0, 2, generation + 1, [2])
        history.send(RecordKind.HEARTBEAT)
    return history.records


LIFE = a_life()


def one_by_one(records: list[Record]) -> tuple[Context, list[Row]]:
    context, rows = new_context("c", chunk_count=CHUNKS), list[Row]()
    for record in records:
        outcome = step(context, record)
        context, rows = outcome.context, rows + list(outcome.effects)
    return context, rows


def together(pieces: list[list[Record]]) -> tuple[Context, list[Row]]:
    context, rows = new_context("c", chunk_count=CHUNKS), list[Row]()
    for piece in pieces:
        outcome = steps(context, piece)
        context, rows = outcome.context, rows + list(outcome.effects)
    return context, rows


def stored(context: Context) -> tuple[bytes, dict[int, bytes]]:
    return encode_header(context), changed_chunks(new_context("c", chunk_count=CHUNKS), context)


def assert_as_one_by_one(records: list[Record]) -> None:
    context, rows = together([records])
    alone, expected = one_by_one(records)
    assert rows == expected
    assert stored(context) == stored(alone)


def test_states_that_belong_to_several_events_are_as_one_by_one() -> None:
    """Two brokers shut down one after the other, as only the states of their partitions show."""
    history = ZnodeHistory()
    history.start(1, 2, 3, topics={"t": {number: ([2, 3, 1], 2, 0, [2, 3, 1]) for number in range(3)}})
    for number in range(3):
        history.state("t", number, 3, 1, [3, 1])
    for number in range(3):
        history.state("t", number, 1, 2, [1])
    assert_as_one_by_one(history.records)


@given(
    cuts=st.sets(st.integers(1, len(LIFE) - 1)),
    lost=st.sets(st.integers(0, len(LIFE) - 1), max_size=2),
    again=st.sets(st.integers(0, len(LIFE) - 1), max_size=2),
)
@example(cuts={36, 38}, lost={38}, again=set())  # a read that is cut off after a batch
def test_any_pieces_of_any_life_are_as_its_records(cuts: set[int], lost: set[int], again: set[int]) -> None:
    pieces = [LIFE[begin:end] for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(LIFE)], strict=True)]
    told = [
        [record for kept in piece if id(kept) not in {id(LIFE[at]) for at in lost} for record in repeated(kept, again)]
        for piece in pieces
    ]
    context, rows = together(told)
    expected_context, expected_rows = one_by_one([record for piece in told for record in piece])
    assert rows == expected_rows
    assert stored(context) == stored(expected_context)


def a_read() -> list[Record]:
    """Return a complete read like that of one look, then an identical read. The states come last."""
    read = [record for record in LIFE if record.kind is RecordKind.NODE and record.generation == 1]
    others = [record for record in read if "/partitions/" not in record.path and record.version == 0]
    others.sort(key=lambda record: record.path == "/brokers/topics/a")  # the topic "state" is not taken for a state
    named = [f"/brokers/topics/{topic}/partitions/{number}/state" for topic in ("a", "state") for number in (1, 2, 3)]
    states = [record for record in read if record.path in named]
    found = []
    for generation in (1, 2):
        begin = msgspec.structs.replace(LIFE[0], generation=generation)
        end = msgspec.structs.replace(begin, kind=RecordKind.SNAPSHOT_END)
        all_of_it = enumerate([begin, *others, *states, end])
        found += [
            msgspec.structs.replace(each, generation=generation, seq=at, observed_ms=begin.observed_ms)
            for at, each in all_of_it
        ]
    return found


READ = a_read()
STATES = [at for at, record in enumerate(READ) if "/partitions/" in record.path]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seq": 10_000},
        {"generation": 7},
        {"author": 3},
        {"observed_ms": READ[0].observed_ms + 5},
        {"steady_ms": 5},
        {"path": "/brokers/topics/unknown/partitions/0/state"},
        {"path": "/brokers/topics/a/partitions/9/state"},
        {"path": "/brokers/topics/a/partitions/x/state"},
        {"data": "not JSON"},
        {name: getattr(READ[STATES[0]], name) for name in ("path", "data", "version")},  # once more
    ],
    ids=str,
)
def test_states_of_a_read_are_as_one_by_one_whatever_is_among_them(changes: dict[str, Any]) -> None:
    """A record that is no plain state ends the short way, without loss."""
    for at in (STATES[1], STATES[-1]):
        read = [*READ[:at], msgspec.structs.replace(READ[at], **changes), *READ[at + 1 :]]
        assert_as_one_by_one(read)


@pytest.mark.parametrize(
    ("wall_ms", "steady_ms"),
    [
        (lambda at: 3 * at, None),
        (lambda at: -2 * at, None),
        (lambda at: 3 * at, lambda at: 3 * at + at % 2),
        (lambda at: 3 * at, lambda at: 100 - at),
        (lambda at: 3 * at + 700 * (at > STATES[2]), lambda at: 3 * at),
        (lambda at: 3 * at - 5_000 * (at > STATES[2]), lambda at: 3 * at),
        (lambda at: 400 * at, lambda at: at),
    ],
    ids=["runs", "runs back", "steady", "steady runs back", "set ahead", "set back", "drifts"],
)
def test_states_whose_clocks_run_on_are_as_one_by_one(
    wall_ms: Callable[[int], int], steady_ms: Callable[[int], int] | None
) -> None:
    read = [
        msgspec.structs.replace(
            record, observed_ms=record.observed_ms + wall_ms(at), steady_ms=-1 if steady_ms is None else steady_ms(at)
        )
        for at, record in enumerate(READ[: len(READ) // 2])
    ]
    assert_as_one_by_one(read)


def test_a_clock_that_is_set_back_before_the_states_is_noted() -> None:
    first = STATES[0]
    read = [
        msgspec.structs.replace(record, observed_ms=record.observed_ms - 60_000) if at >= first else record
        for at, record in enumerate(READ[: len(READ) // 2])
    ]
    assert_as_one_by_one(read)


def test_states_of_a_read_share_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    stored_together: list[int] = []

    def load(context: Context, records: Sequence[Record]) -> Context | None:
        loaded = loaded_states.load(context, records)
        stored_together.append(0 if loaded is None else len(records))
        return loaded

    monkeypatch.setattr("controller.step.loaded_states", SimpleNamespace(load=load))
    together([READ])
    assert stored_together == [len(STATES) // 2] * 2


def test_metadata_rows_of_partitions_are_left_out_where_nobody_reads_them() -> None:
    """The cluster lives on with deleted partitions. Everything else is published unchanged."""
    shown = steps(new_context("c", chunk_count=CHUNKS), LIFE)
    hidden = steps(new_context("c", chunk_count=CHUNKS), LIFE, shows_partitions=False)
    assert stored(hidden.context) == stored(shown.context)
    assert any(isinstance(row, PartitionRow) for row in shown.effects)
    kept = [row for row in shown.effects if not isinstance(row, PartitionRow | TopicRow)]
    assert [type(row) for row in hidden.effects] == [type(row) for row in kept]


def test_transitions_and_requests_are_left_out_where_nobody_reads_them() -> None:
    """A broker dies, and an ISR changes while no event is in flight. Everything else is published unchanged."""
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2, 3], 1, 4, [1, 2, 3]), 1: ([2, 3], 2, 4, [2, 3])}})
    history.state("t", 1, 2, 4, [2])
    history.broker_leaves(1)
    history.state("t", 0, 2, 5, [2, 3])
    for life in (LIFE, history.records):
        shown = steps(new_context("c", chunk_count=CHUNKS), life)
        hidden = steps(new_context("c", chunk_count=CHUNKS), life, shows_steps=False)
        assert stored(hidden.context) == stored(shown.context)
        assert {Transition, Request} <= {type(row) for row in shown.effects}
        kept = [row for row in shown.effects if not isinstance(row, (Transition, Request))]
        assert unplaced(hidden.effects) == unplaced(kept)


def unplaced(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without their places among all rows of their records."""
    return [msgspec.structs.replace(row, ordinal=0) for row in rows]


def repeated(record: Record, again: set[int]) -> list[Record]:
    return [record] * (2 if any(LIFE[at] is record for at in again) else 1)


def test_no_records_change_nothing() -> None:
    context = new_context("c", chunk_count=CHUNKS)
    assert steps(context, []).context is context


def test_what_a_log_tells_of_an_author_is_taken_one_by_one() -> None:
    records = [msgspec.structs.replace(record, author=7, cxid=1) for record in LIFE]
    assert together([records])[1] == one_by_one(records)[1]
