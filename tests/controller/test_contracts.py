"""Input and output forms of records, rows, settings and stored state, and the refusals of each."""

from __future__ import annotations

import gc

import pytest

from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import BadRowError, NewerRowError, decode_row, encode_row
from controller.contract.records import RECORD_VERSION, BadRecordError, Record, RecordKind, decode_record, encode_record
from controller.contract.row import OUTPUT_VERSION
from controller.restore.stored_context import (
    STATE_VERSION,
    StateVersionError,
    changed_chunks,
    encode_header,
    new_context,
    restore_context,
)
from controller.rules.releases import read_release
from controller.rules.settings import BrokerSettings, SettingError, read_settings, settings_in_force
from tests.controller.znode_history import ZnodeHistory


def a_life() -> ZnodeHistory:
    """Return a history that produces every kind of row."""
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 2, 0, [2])}})
    history.broker_leaves(2)
    history.write("/brokers/ids/2", b"\xff")
    history.heartbeat()
    return history


# Rows


def test_every_row_comes_back_as_it_went_out_and_says_its_version():
    rows = a_life().effects
    assert {type(row).__name__ for row in rows} >= {
        "Transition",
        "Request",
        "PartitionRow",
        "BrokerRow",
        "ControllerRow",
        "AlertRow",
        "GaugesRow",
        "RefusedRow",
    }
    for row in rows:
        assert decode_row(encode_row(row)) == row
        assert encode_row(row).startswith(b'{"kind":')
        assert b'"v":%d' % OUTPUT_VERSION in encode_row(row)


def test_the_newest_row_of_a_subject_replaces_the_older_ones():
    last = {type(row).__name__: row.subject_key() for row in a_life().effects}
    assert last["PartitionRow"] == "c/partition/t/0"
    assert last["BrokerRow"] == "c/broker/2"
    assert last["ControllerRow"] == "c/controller"
    assert last["AlertRow"] == "c/ZnodeRefused"
    assert last["GaugesRow"] == "c/gauges"
    assert BeginningRow(cluster="c", generation=1, seq=0, ordinal=-1, zxid=1, time_ms=1).subject_key() == "c/beginning"


def a_job_row(**fields) -> JobRow:
    totals = {"batch": 7, "batches": 1, "records": 2, "refused": 0, "rows": 3, "total_phase_ms": {"addBatch": 90}}
    state = {"state_bytes": 1, "state_values": 2, "state_commit_ms": 3}
    return JobRow(time_ms=2, began_ms=1, phase_ms={"addBatch": 90}, **totals, **state, **fields)


def test_the_jobs_own_row_has_one_key():
    row = a_job_row()
    assert row.subject_key() == "job"
    assert decode_row(encode_row(row)) == row


def test_what_happened_is_never_replaced():
    effects = a_life().effects
    keys = [row.subject_key() for row in effects if row.output in ("transitions", "requests", "refused")]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("line", [b"", b"{}", b"\xff", b'{"kind":"nonsense"}', b'{"kind":"broker","v":1}'])
def test_what_is_no_row_is_refused(line):
    with pytest.raises(BadRowError, match="not an output row"):
        decode_row(line)


def test_a_row_of_a_newer_version_is_refused():
    line = encode_row(a_life().effects[0]).replace(b'"v":%d' % OUTPUT_VERSION, b'"v":99')
    with pytest.raises(BadRowError, match=f"output version 99 is newer than this Kontrast's {OUTPUT_VERSION}"):
        decode_row(line)


@pytest.mark.parametrize(
    ("line", "cluster"),
    [
        (b'{"kind":"of-tomorrow","v":99,"cluster":"north"}', "north"),
        (b'{"kind":"gauges","v":99,"cluster":"north","ready":"in another form"}', "north"),
        (b'{"kind":"job","v":99}', None),
    ],
)
def test_a_row_of_a_newer_version_is_known_as_one_whatever_its_kind_and_fields(line, cluster):
    with pytest.raises(NewerRowError, match="output version 99 is newer") as refusal:
        decode_row(line)
    assert refusal.value.cluster == cluster


def test_a_row_of_a_newer_version_tells_of_whom_it_is_where_it_can_be_read():
    beginning = BeginningRow(v=99, cluster="north", generation=1, seq=0, ordinal=0, zxid=1, time_ms=1)
    for row, cluster in ((beginning, "north"), (a_job_row(v=99), None)):
        with pytest.raises(NewerRowError) as refusal:
            decode_row(encode_row(row))
        assert refusal.value.cluster == cluster


# Records


def a_record(**fields) -> Record:
    return Record(cluster="c", generation=1, seq=0, kind=RecordKind.NODE, observed_ms=5, **fields)


@pytest.mark.parametrize("fields", [{}, {"data": "t\u00fc"}, {"data_base64": "/w=="}, {"path": "/x", "zxid": 2**62}])
def test_a_record_comes_back_as_it_went_out(fields):
    record = a_record(**fields)
    assert decode_record(encode_record(record)) == record


def test_a_records_bytes_are_the_znodes():
    assert [a_record(**fields).raw for fields in ({}, {"data": ""}, {"data_base64": "/w=="})] == [None, b"", b"\xff"]


@pytest.mark.parametrize("line", [b"", b"{}", b"\xff", encode_record(a_record(data_base64="no base64"))])
def test_what_is_no_record_is_refused(line):
    with pytest.raises(BadRecordError, match="not a record"):
        decode_record(line)


def test_a_record_of_a_newer_version_is_refused():
    line = encode_record(a_record()).replace(b'"v":1', b'"v":99')
    with pytest.raises(BadRecordError, match=f"record version 99 is newer than this Kontrast's {RECORD_VERSION}"):
        decode_record(line)


# Settings


def test_settings_have_kafkas_names():
    read = read_settings({"unclean.leader.election.enable": " TRUE ", "min.insync.replicas": "2"})
    assert read == {"unclean.leader.election.enable": True, "min.insync.replicas": 2}
    assert settings_in_force(read) == BrokerSettings(unclean_leader_election_enable=True, min_insync_replicas=2)
    assert settings_in_force({}) == BrokerSettings()


@pytest.mark.parametrize(
    ("release", "unclean", "deletes", "session_ms"),
    [
        ((0, 10), True, False, 6_000),
        ((0, 11), False, False, 6_000),
        ((1, 0), False, True, 6_000),
        ((2, 4), False, True, 6_000),
        ((2, 5), False, True, 18_000),
        ((3, 9), False, True, 18_000),
    ],
)
def test_a_release_has_defaults_of_its_own_where_nothing_is_said(release, unclean, deletes, session_ms):
    settings = settings_in_force({}, release)
    assert settings.unclean_leader_election_enable is unclean
    assert settings.delete_topic_enable is deletes
    assert settings.zookeeper_session_timeout_ms == session_ms
    assert settings_in_force({"delete.topic.enable": True}, release).delete_topic_enable is True


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("min.insync.replicas", "two", "a whole number from 1 to 2147483647"),
        ("min.insync.replicas", "", "a whole number from 1 to 2147483647"),
        ("min.insync.replicas", "0", "a whole number from 1 to 2147483647"),
        ("min.insync.replicas", "1.5", "a whole number from 1 to 2147483647"),
        ("controlled.shutdown.max.retries", "-1", "a whole number from 0 to 2147483647"),
        ("controlled.shutdown.retry.backoff.ms", "-5", "a whole number from 0 to 2147483647"),
        ("zookeeper.session.timeout.ms", "0", "a whole number from 1 to 2147483647"),
        ("leader.imbalance.per.broker.percentage", "-1", "a whole number from 0 to 2147483647"),
        ("leader.imbalance.check.interval.seconds", "0", "a whole number from 1 to 2147483647"),
        ("delete.topic.enable", "maybe", "true or false"),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused_by_name(name, text, expected):
    with pytest.raises(SettingError) as refusal:
        read_settings({name: text})
    assert str(refusal.value) == f"{name}={text}: expected {expected}"


def test_a_setting_that_is_not_used_is_refused_with_those_that_are():
    with pytest.raises(SettingError, match=r"'log\.dirs' is no broker setting .* min\.insync\.replicas"):
        read_settings({"log.dirs": "/tmp"})


# Releases


@pytest.mark.parametrize(("text", "release"), [("3.9.2", (3, 9)), (" 2.8 ", (2, 8)), ("0.10", (0, 10))])
def test_a_release_is_read_by_its_first_two_numbers(text, release):
    assert read_release(text)[:2] == release


@pytest.mark.parametrize("text", ["", "3", "three.nine", "4.0", "0.9", "-2.8"])
def test_what_is_no_release_with_a_zookeeper_controller_is_refused(text):
    with pytest.raises(ValueError, match="Kafka"):
        read_release(text)


# Stored state


def stored(history: ZnodeHistory) -> tuple[bytes, dict[int, bytes]]:
    return encode_header(history.context), changed_chunks(new_context("c", chunk_count=8), history.context)


def at_rest() -> ZnodeHistory:
    """Return a history without an event in flight, so that a restored context has loaded no topic."""
    return ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 2, 0, [2])}})


def test_stored_state_comes_back_and_is_loaded_chunk_by_chunk():
    header, chunks = stored(at_rest())
    loaded: list[int] = []
    context = restore_context("c", header, lambda index: loaded.append(index) or chunks.get(index))
    assert loaded == []
    assert context.topics.get("t") is not None
    assert len(loaded) == 1


def test_stored_state_of_another_cluster_is_refused():
    with pytest.raises(StateVersionError, match="of cluster 'c', not 'other'"):
        restore_context("other", stored(a_life())[0], lambda _: None)


def test_stored_state_of_another_version_is_refused():
    header = b"\xff\xff" + stored(a_life())[0][2:]
    with pytest.raises(StateVersionError, match=f"version 65535, this Kontrast reads {STATE_VERSION}"):
        restore_context("c", header, lambda _: None)


@pytest.mark.parametrize("collecting", [True, False])
def test_a_broken_chunk_is_refused_at_its_first_touch_and_leaves_the_collector(collecting):
    header, chunks = stored(at_rest())
    broken = {index: chunk[:-3] for index, chunk in chunks.items()}
    context = restore_context("c", header, broken.get)
    was_enabled = gc.isenabled()
    try:
        gc.enable() if collecting else gc.disable()
        with pytest.raises(StateVersionError, match="stored state cannot be read"):
            context.topics.get("t")
        assert gc.isenabled() is collecting
    finally:
        gc.enable() if was_enabled else gc.disable()
