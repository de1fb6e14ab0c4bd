"""Hostile content of znodes. `step` never raises, and its refusal names the znode and the reason."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from controller.contract.effect_rows import RefusedRow
from controller.contract.outputs import decode_row, encode_row
from controller.contract.records import BadRecordError, Record, RecordKind, decode_record, encode_record
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.step import step
from tests.controller.znode_history import (
    ZnodeHistory,
    assert_the_replica_index_is_as_if_made_anew,
    broker_znode,
    controller_znode,
    state_znode,
    topic_znode,
)

LONGEST = "x" * 249
TOPICS = ["t", "__consumer_offsets", LONGEST, "a.b_c-d", "..", "t\u00fc"]
STATE = "/brokers/topics/t/partitions/0/state"

# One or two unreadable values of each place. `test_znode_readers` compares thousands with Kafka's own readers.
UNREADABLE = [
    (STATE, b""),
    (STATE, b"\xff\xfe{not text"),
    (STATE, b"[" * 100_000),
    ("/brokers/topics/t", b'{"version":99,"partitions":{"2147483647":[]},"topic_id":null}'),
    ("/brokers/ids/7", b'{"version":5,"jmx_port":-1,"endpoints":["INTERNAL://h:1"]}'),
    ("/controller", b'{"brokerid":"1"}'),
    ("/controller_epoch", b"1" * 4_000),
    ("/admin/reassign_partitions", b'{"partitions":[{"topic":"t"}]}'),
    ("/admin/preferred_replica_election", b'{"partitions":{"t":0}}'),
    ("/isr_change_notification/isr_change_0000000000", b"\x00"),
    ("/log_dir_event_notification/log_dir_event_0000000000", b'{"version":1}'),
    ("/config/topics/t", b'{"config":{"min.insync.replicas":2}}'),
]

# Odd, and read as Kafka reads it. Some are odd only by what they name, or by their path.
READABLE = [
    (STATE, b'{"leader":9,"leader_epoch":3,"controller_epoch":1,"isr":[],"x":{"y":[]},"version":77}'),
    (STATE, b'{"leader":-7,"leader_epoch":-1,"controller_epoch":-1,"isr":[2147483647,-2147483648]}'),
    ("/brokers/topics/t", b'{"version":"odd","partitions":{"2147483647":[]}} and more'),
    ("/brokers/topics/t", b'{"version":2,"partitions":{"0":[1,1,1]},"adding_replicas":{"9":[9]}}'),
    ("/brokers/ids/7", b'{"version":400,"jmx_port":-1,"endpoints":[],"rack":"\\u0000"}'),
    ("/config/topics/t", b"\xef\xbb\xbf"),
    ("/config/topics/t", b"not json"),
    ("/admin/delete_topics/" + LONGEST, b"whatever"),
    ("/admin/reassign_partitions", b'{"partitions":[{"topic":"t","partition":-5,"replicas":[]}]}'),
    ("/admin/reassign_partitions", b'{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}'),
    ("/admin/reassign_partitions", b'{"partitions":[{"topic":"t","partition":0,"replicas":[3,3,-1]}]}'),
    ("/admin/preferred_replica_election", b'{"partitions":[{"topic":"","partition":0}]}'),
    ("/isr_change_notification/isr_change_0000000000", b'{"partitions":[{"topic":"no","partition":1}]}'),
    ("/log_dir_event_notification/log_dir_event_0000000000", b'{"broker":-1}'),
    *(
        ("/config/topics/t", json.dumps({"config": {"min.insync.replicas": number}}).encode())
        for number in ("two", "1" + "0" * 30, "2147483648", "-1", "\u0663", "1_0")
    ),
    *(
        (path, b"\xff")
        for path in (
            *(f"/brokers/topics/t/partitions/{number}/state" for number in ("99999999999", "-1", "\u0663")),
            *("/brokers/ids/+1", "/brokers/topics/", "/", "", "no slash"),
        )
    ),
]


def a_cluster() -> ZnodeHistory:
    return ZnodeHistory(chunk_count=2).start(1, 2, 3, topics={"t": {0: ([2, 3], 2, 4, [2, 3])}})


@pytest.mark.parametrize(("path", "content"), UNREADABLE, ids=lambda value: str(value)[:60])
def test_what_cannot_be_read_is_refused_whole_and_the_last_good_value_stays(path, content):
    history = a_cluster()
    before = {name: topic.partitions for name, topic in history.context.topics}
    history.write(path, content)
    (refused,) = history.refusals()
    assert (refused.path, refused.zxid) == (path, history.zxid)
    assert refused.reason
    assert (refused.data is not None) != (refused.data_base64 is not None)
    assert {name: topic.partitions for name, topic in history.context.topics} == before
    assert history.gauges().refused == 1


@pytest.mark.parametrize(("path", "content"), READABLE, ids=lambda value: str(value)[:60])
def test_what_is_only_odd_is_taken_and_the_replica_goes_on(path, content):
    history = a_cluster()
    history.write(path, content)
    assert history.refusals() == []
    history.broker_leaves(2)
    history.delete("/controller")
    history.controller(3, 9)
    history.heartbeat(20_000)
    assert history.gauges().ready
    assert history.context.topics["t"].min_insync_replicas is None
    assert encode_header(history.context)
    assert changed_chunks(new_context("c", chunk_count=2), history.context)


FIELDS_WITH_NUMBERS = (
    *("generation", "seq", "observed_ms", "czxid", "mzxid", "version"),
    *("ephemeral_owner", "zxid", "author", "cxid", "steady_ms", "ctime_ms"),
)
ANY_NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.sampled_from([sign * 2**bits + by for sign in (1, -1) for bits in (31, 48, 62, 63, 64) for by in (-1, 0, 1)]),
)


def test_all_fields_of_a_record_with_numbers_are_tried():
    numbers = {field.name for field in msgspec.structs.fields(Record) if field.type not in (str, bool, RecordKind)}
    assert numbers - {"v", "data", "data_base64"} == set(FIELDS_WITH_NUMBERS)


@given(
    path=st.sampled_from([STATE, "/controller", "/brokers/ids/1"]),
    numbers=st.dictionaries(st.sampled_from(FIELDS_WITH_NUMBERS), ANY_NUMBERS),
)
def test_a_record_is_refused_or_what_it_leaves_can_be_stored(path, numbers):
    contents = {STATE: state_znode(3, 5, [3]), "/controller": controller_znode(2), "/brokers/ids/1": broker_znode(1)}
    history = a_cluster()
    last = history.records[-1]
    place = {"generation": last.generation, "seq": last.seq + 1, "observed_ms": last.observed_ms, **numbers}
    what = {"v": 1, "cluster": "c", "kind": "node", "path": path, "data": json.dumps(contents[path])}
    try:
        record = decode_record(json.dumps(what | place))
    except BadRecordError:
        return
    context = history.context
    for told in (record, msgspec.structs.replace(last, generation=record.generation, seq=record.seq + 1)):
        outcome = step(context, told)
        context = outcome.context
        assert all(decode_row(encode_row(row)) == row for row in outcome.effects)
        assert encode_header(context)
        changed_chunks(history.context, context)


def test_a_state_before_its_topic_is_an_orphan_and_a_topic_after_it_starts_without():
    history = a_cluster()
    history.state("later", 0, 1, 3, [1])
    history.topic("later", {0: [1]})
    assert history.gauges().divergences == {"orphan_state": 1}


def test_a_leader_epoch_that_goes_back_is_taken_and_counted():
    history = a_cluster()
    history.state("t", 0, 2, 1, [2, 3])
    assert history.row("t", 0).leader_epoch == 1
    assert history.gauges().divergences == {"illegal_state": 1, "unexplained_write": 1}


# At random

ids = st.sampled_from([-1, 0, 1, 2, 3, 2**31 - 1, -(2**31), 2**31, 2**63, 10**300])
zxids = st.sampled_from([-(2**63), -1, 0, 1, 105, 2**32, 2**63 - 1])  # and sessions: 64 bits with a sign
lists = st.lists(ids, max_size=4)
odd_ids = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 3, 9, 2**31 - 1])  # each of which is a number of 32 bits
odd_lists = st.lists(odd_ids, max_size=4)
odd_maps = st.dictionaries(st.integers(0, 2), odd_lists, max_size=3)
numbers = st.sampled_from(["0", "1", "-1", "2147483647", "2147483648", "01", "\u0663", ""])
topics = st.sampled_from(TOPICS)
paths = st.one_of(
    st.sampled_from(
        ["/controller", "/controller_epoch", "/feature", "/migration", "/admin/reassign_partitions"]
        + ["/admin/preferred_replica_election", "/", "", "//", "/brokers", "/brokers/ids", "/config/brokers/<default>"]
    ),
    st.builds("/brokers/ids/{}".format, numbers),
    st.builds("/brokers/topics/{}".format, topics),
    st.builds("/brokers/topics/{}/partitions/{}/state".format, topics, numbers),
    st.builds("/admin/delete_topics/{}".format, topics),
    st.builds("/config/topics/{}".format, topics),
    st.builds("/config/brokers/{}".format, numbers),
    st.builds("/isr_change_notification/isr_change_{}".format, numbers),
    st.builds("/log_dir_event_notification/log_dir_event_{}".format, numbers),
)
entries = st.lists(st.fixed_dictionaries({"topic": topics, "partition": ids}, optional={"replicas": lists}), max_size=3)
maps = st.dictionaries(numbers, lists, max_size=3)
plausible = st.one_of(
    st.fixed_dictionaries({"leader": ids, "leader_epoch": ids, "controller_epoch": ids, "isr": lists}),
    st.fixed_dictionaries({"partitions": maps}, optional={"adding_replicas": maps, "removing_replicas": maps}),
    st.fixed_dictionaries({"partitions": maps, "version": ids}, optional={"topic_id": st.text(max_size=3)}),
    st.fixed_dictionaries({"partitions": entries}),
    st.fixed_dictionaries({"brokerid": ids}, optional={"kraftControllerEpoch": ids, "version": ids}),
    st.fixed_dictionaries({"broker": ids}),
    st.fixed_dictionaries({"config": st.dictionaries(st.sampled_from(["min.insync.replicas", "x"]), st.text())}),
    st.fixed_dictionaries({"endpoints": st.lists(st.text(max_size=4), max_size=2)}, optional={"rack": st.text()}),
    ids,
    st.floats(),
)
contents = st.one_of(
    st.binary(max_size=12),
    st.builds(lambda value: json.dumps(value).encode(), plausible),
    st.builds(lambda first, value: b'{"leader":%d,%s' % (first, json.dumps(value).encode()[1:]), ids, plausible),
    st.sampled_from([b"[" * 3_000, b'{"partitions":' * 3_000, b"{}", b"null", b"NaN", b"-Infinity", None]),
)


class HostileZnodes(RuleBasedStateMachine):
    """A sensible cluster, and arbitrary writes by hand."""

    @initialize()
    def begin(self) -> None:
        self.history = a_cluster()
        self.seen = 0

    @rule(path=paths, content=contents, version=st.sampled_from([None, 0, -1, 2**31 - 1]), czxid=zxids)
    def anything_is_written(self, path: str, content: bytes | None, version: int | None, czxid: int) -> None:
        odd = {} if version is None else {"version": version, "czxid": czxid, "mzxid": czxid}
        self.history.write(path, content, owner=czxid, **odd)

    @rule(number=st.integers(0, 1), leader=odd_ids, epoch=odd_ids, isr=odd_lists, by=odd_ids, recovering=odd_ids)
    def an_odd_state_is_written(
        self, number: int, leader: int, epoch: int, isr: list[int], by: int, recovering: int
    ) -> None:
        self.history.state("t", number, leader, epoch, isr, by, leader_recovery_state=recovering)

    @rule(assignment=odd_maps, adding=odd_maps, removing=odd_maps)
    def an_odd_topic_is_written(self, assignment: dict, adding: dict, removing: dict) -> None:
        self.history.write(
            "/brokers/topics/t", topic_znode(assignment, adding_replicas=adding, removing_replicas=removing)
        )

    @rule(number=st.integers(0, 1), replicas=odd_lists, made_again=st.booleans())
    def an_odd_reassignment_is_asked_for(self, number: int, replicas: list[int], made_again: bool) -> None:
        if made_again:
            self.history.delete("/admin/reassign_partitions")
        self.history.reassign(("t", number, replicas))

    @rule(broker=odd_ids)
    def an_odd_log_dir_event_comes(self, broker: int) -> None:
        self.history.write("/log_dir_event_notification/log_dir_event_1", {"version": 1, "broker": broker, "event": 1})

    @rule(path=paths)
    def anything_vanishes(self, path: str) -> None:
        self.history.delete(path)

    @rule(path=paths)
    def anything_came_and_went(self, path: str) -> None:
        self.history.send(RecordKind.CREATED, path=path, zxid=self.history.zxid)

    @rule(kind=st.sampled_from(list(RecordKind)), data=st.text(max_size=4) | st.none(), zxid=zxids)
    def any_record_comes(self, kind: RecordKind, data: str | None, zxid: int) -> None:
        self.history.send(kind, data=data, zxid=zxid)

    @rule(broker=st.integers(1, 3), epoch=st.integers(0, 5))
    def somebody_becomes_controller(self, broker: int, epoch: int) -> None:
        self.history.delete("/controller")
        self.history.controller(broker, epoch)

    @rule(broker=st.integers(1, 3))
    def a_broker_comes_or_goes(self, broker: int) -> None:
        path = f"/brokers/ids/{broker}"
        self.history.broker_leaves(broker) if path in self.history.znodes else self.history.broker(broker)

    @rule(replicas=st.lists(st.integers(1, 3), max_size=3))
    def a_topic_is_written(self, replicas: list[int]) -> None:
        self.history.write("/brokers/topics/t", topic_znode({0: replicas, 1: replicas}))

    @rule()
    def the_controller_writes_its_due(self) -> None:
        self.history.the_controller_writes_its_due()

    @rule()
    def everything_is_read_again(self) -> None:
        self.history.generation, self.history.seq = self.history.generation + 1, -1
        self.history.snapshot(
            ("/controller", controller_znode(1)),
            ("/controller_epoch", b"7"),
            ("/brokers/ids/1", broker_znode(1)),
            ("/brokers/topics/t", topic_znode({0: [1, 2]})),
            (STATE, state_znode(1, 4, [1])),
        )

    @invariant()
    def the_replica_index_follows(self) -> None:
        assert_the_replica_index_is_as_if_made_anew(self.history.context)

    @invariant()
    def every_row_can_be_published_and_every_refusal_says_what_and_why(self) -> None:
        for row in self.history.effects[self.seen :]:
            assert decode_row(encode_row(row)) == row
            if isinstance(row, RefusedRow):
                assert row.path
                assert row.reason
                assert isinstance(row.zxid, int)
        self.seen = len(self.history.effects)

    def teardown(self) -> None:
        context = self.history.context
        stored = changed_chunks(new_context("c", chunk_count=2), context)
        restored = restore_context("c", encode_header(context), stored.get)
        assert encode_header(restored) == encode_header(context)
        assert {name: topic for name, topic in restored.topics} == {name: topic for name, topic in context.topics}
        for record in self.history.records[-3:]:
            assert decode_record(encode_record(record)) == record


HostileZnodes.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
test_hostile_znodes = HostileZnodes.TestCase
