"""The replica's adapter outside of Spark, in pyspark's own tester, with its reads and writes of state."""

from __future__ import annotations

import json
from array import array

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from controller.contract.alert_row import AlertRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, decode_row
from controller.contract.records import Record, RecordKind, encode_record
from controller.restore import stored_context
from controller.view.invariants import IDLE_UNDER_KRAFT, InvariantError
from streaming import replica as replica_module
from streaming.published import APPLIED, pack, unpack
from streaming.replica import ReplicaProcessor
from streaming.sources.journal_source import cluster_of
from tests.streaming.cluster_records import ClusterLife, Streams, life_of, rows_of

TOPICS = 30


class ReplicaTester:
    """One cluster's replica, whose uses of its chunks are noted."""

    def __init__(self, streams: Streams) -> None:
        self._config = streams.config()
        self.read: list[int] = []
        self.written: list[int] = []
        self._tester = TwsTester(ReplicaProcessor(run="a", config=self._config))
        chunks = self._tester.processor._chunk_state
        get, update = chunks.getValue, chunks.updateValue
        chunks.getValue = lambda key: self.read.append(key[0]) or get(key)
        chunks.updateValue = lambda key, value: self.written.append(key[0]) or update(key, value)

    def apply(self, lines: list[bytes], cluster: str = "east") -> dict[str, list[bytes]]:
        """Return the rows of a batch with these lines."""
        self.read.clear()
        self.written.clear()
        offsets = array("q", range(len(lines)))
        block = Row(partition=0, offset=-1, offsets=offsets.tobytes(), value=pack(b"\n".join(lines)))
        rows: dict[str, list[bytes]] = {output: [] for output in OUTPUTS}
        for row in self._tester.test(cluster, [block]):
            if row.output == APPLIED:
                self.applied = json.loads(row["values"])
                continue
            values = unpack(row["values"]).split(b"\n")
            assert len(values) == row["count"]
            rows[row.output] += values
        return rows

    def forget(self) -> None:
        """Clear the memory, as in a fresh Python process."""
        replica_module._remembered.clear()


@pytest.fixture
def tester(streams) -> ReplicaTester:
    tester = ReplicaTester(streams)
    tester.forget()
    return tester


def one_more(life: ClusterLife, kind: RecordKind, **fields) -> bytes:
    life.send(kind, **fields)
    return life.lines[-1]


def moment_of(record):
    return {"generation": record.generation, "wall_ms": record.observed_ms, "steady_ms": record.steady_ms}


def test_a_batch_publishes_what_the_core_says_and_what_it_did(tester):
    life = life_of("east", topics=TOPICS)
    assert tester.apply(life.lines) == life.rows()
    assert tester.applied == {
        "cluster": "east",
        "records": len(life.lines),
        "refused": 0,
        "first": moment_of(life.records[0]),
        "last": moment_of(life.records[-1]),
        "lacks_records": False,
        "picture": "60 partitions of 30 topics on 3 brokers, broker 1 is controller, 0 partitions cannot be used",
        "failures": 0,
        "forgotten": False,
    }


def test_what_a_deposed_forwarder_still_sends_is_dropped_in_the_same_batch_too(tester):
    deposed, elected = life_of("east", topics=TOPICS), life_of("east", topics=TOPICS, losses=0).in_generation(2)
    in_time, late = deposed.records[: -3 * TOPICS], deposed.records[-3 * TOPICS :]
    arrived = [*in_time, *elected.records, *late]
    assert tester.apply([encode_record(record) for record in arrived]) == rows_of(arrived)


def test_a_heartbeat_needs_the_header_alone_and_an_isr_change_one_chunk(tester):
    life = life_of("east", topics=TOPICS, losses=0)
    tester.apply(life.lines)
    assert len(set(tester.written)) > 5
    for process in ("the same", "a fresh one"):
        if process == "a fresh one":
            tester.forget()
        (gauges,) = tester.apply([one_more(life, RecordKind.HEARTBEAT, value={"session": "connected"})])["gauges"]
        assert json.loads(gauges)["partitions"] == 2 * TOPICS
        assert (tester.read, tester.written) == ([], [])
    tester.forget()
    life.state("topic-3", 0, 1, 0, [1])
    assert len(tester.apply([life.lines[-1]])["metadata"]) == 1
    assert len(set(tester.read)) == 1
    assert set(tester.written) == set(tester.read)


def test_a_fresh_process_says_the_same_as_one_that_remembers(tester):
    life = life_of("east", topics=TOPICS)
    rows: dict[str, list[bytes]] = {output: [] for output in OUTPUTS}
    for first in range(0, len(life.lines), 17):
        tester.forget()
        for output, published in tester.apply(life.lines[first : first + 17]).items():
            rows[output] += published
    assert rows == life.rows()


@pytest.mark.parametrize("process", ["the same", "a fresh one"])
def test_a_loss_is_stored_as_its_records_until_there_is_time_for_its_chunks(tester, process):
    life = life_of("east", topics=TOPICS, losses=0)
    death = len(life.records)
    life.lose_broker_3(TOPICS)
    heartbeat = death + 1 + TOPICS
    rows = tester.apply(life.lines[:death])
    for first, behind, is_kept in [
        (death, death + 1, True),
        (death + 1, death + 9, True),
        (death + 9, heartbeat, process == "the same"),
        (heartbeat, heartbeat + 1, process != "the same"),
        (heartbeat + 1, len(life.lines), True),
    ]:
        if process == "a fresh one" and first == death + 9:
            tester.forget()
        for output, published in tester.apply(life.lines[first:behind]).items():
            rows[output] += published
        assert (tester.written == []) is is_kept
    assert rows == life.rows()


def test_a_repeated_batch_works_on_the_stored_state_not_on_the_remembered_one(tester):
    life = life_of("east", topics=TOPICS)
    half = len(life.lines) // 2
    tester.apply(life.lines[:half])
    state = tester._tester
    header = state.peekValueState("header", "east")
    chunks = dict(state.peekMapState("chunks", "east"))
    first = tester.apply(life.lines[half:])
    state.updateValueState("header", "east", header)
    state.updateMapState("chunks", "east", chunks)
    assert tester.apply(life.lines[half:]) == first


def test_what_is_no_record_is_counted_and_kept_with_its_place_bytes_and_reason(tester):
    life = life_of("east", topics=1)
    texts = [
        life_of("west", topics=1).lines[0],
        b"",
        b'{"cluster": "east", "kind": "unheard-of"}',
        b'{"cluster":"","generation":1,"seq":0,"kind":"heartbeat","observed_ms":1,"v":1}',
        b'{"cluster":"east","generation":1,"seq":9,"kind":"heartbeat","observed_ms":1,"v":99}',
    ]
    rows = tester.apply([life.lines[0], b"\xff\x00", *texts, *life.lines[1:]])
    refused = [json.loads(row) for row in rows.pop("refused")]
    assert [(row["seq"], row["data"], row["data_base64"]) for row in refused] == [
        (1, None, "/wA="),
        *((at, text.decode(), None) for at, text in enumerate(texts, 2)),
    ]
    assert all(row["reason"] for row in refused)
    assert rows == {output: published for output, published in life.rows().items() if output != "refused"}
    assert (tester.applied["records"], tester.applied["refused"]) == (len(life.lines), 1 + len(texts))
    tester.apply([b"garbage"])
    assert (tester.applied["records"], tester.applied["refused"], tester.applied["first"]["wall_ms"]) == (0, 1, 0)


def test_a_record_that_is_nested_too_deeply_is_refused_and_the_others_are_applied(tester):
    life = life_of("east", topics=1)
    deep = life.lines[-1][:-1] + b',"unknown":' + b"[" * 100_000
    rows = tester.apply([*life.lines, deep])
    (refused,) = map(json.loads, rows["refused"])
    assert refused["reason"] == "not a record: nested too deeply"
    assert tester.applied["records"] == len(life.lines)
    assert cluster_of(deep) == "east"
    assert cluster_of(b'{"cluster":"east","unknown":' + b"[" * 100_000) == ""


def test_a_key_has_no_newline_in_it_whatever_a_topic_is_called(tester):
    life = ClusterLife("east")
    life.snapshot(2)
    life.records.pop()
    life.send(RecordKind.NODE, "/brokers/topics/odd\nname", {"version": 2, "partitions": {"0": [1, 2]}})
    life.state("odd\nname", 0, 1, 0, [1, 2])
    life.send(RecordKind.SNAPSHOT_END)
    rows = tester.apply(life.lines)
    assert any(json.loads(row).get("topic") == "odd\nname" for row in rows["metadata"])


FAILURE = OverflowError("can't convert\n  int")


def failing_at(seq: int, function):
    """Wrap the core so that it fails at one record, because no known input makes it fail."""

    def fail(context, records):
        if any(record.seq == seq for record in records):
            raise FAILURE
        return function(context, records)

    return fail


def failing_with_another_error(seq: int, function):
    def fail(context, records):
        return {}[seq]

    return fail


def test_a_forgotten_cluster_is_void_in_each_standing_output(tester):
    life = life_of("east", topics=TOPICS)
    tester.apply(life.lines)
    again = life.in_generation(3)
    rows = tester.apply([encode_record(forgotten(life, generation=2))])
    for output in STANDING_OUTPUTS:
        beginning = decode_row(rows[output][-1])
        assert isinstance(beginning, BeginningRow)
        assert beginning.forgotten
    assert [alert.state for alert in alerts_in(rows, "open")] == []
    assert (tester.applied["forgotten"], tester.applied["lacks_records"]) == (True, False)
    tester.forget()  # the stored state for a fresh process
    rows = tester.apply(again.lines)
    assert (tester.applied["forgotten"], tester.applied["picture"][:30]) == (False, "60 partitions of 30 topics on ")
    assert decode_row(rows["gauges"][-1]).partitions == 2 * TOPICS


def forgotten(life: ClusterLife, generation: int) -> Record:
    return Record(cluster=life.cluster, generation=generation, seq=0, kind=RecordKind.FORGOTTEN, observed_ms=2_000_000)


def alerts_in(rows: dict[str, list[bytes]], state: str) -> list[AlertRow]:
    found = map(decode_row, rows["alerts"])
    return [row for row in found if isinstance(row, AlertRow) and row.state == state]


def test_a_cluster_whose_records_fail_is_in_quarantine_until_a_complete_read(tester, monkeypatch):
    life = life_of("east", topics=TOPICS, losses=1)
    half = len(life.lines) // 2
    tester.apply(life.lines[:half])
    with monkeypatch.context() as patched:
        patched.setattr(replica_module, "steps", failing_at(half + 3, replica_module.steps))
        rows = tester.apply(life.lines[half:])
        assert (tester.applied["lacks_records"], tester.applied["records"]) == (True, len(life.lines) - half)
        west = life_of("west", topics=2, losses=1)
        assert tester.apply(west.lines, cluster="west") == west.rows()
    kept = [json.loads(line)["data"].encode() for line in rows["refused"]]
    assert kept == life.lines[half:]
    for output in STANDING_OUTPUTS:
        assert isinstance(decode_row(rows[output][0]), BeginningRow)
    (alert,) = alerts_in(rows, "open")
    last = life.records[-1]
    position = f"Records up to number {last.seq} of generation {last.generation} could not be applied"
    assert alert.alert == "ClusterQuarantined"
    assert alert.cause.endswith(f"until the next complete read. {position} (OverflowError: can't convert int)")
    assert not decode_row(rows["gauges"][-1]).ready
    again = life.in_generation(2)
    rows = tester.apply(again.lines)
    assert [alert.alert for alert in alerts_in(rows, "resolved")][:1] == ["ClusterQuarantined"]
    expected = {line for line in again.rows()["metadata"] if b'"topic"' in line}
    assert expected <= set(rows["metadata"])


def test_a_cluster_that_fails_each_complete_read_fills_no_output_with_its_records(tester, monkeypatch):
    kept, causes = [], []
    for generation in range(1, 6):
        life = life_of("east", topics=TOPICS, losses=0).in_generation(generation)
        failing = failing_with_another_error if generation == 4 else failing_at
        with monkeypatch.context() as patched:
            patched.setattr(replica_module, "steps", failing(3, replica_module.steps))
            tester.forget()
            rows = tester.apply(life.lines)
        kept.append(len(rows["refused"]))
        causes.append(alerts_in(rows, "open")[-1].cause)
        assert tester.applied["failures"] == generation
    size = len(life.lines)
    assert kept == [size, 0, 0, size, 0]
    assert causes[0].endswith("can't convert int)")
    assert causes[1].endswith(f"failure 2 in a row. {size} records are not kept in `refused`")
    assert causes[4].endswith(f"failure 5 in a row. {3 * size} records are not kept in `refused`")


def test_a_recovered_cluster_that_fails_again_is_asked_for_with_patience(tester, monkeypatch):
    for generation in (1, 3):
        life = life_of("east", topics=2).in_generation(generation)
        with monkeypatch.context() as patched:
            patched.setattr(replica_module, "steps", failing_at(3, replica_module.steps))
            tester.apply(life.lines)
        tester.apply(life_of("east", topics=2).in_generation(generation + 1).lines)
        assert not tester.applied["lacks_records"]
    assert tester.applied["failures"] == 2


def test_what_cannot_be_stored_leaves_the_state_as_it_was_and_goes_into_quarantine(tester, monkeypatch):
    life = life_of("east", topics=2)
    encode = replica_module.encode_header
    calls = iter([True])

    def fail_once(context):
        if next(calls, False):
            raise FAILURE
        return encode(context)

    monkeypatch.setattr(replica_module, "encode_header", fail_once)
    rows = tester.apply(life.lines)
    assert [alert.alert for alert in alerts_in(rows, "open")] == ["ClusterQuarantined"]
    assert tester.written == []
    tester.forget()  # the stored state is the one in quarantine
    rows = tester.apply(life.in_generation(2).lines)
    assert [alert.alert for alert in alerts_in(rows, "resolved")][:1] == ["ClusterQuarantined"]


def test_a_stored_state_that_violates_an_invariant_goes_into_quarantine_by_name(tester, monkeypatch):
    life = life_of("east", topics=TOPICS, losses=1)
    half = len(life.lines) // 2
    tester.apply(life.lines[:half])
    tester.forget()

    def violated(_header, _topics):
        raise InvariantError(IDLE_UNDER_KRAFT)

    monkeypatch.setattr(stored_context, "check_queues", violated)
    (alert,) = alerts_in(tester.apply(life.lines[half:]), "open")
    assert alert.alert == "ClusterQuarantined"
    assert alert.cause.endswith(f"(InvariantError: {IDLE_UNDER_KRAFT})")


def test_a_state_store_that_fails_is_no_fault_of_the_records(tester, monkeypatch):
    life = life_of("east", topics=TOPICS, losses=1)
    half = len(life.lines) // 2
    tester.apply(life.lines[:half])
    tester.forget()

    def gone(_key):
        raise ConnectionResetError

    monkeypatch.setattr(tester._tester.processor._chunk_state, "getValue", gone)
    with pytest.raises(Exception, match="chunk [0-9]+ cannot be read"):
        tester.apply(life.lines[half:])
