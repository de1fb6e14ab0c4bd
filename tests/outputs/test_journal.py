"""Outputs read from journals, complete, in order, and continued."""

from __future__ import annotations

import shutil

from controller.contract.outputs import encode_row
from outputs import journal, open_outputs
from transport.address import JournalAddress
from transport.journal import JournalWriter

WANTED = ("metadata", "alerts", "gauges")


def write(directory, *written, **settings):
    with JournalWriter(directory / written[0].output, batches=True, **settings) as writer:
        writer.append_batch(writer.last_batch_id + 1, [encode_row(row) for row in written])


def lines(chunks):
    return [line for chunk in chunks for line in chunk.lines]


def test_outputs_that_are_not_there_yet_are_waited_for(tmp_path, rows, caplog):
    source = open_outputs(JournalAddress(tmp_path / "later"), WANTED)
    assert source.poll() == []
    assert source.caught_up
    assert f"{tmp_path / 'later'} holds no metadata, alerts, gauges yet" in caplog.text
    assert source.missing == WANTED
    row = rows.gauges()
    write(tmp_path / "later", row)
    (chunk,) = source.poll()
    assert source.missing == ("metadata", "alerts")
    assert (chunk.output, chunk.lines, chunk.live) == ("gauges", (encode_row(row),), True)
    assert source.poll() == []


def test_what_was_there_at_the_start_is_given_but_not_as_live(tmp_path, rows):
    write(tmp_path, rows.gauges())
    source = open_outputs(JournalAddress(tmp_path), WANTED)
    assert not source.caught_up
    assert [chunk.live for chunk in source.poll()] == [False]
    assert source.caught_up
    write(tmp_path, rows.gauges())
    assert [chunk.live for chunk in source.poll()] == [True]


def test_a_journal_without_news_is_looked_at_and_not_read(tmp_path, rows, monkeypatch):
    reads, read = [], journal.read_journal
    monkeypatch.setattr(journal, "read_journal", lambda *asked: (reads.append(1), read(*asked))[1])
    write(tmp_path, rows.gauges())
    source = open_outputs(JournalAddress(tmp_path), ("gauges",))
    while source.poll():
        pass
    before = len(reads)
    assert [source.poll() for _ in range(50)] == [[]] * 50
    assert len(reads) == before
    for segment_bytes in (64 * 1024**2, 1):  # one more row in the segment, and a row in a new segment
        write(tmp_path, rows.gauges(), segment_bytes=segment_bytes)
        assert len(lines(source.poll())) == 1
        assert source.poll() == []


def test_a_long_backlog_comes_whole_and_in_order_before_the_heartbeats(tmp_path, rows):
    many = [rows.partition("a-topic-with-quite-a-long-name", number) for number in range(8000)]
    write(tmp_path, *many)
    write(tmp_path, rows.gauges())
    source = open_outputs(JournalAddress(tmp_path), WANTED)
    chunks = list(source.poll())
    while not source.caught_up:
        chunks += source.poll()
    assert len(chunks) > 2
    assert lines(chunks[:-1]) == [encode_row(row) for row in many]
    assert chunks[-1].output == "gauges"


def test_rows_in_a_damaged_part_are_a_gap_with_its_place(tmp_path, rows, caplog):
    for number in range(30):
        write(tmp_path, rows.partition("t", number), segment_bytes=2000)
    damaged = sorted((tmp_path / "metadata").glob("*.log"))[1]
    damaged.write_bytes(bytes(damaged.stat().st_size))
    source = open_outputs(JournalAddress(tmp_path), WANTED)
    chunks = list(source.poll())
    assert source.caught_up
    assert [chunk.after_gap for chunk in chunks] == [False, True]
    assert 20 < len(lines(chunks)) < 30
    assert f"{damaged}: {damaged.stat().st_size} bytes from offset {int(damaged.stem)}" in caplog.text


def test_outputs_that_were_replaced_by_longer_ones_are_read_from_their_beginning(tmp_path, rows):
    write(tmp_path, rows.gauges())
    source = open_outputs(JournalAddress(tmp_path), WANTED)
    source.poll()
    shutil.rmtree(tmp_path / "gauges")
    write(tmp_path, *[rows.gauges() for _ in range(3)])
    (chunk,) = source.poll()
    assert chunk.begins_anew
    assert len(chunk.lines) == 3


def test_rows_that_retention_dropped_unread_are_a_gap(tmp_path, rows):
    write(tmp_path, rows.gauges())
    source = open_outputs(JournalAddress(tmp_path), WANTED)
    source.poll()
    for _ in range(20):
        write(tmp_path, rows.gauges(), segment_bytes=1, retain_bytes=5000)
    first, *rest = source.poll()
    assert first.after_gap
    assert not any(chunk.after_gap for chunk in rest)
    assert lines([first, *rest])[-1].startswith(b'{"kind":"gauges"')
