"""The journal as its writers and readers rely on it, with offsets, torn tails, retention, batches, concurrency."""

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from transport.disk import Fsync
from transport.journal import JournalWriter
from transport.journal_reading import JournalBatch, earliest_offset, end_offset, read_journal
from transport.segments import (
    ForeignOffsetError,
    JournalError,
    JournalFullError,
    JournalLockedError,
    JournalRemovedError,
    NewerJournalError,
    OffsetGoneError,
)

MARK = len(b"#end 01234567\n")


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def read_all(directory: Path, offset: int = 0, max_bytes: int = 1 << 20) -> list[bytes]:
    lines: list[bytes] = []
    while True:
        batch = read_journal(directory, offset, max_bytes)
        if batch.next_offset == offset:
            return lines
        lines += batch.lines
        offset = batch.next_offset


def test_a_directory_that_does_not_exist_reads_as_empty(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert (earliest_offset(missing), end_offset(missing)) == (0, 0)
    assert read_journal(missing, 0, 100) == JournalBatch((), 0, None)
    assert not missing.exists()


def test_a_read_is_cut_at_a_line_and_a_longer_line_comes_alone(tmp_path: Path) -> None:
    lines = [b"a" * 10, b"b" * 5000, b"c", b"d"]
    with JournalWriter(tmp_path) as writer:
        writer.append(lines[:1])
        writer.append(lines[1:2])
        writer.append(lines[2:])
    first = read_journal(tmp_path, 0, 20)
    assert first.lines == (lines[0],)
    second = read_journal(tmp_path, first.next_offset, 20)
    assert second.lines == (lines[1],)
    assert read_journal(tmp_path, second.next_offset, 20).lines == (b"c", b"d")


def test_a_torn_tail_is_not_read_and_the_next_writer_cuts_it_off(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as writer:
        writer.append([b"whole"])
    with segments(tmp_path)[0].open("ab") as file:
        file.write(b"torn\nlines\n#par")
    assert end_offset(tmp_path) == 6 + MARK
    assert read_all(tmp_path) == [b"whole"]
    with JournalWriter(tmp_path) as writer:
        assert writer.end_offset == 6 + MARK
        writer.append([b"next"])
    assert read_all(tmp_path) == [b"whole", b"next"]


def test_segments_are_named_by_their_offset_and_read_as_one(tmp_path: Path) -> None:
    lines = [f"line {number:04}".encode() for number in range(100)]
    with JournalWriter(tmp_path, segment_bytes=10 * (10 + MARK)) as writer:
        for line in lines:
            writer.append([line])
    sizes = [path.stat().st_size for path in segments(tmp_path)]
    assert [int(path.stem) for path in segments(tmp_path)] == [sum(sizes[:index]) for index in range(len(sizes))]
    assert len(sizes) == 10
    assert read_journal(tmp_path, 0, 1 << 20).lines == tuple(lines)
    assert read_all(tmp_path, max_bytes=33) == lines
    assert read_all(tmp_path, offset=50 * (10 + MARK)) == lines[50:]


def test_a_torn_line_alone_in_a_new_segment_is_cut_off(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, segment_bytes=5) as writer:
        end = writer.append([b"first"])
    (tmp_path / f"{end:020}.log").write_bytes(b"torn")
    assert end_offset(tmp_path) == end
    with JournalWriter(tmp_path, segment_bytes=5) as writer:
        writer.append([b"second"])
    assert read_all(tmp_path) == [b"first", b"second"]


def test_retention_by_size_drops_the_oldest_segments_and_old_offsets_are_gone(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, segment_bytes=100, retain_bytes=300) as writer:
        for number in range(100):
            writer.append([b"%09d" % number])
        end = writer.end_offset
    earliest = earliest_offset(tmp_path)
    assert end - 300 <= earliest < end
    with pytest.raises(OffsetGoneError, match="dropped by retention") as caught:
        read_journal(tmp_path, 0, 100)
    assert caught.value.earliest == earliest
    assert pickle.loads(pickle.dumps(caught.value)).earliest == earliest
    assert read_all(tmp_path, earliest)[-1] == b"%09d" % 99


@pytest.mark.parametrize("retain_bytes", [1_000, 100_000])
def test_a_small_retention_has_segments_that_it_can_drop(tmp_path: Path, retain_bytes: int) -> None:
    with JournalWriter(tmp_path, retain_bytes=retain_bytes) as writer:
        for number in range(3_000):
            writer.append([b"%099d" % number])
        kept_bytes = writer.end_offset - earliest_offset(tmp_path)
    assert retain_bytes // 2 <= kept_bytes <= retain_bytes
    assert sum(file.stat().st_size for file in segments(tmp_path)) <= 2 * retain_bytes
    assert len(segments(tmp_path)) <= 6
    assert read_all(tmp_path, earliest_offset(tmp_path))[-1] == b"%099d" % 2_999


def test_retention_by_age_keeps_the_newest_segment(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, segment_bytes=1, retain_seconds=1000) as writer:
        writer.append([b"old"])
        writer.append([b"newer"])
        os.utime(segments(tmp_path)[0], (time.time() - 2000,) * 2)
        writer.append([b"newest"])
        assert read_all(tmp_path, earliest_offset(tmp_path)) == [b"newer", b"newest"]


def test_an_offset_that_is_not_the_journals_own_is_refused(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as writer:
        writer.append([b"one", b"two"])
    for offset in (2, 9):
        with pytest.raises(ForeignOffsetError, match=f"offset {offset} "):
            read_journal(tmp_path, offset, 100)


def test_a_journal_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "journal.json").write_text(json.dumps({"format": 3}))
    before = sorted(path.name for path in tmp_path.iterdir())
    for use in (JournalWriter, end_offset, earliest_offset, lambda directory: read_journal(directory, 0, 1)):
        with pytest.raises(NewerJournalError, match="format 3, newer"):
            use(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == before


@pytest.mark.parametrize("damaged", ["", "[]", '{"format": "x"}', '{"format": 1e400}', "[" * 100_000])
def test_a_damaged_declaration_is_one_sentence(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "journal.json").write_text(damaged)
    with pytest.raises(JournalError, match="is damaged"):
        JournalWriter(tmp_path)


@pytest.mark.parametrize("batches", [False, True])
def test_a_flipped_bit_in_a_declaration_leaves_the_same_lines_or_is_named(tmp_path: Path, batches: bool) -> None:
    with JournalWriter(tmp_path, batches=batches) as writer:
        for number in range(3):
            writer.append_batch(number, [b"%d" % number]) if batches else writer.append([b"%d" % number])
    declared = (tmp_path / "journal.json").read_bytes()
    for bit in range(8 * len(declared)):
        flipped = bytearray(declared)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / "journal.json").write_bytes(flipped)
        try:
            assert read_journal(tmp_path, 0, 100).lines == (b"0", b"1", b"2"), bytes(flipped)
        except JournalError as error:
            assert "journal" in str(error)  # noqa: PT017 (many cases of one file)


def test_segments_without_a_declaration_are_refused_by_writer_and_readers(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, batches=True) as writer:
        writer.append_batch(0, [b"x"])
    (tmp_path / "journal.json").unlink()
    for use in (JournalWriter, end_offset, earliest_offset, lambda directory: read_journal(directory, 0, 1)):
        with pytest.raises(JournalError, match=r"journal\.json is missing. Restore it\. .*`kontrast stream --rebuild`"):
            use(tmp_path)


def test_a_reader_waits_while_a_journal_begins_or_is_removed(tmp_path: Path) -> None:
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(b"")
    threading.Timer(0.1, segment.unlink).start()
    assert end_offset(tmp_path) == 0


def test_a_file_in_the_directorys_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot be created"):
        JournalWriter(tmp_path / "file")


def test_a_second_writer_is_refused_until_the_first_closes(tmp_path: Path) -> None:
    with JournalWriter(tmp_path), pytest.raises(JournalLockedError, match="another process"):
        JournalWriter(tmp_path)
    JournalWriter(tmp_path).close()


@pytest.mark.parametrize("line", [b"two\nlines", b"#comment"])
def test_a_line_that_would_be_misread_is_refused(tmp_path: Path, line: bytes) -> None:
    with JournalWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match="newline"):
            writer.append([b"good", line])
        assert writer.end_offset == 0


def test_a_full_disk_keeps_nothing_of_the_append(tmp_path: Path) -> None:
    # A child process, because a limit on the size of files cannot stand in for a full disk in this one.
    script = """
import resource, sys
from pathlib import Path
from transport.journal import *
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
with JournalWriter(Path(sys.argv[1])) as writer:
    writer.append([b"a" * 999])
    try:
        writer.append([b"b" * 600, b"c" * 600])
    except JournalFullError as error:
        print(error)
    writer.append([b"d"])
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "j")], cwd=root, capture_output=True, text=True, check=True
    )
    assert "no room left" in done.stdout
    assert issubclass(JournalFullError, JournalError)
    assert read_all(tmp_path / "j") == [b"a" * 999, b"d"]


def test_what_a_reader_may_have_seen_is_never_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write
    seen: list[tuple[bytes, ...]] = []

    def room_for_half(descriptor: int, block: bytes) -> int:
        written = real_write(descriptor, block[: len(block) // 2])
        monkeypatch.setattr(os, "write", no_room)
        seen.append(read_journal(tmp_path, 0, 1000).lines)
        return written

    def no_room(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with JournalWriter(tmp_path, fsync=Fsync.ALWAYS) as writer:
        writer.append([b"one"])
        monkeypatch.setattr(os, "write", room_for_half)
        with pytest.raises(JournalFullError, match=r"no room left: .* of its disk's .* are free"):
            writer.append([b"two", b"three"] * 3)
        assert seen == [(b"one",)], "half an append was to be seen"
        monkeypatch.setattr(os, "write", real_write)
        monkeypatch.setattr(os, "fdatasync", no_room)
        with pytest.raises(JournalFullError):
            writer.append([b"four"])
        shown = read_journal(tmp_path, 0, 1000)
        monkeypatch.undo()
        assert read_journal(tmp_path, 0, 1000) == shown
        writer.append([b"five"])
    assert read_all(tmp_path) == [*shown.lines, b"five"]


def test_removing_the_lock_lets_no_second_writer_in(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as writer:
        (tmp_path / "journal.lock").unlink()
        with pytest.raises(JournalLockedError):
            JournalWriter(tmp_path)
        writer.append([b"one"])
    JournalWriter(tmp_path).close()


def test_a_journal_is_its_owner_s_to_read_unless_the_directory_says_otherwise(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o750)
    for directory, files in ((tmp_path / "a" / "b", 0o600), (shared, 0o640)):
        with JournalWriter(directory) as writer:
            writer.append([b"one"])
        assert {path.stat().st_mode & 0o777 for path in directory.glob("*[0-9n]*")} <= {files, 0o600}
        assert {path.stat().st_mode & 0o777 for path in directory.glob("*.log")} == {files}
    for directory in (tmp_path / "a" / "b", tmp_path / "a"):
        assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", ["directory", "segments"])
def test_a_writer_whose_journal_is_removed_says_so_and_the_next_leaves_a_hole(tmp_path: Path, what: str) -> None:
    with JournalWriter(tmp_path / "j") as writer:
        writer.append([b"one", b"two"])
        position = writer.append([b"three"])
        if what == "directory":
            shutil.rmtree(tmp_path / "j")
        else:
            segments(tmp_path / "j")[-1].unlink()
        for use in (writer.check, lambda: writer.append([b"lost"])):
            with pytest.raises(JournalRemovedError, match="was removed"):
                use()
    with JournalWriter(tmp_path / "j", begin=position, identity=writer.identity) as new:
        assert new.identity == writer.identity
        new.append([b"four"])
    assert read_all(tmp_path / "j", position) == [b"four"]


def test_a_writer_whose_lock_was_lost_stops_when_another_one_has_written(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as writer:
        writer.append([b"one"])
        with segments(tmp_path)[-1].open("ab") as file:
            file.write(b"another's")
        with pytest.raises(JournalLockedError, match="another process has written journal"):
            writer.append([b"lost"])
    with JournalWriter(tmp_path) as writer:
        writer.append([b"two"])
    assert read_all(tmp_path) == [b"one", b"two"]


def test_after_the_machine_went_down_no_offset_is_given_twice(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as writer:
        end = writer.append([b"one"])
        writer.append([b"two", b"three"])
        position = writer.append([b"four"])
        tail, lock = segments(tmp_path)[0].read_bytes()[:end], (tmp_path / "journal.lock").read_bytes()
    segments(tmp_path)[0].write_bytes(tail)  # unforced writes are lost
    for boot, goes_on_at in ((lock, end), (b"another boot", end + 256 * 1024**2)):
        (tmp_path / "journal.lock").write_bytes(boot)
        with JournalWriter(tmp_path) as writer:
            assert writer.end_offset == goes_on_at
    with JournalWriter(tmp_path) as writer:
        writer.append([b"five"])
    assert read_journal(tmp_path, position, 1000).hole is not None
    assert read_all(tmp_path, position) == [b"five"]
    with JournalWriter(tmp_path / "forced", fsync=Fsync.ALWAYS) as writer:
        writer.append([b"one"])
        assert (tmp_path / "forced" / "journal.lock").read_bytes() == b"", "nothing can be lost"


@pytest.mark.parametrize("fsync", Fsync)
def test_each_fsync_policy_keeps_what_was_appended(tmp_path: Path, fsync: Fsync) -> None:
    with JournalWriter(tmp_path, fsync=fsync, fsync_interval_seconds=0, segment_bytes=4) as writer:
        for number in range(5):
            writer.append([b"%d" % number])
    assert read_all(tmp_path) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_batch_is_written_once_and_its_marker_is_not_read(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, batches=True) as writer:
        assert writer.last_batch_id == -1
        assert writer.append_batch(0, [b"a", b"b"])
        assert not writer.append_batch(0, [b"a", b"b"])
        writer.append_batch(1, [])
        writer.append_batch(2, [b"c"])
    with JournalWriter(tmp_path, batches=True) as writer:
        assert writer.last_batch_id == 2
        assert not writer.append_batch(2, [b"c"])
        writer.append_batch(3, [b"d"])
    assert read_all(tmp_path) == [b"a", b"b", b"c", b"d"]


def test_an_incomplete_batch_is_never_read_and_is_cut_off(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, batches=True) as writer:
        writer.append_batch(7, [b"a"])
        end = writer.end_offset
    for torn in (b"b\n", b"b\n#batch 8 0123", b"b\n" * 5000):
        with segments(tmp_path)[-1].open("ab") as file:
            file.write(torn)
        assert end_offset(tmp_path) == end
        assert read_all(tmp_path) == [b"a"]
        with JournalWriter(tmp_path, batches=True) as writer:
            assert (writer.last_batch_id, writer.end_offset) == (7, end)
        assert segments(tmp_path)[-1].stat().st_size == end


def test_the_newest_marker_is_found_in_an_older_segment(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, batches=True, segment_bytes=1) as writer:
        writer.append_batch(4, [b"a"])
        writer.append_batch(5, [b"b"])
        end = writer.end_offset
    (tmp_path / f"{end:020}.log").write_bytes(b"rows without a marker\n")
    assert read_all(tmp_path) == [b"a", b"b"]
    with JournalWriter(tmp_path, batches=True, segment_bytes=1) as writer:
        assert (writer.last_batch_id, writer.end_offset) == (5, end)
        writer.append_batch(6, [b"c"])
    assert read_all(tmp_path) == [b"a", b"b", b"c"]


def test_retention_never_drops_the_newest_marker(tmp_path: Path) -> None:
    for batch_id in range(20):
        with JournalWriter(tmp_path, batches=True, segment_bytes=1, retain_bytes=1) as writer:
            assert writer.last_batch_id == batch_id - 1
            writer.append_batch(batch_id, [b"row %d" % batch_id])
    assert len(segments(tmp_path)) == 1


def test_a_journal_of_lines_and_one_of_batches_are_not_mixed_up(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "lines") as writer, pytest.raises(ValueError, match="batches=True"):
        writer.append_batch(0, [])
    with JournalWriter(tmp_path / "batches", batches=True) as writer, pytest.raises(ValueError, match="append_batch"):
        writer.append([])
    with pytest.raises(JournalError, match="is not one of batches"):
        JournalWriter(tmp_path / "lines", batches=True)
    with pytest.raises(JournalError, match="is one of batches"):
        JournalWriter(tmp_path / "batches")


@pytest.mark.parametrize("batches", [False, True])
def test_a_reader_beside_the_writer_sees_each_line_once_and_whole(tmp_path: Path, batches: bool) -> None:
    count, size = 300, 7
    rows = [[b"%d-%d-%s" % (number, row, b"x" * (number % 90)) for row in range(size)] for number in range(count)]

    def write() -> None:
        with JournalWriter(tmp_path, batches=batches, segment_bytes=2000) as writer:
            for number in range(count):
                if batches:
                    writer.append_batch(number, rows[number])
                else:
                    writer.append(rows[number])

    thread = threading.Thread(target=write)
    thread.start()
    seen: list[bytes] = []
    offset, deadline = 0, time.monotonic() + 60
    while len(seen) < count * size and time.monotonic() < deadline:
        batch = read_journal(tmp_path, offset, 500)
        seen += batch.lines
        offset = batch.next_offset
    thread.join()
    assert seen == [line for batch_rows in rows for line in batch_rows]


@given(
    appends=st.lists(st.lists(st.binary(max_size=30).map(lambda line: b"x" + line.replace(b"\n", b"")), max_size=5)),
    segment_bytes=st.integers(1, 100),
    max_bytes=st.integers(1, 200),
    torn=st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")),
)
def test_any_lines_in_any_segments_are_read_back_with_any_budget(
    tmp_path_factory: pytest.TempPathFactory,
    appends: list[list[bytes]],
    segment_bytes: int,
    max_bytes: int,
    torn: bytes,
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    for lines in appends:
        with JournalWriter(directory, segment_bytes=segment_bytes, fsync=Fsync.NEVER) as writer:
            writer.append(lines)
        with segments(directory)[-1].open("ab") as file:
            file.write(torn)
    assert read_all(directory, max_bytes=max_bytes) == [line for lines in appends for line in lines]
