"""The forwarder's two clocks, and the readers' view of a wall clock that is set meanwhile."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from controller.contract.alert_row import AlertRow
from controller.contract.records import Record, RecordKind
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.publisher import MachineClocks, boot_time_ns
from tests.ingest.conftest import Watching
from tests.waiting import eventually

Watch = Callable[..., Watching]
HOUR_NS = 3_600 * 10**9
MS_IN_NS = 10**6


def test_the_difference_of_the_clocks_stays_the_same_until_one_is_set() -> None:
    wall_ms, steady_ms = 1_000_000, 5_000
    clocks = MachineClocks(lambda: wall_ms * MS_IN_NS, lambda: steady_ms * MS_IN_NS)
    assert clocks.read() == (1_000_000, 5_000)
    for wall_ms, steady_ms, shown_ms in (  # noqa: B007 (the clocks read them)
        (1_001_010, 6_000, 1_001_000),  # within the distance of two readings
        (1_001_990, 7_000, 1_002_000),
        (1_003_011, 8_000, 1_003_011),
        (1_004_005, 9_000, 1_004_011),
        (4_005, 10_000, 4_005),
        (-7, 11_000, 0),  # before 1970
    ):
        assert clocks.read() == (shown_ms, steady_ms)


def test_a_thread_that_is_stopped_between_the_clocks_reads_them_again() -> None:
    steady_ns: Iterator[int] = iter([0, HOUR_NS, HOUR_NS, HOUR_NS + 10 * MS_IN_NS])
    wall_ns = iter([5 * HOUR_NS, 6 * HOUR_NS])
    clocks = MachineClocks(lambda: next(wall_ns), lambda: next(steady_ns))
    assert clocks.read() == (6 * HOUR_NS // MS_IN_NS, HOUR_NS // MS_IN_NS)


def test_where_a_system_does_not_count_its_sleep_the_clock_that_it_has_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    before_ns = time.monotonic_ns()
    assert before_ns <= boot_time_ns() <= time.monotonic_ns()


class SetClock:
    """A wall clock that people set."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def read(self) -> int:
        return time.time_ns() + self.ahead_ns


def alerts(records: list[Record]) -> dict[str, AlertRow]:
    rows = steps(new_context("test", chunk_count=8), records).effects
    return {row.id: row for row in rows if isinstance(row, AlertRow) and row.state == "open"}


def heartbeats(watching: Watching, count: int) -> None:
    before = watching.count(RecordKind.HEARTBEAT)
    eventually(lambda: watching.count(RecordKind.HEARTBEAT) >= before + count)


def register(kafka: KazooClient) -> None:
    kafka.ensure_path("/brokers/ids")
    kafka.create("/controller_epoch", b"1")
    registration = b'{"version":1,"jmx_port":-1,"host":"a","port":1,"endpoints":[],"timestamp":"1"}'
    kafka.create("/brokers/ids/1", registration, ephemeral=True)


@pytest.mark.nightly
def test_a_clock_that_is_set_back_an_hour_holds_up_no_deadline(kafka: KazooClient, watch: Watch) -> None:
    register(kafka)
    clock = SetClock()
    watching = watch(clocks=MachineClocks(clock.read))
    heartbeats(watching, 2)
    clock.ahead_ns = -HOUR_NS
    # The patience of NoController is 10 s of the forwarder's steady clock, which cannot be shortened.
    eventually(lambda: "NoController" in alerts(watching.records()))
    found = alerts(watching.records())
    assert found["ClockStepped"].cause.startswith(f"the clock of host {socket.gethostname()} was set back by 1 h")
    no_controller = found["NoController"]
    assert 10_000 <= no_controller.time_ms - no_controller.since_ms < 30_000
    assert no_controller.time_ms < time.time_ns() // MS_IN_NS - 3_000_000
    records = watching.records()
    assert all(now.steady_ms <= then.steady_ms for now, then in zip(records, records[1:], strict=False))
    assert watching.forwarding.heartbeat_ms < time.time_ns() // MS_IN_NS - 3_000_000


def test_a_forwarder_that_follows_with_a_clock_an_hour_ahead_opens_nothing(kafka: KazooClient, watch: Watch) -> None:
    register(kafka)
    kafka.create("/controller", json.dumps({"version": 1, "brokerid": 1, "timestamp": "1"}).encode(), ephemeral=True)
    first = watch()
    heartbeats(first, 2)
    first.stop()
    clock = SetClock()
    clock.ahead_ns = HOUR_NS
    second = watch(clocks=MachineClocks(clock.read))
    kafka.delete("/controller")
    heartbeats(second, 5)
    records = second.records()
    assert len({record.generation for record in records}) == 2
    assert records[-1].observed_ms - records[0].observed_ms > 3_000_000
    assert alerts(records) == {}
