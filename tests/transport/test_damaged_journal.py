"""A damaged journal. No reader hangs or gets another value, and every loss is visible."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from transport.journal import JournalWriter
from transport.journal_reading import Hole, end_offset, journal_identity, read_journal
from transport.segments import ForeignOffsetError

LINES = [b'{"number":%d,"padding":"%s"}' % (number, b"x" * (number % 50)) for number in range(600)]


def write(directory: Path, lines: list[bytes] = LINES, **settings: int) -> None:
    with JournalWriter(directory, segment_bytes=10_000, **settings) as writer:
        for begin in range(0, len(lines), 7):
            writer.append(lines[begin : begin + 7])


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def read_on(directory: Path, offset: int = 0, max_bytes: int = 3000) -> tuple[list[bytes], list[Hole]]:
    """Return all lines and holes. Fail if reading makes no progress before the end."""
    lines: list[bytes] = []
    holes: list[Hole] = []
    end = end_offset(directory)
    while offset < end:
        batch = read_journal(directory, offset, max_bytes)
        assert batch.next_offset > offset, f"reading stands still at {offset} of {end}"
        lines += batch.lines
        holes += [batch.hole] if batch.hole else []
        offset = batch.next_offset
    return lines, holes


def test_no_flipped_bit_passes_as_another_value(tmp_path: Path) -> None:
    write(tmp_path)
    chance = random.Random(20260701)
    for _ in range(400):
        victim = chance.choice(segments(tmp_path))
        whole = victim.read_bytes()
        at = chance.randrange(len(whole))
        flipped = bytearray(whole)
        flipped[at] ^= 1 << chance.randrange(8)
        victim.write_bytes(flipped)
        lines, holes = read_on(tmp_path)
        kept = iter(LINES)
        assert all(line in kept for line in lines), "lines that were never written, or in another order"
        # Without the very last mark, readers cannot know that more was written.
        assert holes or len(lines) < len(LINES)
        assert len(lines) >= len(LINES) - 3 * 7
        victim.write_bytes(whole)


def missing(segment: Path) -> None:
    segment.unlink()


def shortened(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:4321])


def without_its_beginning(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[1234:])


def filled_with_zeros(segment: Path) -> None:
    segment.write_bytes(bytes(segment.stat().st_size))


def zeros_inside(segment: Path) -> None:
    whole = segment.read_bytes()
    segment.write_bytes(whole[:2000] + bytes(4096) + whole[6096:])


DAMAGES = [missing, shortened, without_its_beginning, filled_with_zeros, zeros_inside]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("max_bytes", [1, 3000, 1 << 30])
def test_a_hole_is_named_and_gone_past(tmp_path: Path, damage, max_bytes: int) -> None:
    write(tmp_path)
    before, victim, behind = segments(tmp_path)[:3]
    damage(victim)
    lines, holes = read_on(tmp_path, max_bytes=max_bytes)
    named = {hole.path for hole in holes}
    assert named == {before if damage is missing else victim}
    assert all(int(victim.stem) <= hole.begin < hole.end <= int(behind.stem) for hole in holes)
    assert str(holes[0].begin) in str(holes[0])
    assert str(holes[0].path) in str(holes[0])
    first = read_on(tmp_path, int(behind.stem))[0]
    assert lines[-len(first) :] == first == LINES[-len(first) :]
    lost = [line for line in LINES if line not in set(lines)]
    assert lost
    assert [line for line in LINES if line not in set(lost)] == lines


@pytest.mark.parametrize("damage", [missing, shortened, filled_with_zeros])
def test_a_hole_in_what_an_older_kontrast_wrote_is_gone_past_too(tmp_path: Path, damage) -> None:
    offset = 0
    for begin in range(0, len(LINES), 100):
        content = b"\n".join((*LINES[begin : begin + 100], b""))
        (tmp_path / f"{offset:020}.log").write_bytes(content)
        offset += len(content)
    (tmp_path / "journal.json").write_text(json.dumps({"format": 1, "batches": False}))
    assert read_on(tmp_path) == (LINES, [])
    damage(segments(tmp_path)[2])
    lines, holes = read_on(tmp_path)
    assert len(holes) == 1
    assert lines[:200] == LINES[:200]
    assert lines[-300:] == LINES[-300:]


@pytest.mark.parametrize("batches", [False, True])
def test_a_journal_of_an_older_kontrast_is_gone_on_with(tmp_path: Path, batches: bool) -> None:
    old = b"one\ntwo\n" + (b"#batch 3\nthree\n#batch 4\n" if batches else b"three\n")
    (tmp_path / f"{0:020}.log").write_bytes(old + b"torn")
    (tmp_path / "journal.json").write_text(json.dumps({"format": 1, "batches": batches}))
    assert read_journal(tmp_path, 0, 1000).lines == (b"one", b"two", b"three")
    for number in (5, 6):
        with JournalWriter(tmp_path, batches=batches) as writer:
            if batches:
                assert writer.last_batch_id == number - 1
                assert number > 5 or not writer.append_batch(4, [b"again"], b"a source that the old mark does not name")
                writer.append_batch(number, [b"%d" % number])
            else:
                writer.append([b"%d" % number])
    assert read_on(tmp_path) == ([b"one", b"two", b"three", b"5", b"6"], [])
    assert read_journal(tmp_path, 4, 1000).lines == (b"two", b"three", b"5", b"6"), "old offsets hold"
    assert segments(tmp_path)[0].read_bytes() == old
    assert json.loads((tmp_path / "journal.json").read_text())["format"] == 2


def test_each_line_is_given_with_its_offset_and_reading_begins_at_any(tmp_path: Path) -> None:
    write(tmp_path, LINES[:100])
    with JournalWriter(tmp_path) as writer:
        writer.append(LINES[100:])  # many pieces
    batch = read_journal(tmp_path, 0, 1 << 30)
    assert [line for _, line in batch.placed()] == LINES
    for index, (offset, _) in list(enumerate(batch.placed()))[::13]:
        assert read_on(tmp_path, offset)[0] == LINES[index:]
    with pytest.raises(ForeignOffsetError, match="--rebuild"):
        read_journal(tmp_path, 3, 100)


def test_another_journal_in_the_same_place_is_another(tmp_path: Path) -> None:
    assert journal_identity(tmp_path / "j") == ""
    identities = set()
    for _ in range(2):
        write(tmp_path / "j", LINES[:5])
        write(tmp_path / "j", LINES[:5])
        identities.add(journal_identity(tmp_path / "j"))
        for path in (tmp_path / "j").iterdir():
            path.unlink()
    assert len(identities) == 2
