"""The journal as a source for Spark, with files removed under the reader, and requests for a complete read."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from streaming.published import unpack
from streaming.sources import journal_source, newest_complete_reads
from streaming.sources.journal_source import JournalReader
from streaming.sources.newest_complete_reads import CompleteReadRequests, wait_seconds
from transport.address import JournalAddress
from transport.journal import JournalWriter
from transport.segments import ForeignOffsetError
from transport.topics import complete_read_requested_ns


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    return tmp_path / "changes"


def rows(reader: JournalReader, start: dict) -> tuple[int, dict]:
    batches, end = reader.read(start)
    return sum(batch.num_rows for batch in batches), end


def test_a_journal_that_is_begun_again_at_the_same_offset_is_read_on(changes: Path) -> None:
    with JournalWriter(changes) as writer:
        end, identity = writer.append([b'{"v":1,"cluster":"east"}']), writer.identity
    reader = JournalReader(changes, 1024)
    count, place = rows(reader, reader.initialOffset())
    assert (count, place["offset"]) == (1, end)
    shutil.rmtree(changes)
    assert rows(reader, place) == (0, place)
    with JournalWriter(changes, begin=end, identity=identity) as writer:
        writer.append([b'{"v":1,"cluster":"east"}'])
    assert rows(reader, place)[0] == 1


def test_a_journal_that_stays_away_is_an_error_that_names_the_way_out(
    changes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_source, "BEGUN_AGAIN_SECONDS", 0.0)
    with JournalWriter(changes) as writer:
        end = writer.append([b'{"v":1,"cluster":"east"}'])
    reader = JournalReader(changes, 1024)
    shutil.rmtree(changes)
    with pytest.raises(ForeignOffsetError, match="kontrast stream --rebuild"):
        rows(reader, {"offset": end})


def test_each_line_goes_to_its_own_cluster_whatever_stands_before_it(changes: Path) -> None:
    east, eastern, garbage = b'{"v":1,"cluster":"east"}', b'{"v":1,"cluster":"eastern"}', b'{"v":1,"cluster"'
    reordered, no_text = b'{"cluster":"east","v":1}', b'{"v":1,"cluster":"\xff"}'
    lines = [east, eastern, east, east, garbage, east, reordered, no_text, no_text, eastern]
    with JournalWriter(changes) as writer:
        writer.append(lines)
    reader = JournalReader(changes, 1024)
    ((batch,), _) = reader.read(reader.initialOffset())
    found = {row["cluster"]: unpack(row["value"]).split(b"\n") for row in batch.to_pylist()}
    assert found == {"east": [east] * 4 + [reordered], "eastern": [eastern] * 2, "": [garbage, no_text, no_text]}


class Clock:
    """Time as the job sees it, and when it asked."""

    def __init__(self, directory: Path) -> None:
        self.now = 1_000.0
        self._directory = directory
        self._requests = CompleteReadRequests(None, JournalAddress(directory))

    def asked_during(self, seconds: int, lacking: dict[str, int]) -> list[int]:
        """Return the seconds, out of the next ones, at which it asked."""
        found = []
        for second in range(seconds):
            before = complete_read_requested_ns(self._directory)
            self._requests.look(lacking)
            if complete_read_requested_ns(self._directory) != before:
                found.append(second)
                (self._directory / "snapshot-wanted").unlink()
            self.now += 1
        return found


@pytest.fixture
def clock(tmp_path: Path, monkeypatch) -> Clock:
    clock = Clock(tmp_path)
    monkeypatch.setattr(newest_complete_reads, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_nobody_asks_where_nothing_is_lacking(clock):
    assert clock.asked_during(100, {}) == []


def test_it_is_asked_at_once_and_every_half_minute_until_a_read_has_come(clock):
    assert clock.asked_during(100, {"east": 0}) == [0, 30, 60, 90]
    assert clock.asked_during(100, {"east": 1}) == [20, 50, 80]


def test_a_cluster_that_keeps_failing_is_asked_for_less_and_less_often(clock):
    assert clock.asked_during(1, {"east": 1}) == [0]
    assert clock.asked_during(200, {"east": 2}) == [59, 119, 179]
    assert clock.asked_during(500, {"east": 4}) == [219, 459]


def test_another_cluster_is_not_made_to_wait(clock):
    assert clock.asked_during(1, {"east": 9}) == [0]
    assert clock.asked_during(50, {"east": 9, "west": 0}) == [0, 30]


def test_the_wait_doubles_up_to_an_hour():
    assert [wait_seconds(failures) for failures in range(9)] == [30, 30, 60, 120, 240, 480, 960, 1920, 3600]
    assert wait_seconds(10**9) == 3600
