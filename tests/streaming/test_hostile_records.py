"""Records and znodes with any field at any extreme, refused or applied by the job's replica, without a quarantine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from controller.contract.alert_row import AlertRow
from controller.contract.forwarder_status import ForwarderStatus
from controller.contract.outputs import decode_row
from controller.contract.records import Record, RecordKind, data_fields, encode_record
from tests.extremes import any_change, as_json, changes
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.test_replica import ReplicaTester
from tests.znode_contents import any_content, contents_at_extremes

BEGINNING = life_of("east", topics=2, losses=1)
LAST = BEGINNING.records[-1]
HEARTBEAT = {"session": "connected", "watch_mode": "persistent"}
STATUS = HEARTBEAT | {"maintenance": [{"brokers": [1], "until_ms": 1_700_000_500_000, "reason": "disks"}]}


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return Streams(tmp_path_factory.mktemp("hostile"))


def followed(streams: Streams, batches: Iterable[Sequence[bytes]]) -> int:
    """Give batches to a cluster's replica after the cluster's beginning. Return the number of refused lines.

    Every published row is readable, and the stored state suffices to go on.
    """
    tester, refused = ReplicaTester(streams), 0
    for batch in (BEGINNING.lines, *batches):
        tester.forget()
        rows = tester.apply(list(batch))
        refused += tester.applied["refused"]
        published = [decode_row(line) for lines in rows.values() for line in lines]
        alerts = [row for row in published if isinstance(row, AlertRow) and row.alert == "ClusterQuarantined"]
        assert not alerts, alerts[0].cause
    return refused


def all_are_followed(streams: Streams, lines: Sequence[bytes]) -> bool:
    """Return whether every line is accepted and the last one, a heartbeat, shows a known cluster."""
    tester = ReplicaTester(streams)
    tester.forget()
    tester.apply(BEGINNING.lines)
    (*_, gauges) = map(decode_row, tester.apply(list(lines))["gauges"])
    place = (json.loads(lines[-1])["seq"], True)
    # Each line is a batch of its own, because the state is stored at the end of a batch, and the next line may hide it.
    return (gauges.seq, gauges.ready) == place and followed(streams, [[line] for line in lines]) == 0


def next_record(kind: RecordKind, by: int = 1, **fields: Any) -> Record:
    zxid = LAST.zxid + by
    stat = {"czxid": zxid, "mzxid": zxid, "version": 0, "ephemeral_owner": 1001, "zxid": zxid}
    place = {"generation": LAST.generation, "seq": LAST.seq + by, "observed_ms": LAST.observed_ms + 1000 * by}
    return Record(cluster="east", kind=kind, **stat | place | fields)


def a_heartbeat(by: int) -> bytes:
    return encode_record(next_record(RecordKind.HEARTBEAT, by, data=json.dumps(HEARTBEAT)))


def lines_of(contents: Iterable[tuple[str, bytes]]) -> list[bytes]:
    """Return znodes with these contents, one after the other, and a heartbeat after them."""
    written = [
        next_record(RecordKind.NODE, by, path=path, **data_fields(content))
        for by, (path, content) in enumerate(contents, 1)
    ]
    return [*map(encode_record, written), a_heartbeat(len(written) + 1)]


def record_at(changed: dict[str, Any]) -> list[bytes]:
    return [as_json(changed), a_heartbeat(2)]


SAMPLE = msgspec.to_builtins(next_record(RecordKind.NODE, path="/brokers/ids/2", data='{"version":5}')) | {
    "resync": False,
    "author": 1001,
    "cxid": 7,
}


def test_each_field_of_a_record_at_each_extreme(streams: Streams):
    tried = [record_at(changed) for _, changed in changes(Record, SAMPLE)]
    refused = 0
    for lines in tried:
        try:
            refused += followed(streams, [lines])
        except Exception as error:
            raise AssertionError(lines[0][:2000]) from error
    assert 0 < refused < len(tried) * 2 / 3


def test_each_field_of_each_znode_at_each_extreme(streams: Streams):
    lines = lines_of(contents_at_extremes())
    assert len(lines) > 500
    assert all_are_followed(streams, lines)


def test_each_field_of_a_heartbeat_at_each_extreme(streams: Streams):
    heard = [
        encode_record(next_record(RecordKind.HEARTBEAT, by, **data_fields(as_json(changed))))
        for by, (_, changed) in enumerate(changes(ForwarderStatus, STATUS), 1)
    ]
    assert all_are_followed(streams, heard)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_fields_at_extremes(streams: Streams, data: st.DataObject):
    contents = data.draw(st.lists(any_content(), max_size=8))
    changed = data.draw(any_change(Record, SAMPLE))
    followed(streams, [lines_of(contents), record_at({**changed, "seq": LAST.seq + len(contents) + 2})])
