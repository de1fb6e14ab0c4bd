"""Requests for a complete read to `kontrast watch`, repeated until one comes, and rarer if it does not help."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from streaming.sources import newest_complete_reads
from streaming.sources.newest_complete_reads import CompleteReadRequests, wait_seconds
from transport.address import JournalAddress
from transport.topics import complete_read_requested_ns


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
