"""Compaction, which keeps current lines within reach of later readers, and may drop the rest."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from transport.journal import JournalWriter
from transport.journal_reading import earliest_offset, end_offset, is_complete, read_journal
from transport.segments import OffsetGoneError

SUBJECTS = 50


class Newest:
    """The newest line of each subject, which precedes a colon. A line without a value removes its subject."""

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}

    def add(self, line: bytes) -> None:
        subject, _, value = line.partition(b":")
        if value:
            self._lines[subject] = line
        else:
            self._lines.pop(subject, None)

    def lines(self) -> list[bytes]:
        return list(self._lines.values())


def newest(lines: list[bytes]) -> list[bytes]:
    kept = Newest()
    for line in lines:
        kept.add(line)
    return sorted(kept.lines())


def open_writer(directory: Path, *, batches: bool) -> JournalWriter:
    return JournalWriter(directory, segment_bytes=500, retain_bytes=4000, batches=batches, standing=Newest)


def put(writer: JournalWriter, lines: list[bytes], *, batches: bool) -> None:
    if batches:
        writer.append_batch(writer.last_batch_id + 1, lines)
    else:
        writer.append(lines)


def read_all(directory: Path, offset: int | None = None) -> list[bytes]:
    offset = earliest_offset(directory) if offset is None else offset
    lines: list[bytes] = []
    while offset < end_offset(directory):
        batch = read_journal(directory, offset, 300)
        assert batch.hole is None
        lines += batch.lines
        offset = batch.next_offset
    return lines


@pytest.mark.parametrize("batches", [False, True])
def test_the_newest_line_of_each_subject_is_never_dropped(tmp_path: Path, batches: bool) -> None:
    written: list[bytes] = []
    followed: list[bytes] = []
    offset = 0
    for opening in range(8):
        with open_writer(tmp_path, batches=batches) as writer:
            for number in range(40):
                lines = [b"%03d:%05d" % (subject % SUBJECTS, opening) for subject in (number * number, number)]
                lines += [b"%03d:" % (SUBJECTS + opening)] * (number % 2)
                lines += [b"%03d:%05d" % (SUBJECTS + opening, number)] * ((number + 1) % 2)
                put(writer, lines, batches=batches)
                written += lines
                batch = read_journal(tmp_path, offset, 1 << 20)
                offset = batch.next_offset
                followed += batch.lines
            assert (writer.last_batch_id == 40 * (opening + 1) - 1) is batches
        assert newest(read_all(tmp_path)) == newest(written)
    assert followed == written, "a reader that keeps up sees each line once"
    assert is_complete(tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.glob("*.log"))
    assert size < 4000 + 500 + 2 * sum(map(len, newest(written))) + 1000
    assert len(list(tmp_path.glob("*.compacted.log"))) == 1


def fill(directory: Path, rounds: int = 30) -> list[bytes]:
    written = []
    with open_writer(directory, batches=True) as writer:
        for number in range(rounds):
            lines = [b"%03d:%05d" % (subject, number) for subject in range(20)]
            put(writer, lines, batches=True)
            written += lines
    return written


def test_a_reader_that_is_too_slow_is_sent_to_what_was_compacted(tmp_path: Path) -> None:
    fill(tmp_path, rounds=3)
    slow = read_journal(tmp_path, 0, 100).next_offset
    fill(tmp_path)
    start = earliest_offset(tmp_path)
    for offset in (slow, start + 1, start + 20):
        with pytest.raises(OffsetGoneError) as gone:
            read_journal(tmp_path, offset, 100)
        assert gone.value.earliest == start
    assert read_journal(tmp_path, start, 1).next_offset > start + 1, "it comes whole"


def test_what_a_crash_left_of_a_compaction_is_passed_over(tmp_path: Path) -> None:
    written = fill(tmp_path, rounds=12)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.log")}
    written += fill(tmp_path, rounds=12)
    for name, content in before.items():  # the crash came before replaced files were removed
        if not (tmp_path / name).exists():
            (tmp_path / name).write_bytes(content)
    (tmp_path / f"{5:020}.compacted.new").write_bytes(b"half wri")
    assert newest(read_all(tmp_path)) == newest(written)
    fill(tmp_path, rounds=1)
    left = {path.name for path in tmp_path.glob("*.log")}
    assert len(left & before.keys()) < len(before)
    assert len([name for name in left if "compacted" in name]) == 1


def test_behind_a_hole_nothing_older_is_vouched_for(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, segment_bytes=500, retain_bytes=None, batches=True, standing=Newest) as writer:
        for number in range(60):
            put(writer, [b"%03d:%05d" % (subject, number) for subject in range(number, number + 20)], batches=True)
    victim = sorted(tmp_path.glob("*.log"))[10]
    victim.write_bytes(bytes(victim.stat().st_size))
    fill(tmp_path, rounds=1)
    lines = read_all(tmp_path)
    assert not [line for line in lines if line.endswith((b":00005", b":00010"))], "it may have changed in the hole"
    assert b"050:00050" in lines
    assert not is_complete(tmp_path)


def test_a_full_disk_puts_compaction_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def no_room_for_more(path: os.PathLike[str], flags: int, mode: int = 0o777, **more: int) -> int:
        if str(path).endswith(".new"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, mode, **more)

    with open_writer(tmp_path, batches=True) as writer:
        monkeypatch.setattr(os, "open", no_room_for_more)
        for number in range(20):
            put(writer, [b"%03d:%05d" % (subject, number) for subject in range(20)], batches=True)
    assert earliest_offset(tmp_path) == 0
    assert len(read_all(tmp_path)) == 400
