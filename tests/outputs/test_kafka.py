"""Outputs read from topics of a real broker, complete and continued, and the reader's errors during an absence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from kafka.record.default_records import DefaultRecordBatch

from cli.embedded.process import free_port
from controller.contract.outputs import encode_row
from outputs import Chunk, OutputsSource, SourceDownError, open_outputs
from tests.outputs.topics import Topics
from tests.waiting import eventually
from transport.address import Address, KafkaAddress

WANTED = ("metadata", "alerts", "gauges")


@pytest.fixture
def reading() -> Iterator[Callable[[Address], OutputsSource]]:
    """Yield a function that opens outputs, then close them all."""
    opened: list[OutputsSource] = []

    def read(address: Address) -> OutputsSource:
        opened.append(open_outputs(address, WANTED))
        return opened[-1]

    yield read
    for source in opened:
        source.close()


def chunks(source: OutputsSource, count: int) -> list[Chunk]:
    """Return the next chunks, until they hold this many lines."""
    found: list[Chunk] = []

    def lines() -> int:
        found.extend(source.poll())
        return sum(len(chunk.lines) for chunk in found)

    eventually(lines, lambda read: read >= count)
    return found


def test_what_was_there_is_given_but_not_as_live_and_what_comes_is(shared_broker, own_name, rows, reading):
    topics = Topics(shared_broker, own_name, "metadata", "gauges")
    first, second = rows.offline("orders"), rows.partition("orders")
    topics.produce(first)
    source = reading(topics.address)
    assert not source.caught_up
    (chunk,) = chunks(source, 1)
    assert (chunk.output, list(chunk.lines), chunk.live) == ("metadata", [encode_row(first)], False)
    eventually(lambda: source.poll() == [] and source.caught_up)
    topics.produce(second)
    (chunk,) = chunks(source, 1)
    assert (list(chunk.lines), chunk.live, chunk.thinned) == ([encode_row(second)], True, False)
    topics.close()


def test_a_topic_that_comes_later_is_read_from_its_beginning_as_live(shared_broker, own_name, rows, reading, caplog):
    topics = Topics(shared_broker, own_name, "metadata")
    source = reading(topics.address)
    eventually(lambda: source.poll() == [] and source.caught_up)
    assert f"has no topic {own_name}.alerts, {own_name}.gauges yet" in caplog.text
    assert source.missing == ("alerts", "gauges")
    topics.create("alerts")
    row = rows.alert("a")
    topics.produce(row)
    (chunk,) = chunks(source, 1)
    assert source.missing == ("gauges",)
    assert (chunk.output, list(chunk.lines), chunk.live) == ("alerts", [encode_row(row)], True)
    topics.close()


def test_a_tombstone_is_no_row(shared_broker, own_name, rows, reading):
    topics = Topics(shared_broker, own_name)
    topics.create("metadata", partitions=1)
    rows_written = rows.offline("orders"), rows.partition("orders", 1)
    topics.produce(rows_written[0])
    topics.delete_key("metadata", b"north/partition/gone/0")
    topics.produce(rows_written[1])
    found = chunks(reading(topics.address), 2)
    assert [line for chunk in found for line in chunk.lines] == [encode_row(row) for row in rows_written]
    topics.close()


def test_of_what_one_poll_brings_heartbeats_come_last(shared_broker, own_name, rows, reading):
    topics = Topics(shared_broker, own_name, *WANTED)
    topics.produce(rows.gauges(), rows.alert("a"), rows.partition("orders"))
    source = reading(topics.address)
    polls: list[list[str]] = []

    def all_came() -> bool:
        polls.append([chunk.output for chunk in source.poll()])
        return {output for poll in polls for output in poll} == set(WANTED)

    eventually(all_came)
    assert all(poll == sorted(poll, key=WANTED.index) for poll in polls)
    topics.close()


def test_late_outputs_are_read_once_all_rows_of_the_others_were(shared_broker, own_name, rows):
    topics = Topics(shared_broker, own_name, *WANTED)
    topics.produce(*(rows.partition("orders", number) for number in range(20)), rows.alert("a"), rows.gauges())
    with closing(open_outputs(topics.address, WANTED, late=("metadata",))) as source:
        came: list[str] = []
        knew: list[str] = []

        def all_came() -> bool:
            came.extend(chunk.output for chunk in source.poll() for _ in chunk.lines)
            knew.append(f"{source.has_read(('alerts', 'gauges'))} {source.caught_up}")
            return source.caught_up

        eventually(all_came)
        assert came[:2] in (["alerts", "gauges"], ["gauges", "alerts"])
        assert came[2:] == ["metadata"] * 20
        assert list(dict.fromkeys(knew)) == ["False False", "True False", "True True"]
        topics.produce(rows.partition("orders"), rows.alert("b"))  # now both are followed
        assert {chunk.output for chunk in chunks(source, 2)} == {"alerts", "metadata"}
    topics.close()


def test_brokers_that_are_away_are_one_sentence(reading):
    address = KafkaAddress(f"127.0.0.1:{free_port()}", "out")
    with pytest.raises(SourceDownError, match=f"Kafka at {address.bootstrap_servers} does not answer"):
        reading(address).poll()


def test_no_batch_of_rows_is_summed_in_python(shared_broker, own_name, rows, reading, monkeypatch):
    topics = Topics(shared_broker, own_name, "gauges")
    topics.produce(rows.gauges())
    summed: list[object] = []
    monkeypatch.setattr(DefaultRecordBatch, "validate_crc", summed.append)
    (chunk,) = chunks(reading(topics.address), 1)
    assert (chunk.output, summed) == ("gauges", [])
    topics.close()
