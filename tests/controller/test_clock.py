"""The cluster's time under clocks that people set, forwarders that follow one another, and records of older ones."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, strategies as st

from controller.contract.alert_row import AlertRow
from controller.contract.forwarder_status import ForwarderStatus, MaintenanceWindow
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BrokerRow, PartitionRow
from controller.contract.outputs import OutputRow
from controller.contract.records import Position, Record, RecordKind
from controller.contract.row import MOMENT, Row
from controller.model import clock
from controller.model.context import Header
from controller.rules.timing import CLOCK_STEP_MS
from controller.step import steps
from tests.controller.znode_history import ZnodeHistory, on

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000
TOPICS = on([1, 2, 3], 1, 0, [1, 2, 3])


def a_cluster(*, steady: bool = True) -> ZnodeHistory:
    history = ZnodeHistory()
    history.now_ms = START_MS
    history.steady_from_ms = START_MS - 77_000 if steady else None
    history.start(1, 2, 3, topics=TOPICS)
    history.heartbeat()
    return history


def take_over(history: ZnodeHistory, *, after_ms: int, wall_ahead_ms: int, host: str = "host two") -> tuple[Row, ...]:
    """Let another forwarder begin a generation, with its own steady and wall clocks, and read the same znodes."""
    history.now_ms += after_ms
    history.generation, history.seq = history.generation + 1, -1
    history.wall_ahead_ms = wall_ahead_ms
    if history.steady_from_ms is not None:
        history.steady_from_ms = history.now_ms - 5
    known = dict(history.contents)
    effects = history.send(RecordKind.SNAPSHOT_BEGIN, data=msgspec.json.encode(ForwarderStatus(clock_of=host)).decode())
    for path in list(history.znodes):
        effects += history.write(path, known[path])
    return effects + history.send(RecordKind.SNAPSHOT_END, zxid=history.zxid)


def heartbeats(history: ZnodeHistory, count: int) -> Iterator[AlertRow]:
    for _ in range(count):
        yield from (row for row in history.heartbeat(990) if isinstance(row, AlertRow))


def opened(rows: Iterator[AlertRow]) -> list[str]:
    return [row.id for row in rows if row.state == "open"]


def time_ms(history: ZnodeHistory) -> int:
    return history.context.header.time_ms


# --- steps of one forwarder's clock


def test_while_the_clock_is_an_hour_back_deadlines_pass_all_the_same():
    history = a_cluster()
    history.delete("/controller")
    history.wall_ahead_ms = -HOUR_MS
    alerts = list(heartbeats(history, 600))
    assert [row.id for row in alerts if row.state == "open"][:2] == ["ClockStepped", "NoController"]
    no_controller = next(row for row in alerts if row.alert == "NoController")
    assert 10_000 <= no_controller.time_ms - no_controller.since_ms < 11_000
    assert opened(iter(alerts)).count("NoController") == 1


def test_a_clock_that_is_set_ahead_makes_nothing_overdue():
    history = a_cluster()
    history.delete("/controller")
    history.broker_leaves(3)
    history.heartbeat()
    open_before = set(history.open_alerts())
    history.wall_ahead_ms = HOUR_MS
    assert opened(heartbeats(history, 3)) == ["BrokerCrashed/broker 3", "ClockStepped"]  # the first since another time
    assert set(history.open_alerts()) == {*open_before, "ClockStepped"}
    assert "NoController" in opened(heartbeats(history, 12))


@pytest.mark.parametrize(
    ("by_ms", "said"), [(HOUR_MS, ("ahead by 1 h", "1 h too early")), (-1_500, ("back by 1.5 s", "1.5 s too late"))]
)
def test_a_step_is_an_alert_that_says_whose_clock_by_how_much_and_which_way(by_ms, said):
    history = ZnodeHistory()
    history.steady_from_ms = 0
    take_over(history, after_ms=0, wall_ahead_ms=0, host="host one")
    history.wall_ahead_ms += by_ms
    (alert,) = heartbeats(history, 1)
    assert alert.cause == (
        f"the clock of host one was set {said[0]}: times shown before are {said[1]}. Deadlines are not affected"
    )
    assert (alert.severity.value, alert.group) == ("warn", "ClockStepped")


def test_a_step_ends_half_an_hour_later_and_one_more_is_counted():
    history = a_cluster()
    for by_ms in (HOUR_MS, -HOUR_MS):
        history.wall_ahead_ms += by_ms
        list(heartbeats(history, 6))
    assert history.open_alerts()["ClockStepped"].cause.endswith("(2 times)")
    history.heartbeat(30 * 60_000)
    history.heartbeat()
    assert "ClockStepped" not in history.open_alerts()


def the_cost_changes(history: ZnodeHistory) -> None:
    """Let the crash cost more, so that its alert has another row."""
    history.the_controller_writes_its_due()
    history.write("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "2"}})


def test_a_second_is_no_step_and_what_is_shown_is_right_all_the_same():
    history = a_cluster()
    history.broker_leaves(2)
    since_ms = history.open_alerts()["BrokerCrashed/broker 2"].since_ms
    history.wall_ahead_ms = -1_000
    the_cost_changes(history)
    list(heartbeats(history, 10))
    assert history.open_alerts()["BrokerCrashed/broker 2"].since_ms == since_ms - 1_000
    assert "ClockStepped" not in history.open_alerts()


def test_slewing_is_no_step_however_long_it_lasts_nor_after_a_long_silence():
    history = a_cluster()
    history.broker_leaves(2)
    since_ms = history.open_alerts()["BrokerCrashed/broker 2"].since_ms
    for heartbeat in range(6_000):
        history.wall_ahead_ms = heartbeat // 2  # 500 ppm
        history.heartbeat(990)
    assert history.wall_ahead_ms > 2 * CLOCK_STEP_MS
    slewed_ms = history.wall_ahead_ms = history.wall_ahead_ms + 5_000
    history.heartbeat(10_000_000)
    assert "ClockStepped" not in history.open_alerts()
    the_cost_changes(history)
    history.heartbeat()
    assert history.open_alerts()["BrokerCrashed/broker 2"].since_ms == since_ms + slewed_ms


def test_a_clock_that_was_wrong_for_a_while_leaves_nothing_behind():
    history = a_cluster()
    for ahead_ms in (HOUR_MS, 0):
        history.wall_ahead_ms = ahead_ms
        history.heartbeat()
    assert history.context.header.clocks.walls == ()
    assert time_ms(history) == history.now_ms


def test_what_is_shown_after_a_step_is_by_the_clock_as_it_is_now():
    history = a_cluster()
    history.broker_leaves(1)
    left_ms = history.now_ms
    history.wall_ahead_ms = -HOUR_MS
    history.heartbeat()
    history.topic("u", {0: [1]})
    history.heartbeat(20_000)
    shown_ms = {
        row.since_ms for row in history.effects if isinstance(row, AlertRow) and row.id == "BrokerCrashed/broker 1"
    }
    assert shown_ms == {left_ms, left_ms - HOUR_MS}
    rows = [row for row in history.effects if isinstance(row, PartitionRow) and row.time_ms < left_ms - HOUR_MS // 2]
    assert rows
    assert all(row.problem_since_ms is None or row.problem_since_ms <= row.time_ms for row in rows)
    assert history.heartbeat()[-1].time_ms == history.now_ms - HOUR_MS


def test_the_slowest_reactions_are_shown_by_the_clock_as_it_is_now():
    history = a_cluster()
    history.broker_leaves(1)
    left_ms = history.now_ms
    history.the_controller_writes_its_due()
    assert {slow.began_ms for slow in history.gauges().slowest_reactions} == {left_ms}
    history.wall_ahead_ms = HOUR_MS
    gauges = history.gauges()
    assert {slow.began_ms for slow in gauges.slowest_reactions} == {left_ms + HOUR_MS}
    assert all(slow.last_ms < 1_000 for slow in gauges.slowest_reactions)


def test_a_window_of_maintenance_ends_by_the_wall_clock_that_people_see():
    history = a_cluster()
    until_ms = history.now_ms + HOUR_MS
    window = MaintenanceWindow(brokers=(2,), until_ms=until_ms)
    history.wall_ahead_ms = -HOUR_MS
    history.heartbeat(maintenance=(window,))
    history.broker_leaves(2)
    history.heartbeat(HOUR_MS, maintenance=(window,))
    assert history.open_alerts()["BrokerCrashed/broker 2"].severity.value == "info"
    history.heartbeat(HOUR_MS, maintenance=(window,))
    assert history.now_ms + history.wall_ahead_ms > until_ms
    assert history.open_alerts()["BrokerCrashed/broker 2"].severity.value != "info"


def test_records_taken_together_show_what_they_show_one_by_one():
    history = a_cluster()
    history.broker_leaves(1)
    before, begin = history.context, len(history.effects)
    for epoch, ahead_ms in enumerate((0, HOUR_MS, -HOUR_MS), start=1):
        history.wall_ahead_ms = ahead_ms
        history.state("t", 0, 2, epoch, [2])
    outcome = steps(before, history.records[-3:])
    assert list(outcome.effects) == history.effects[begin:]
    assert outcome.context.header == history.context.header


# --- one forwarder after the other


@pytest.mark.parametrize("steady", [True, False])
def test_a_forwarder_whose_clock_is_an_hour_ahead_makes_nothing_overdue(steady):
    history = a_cluster(steady=steady)
    history.state("t", 0, 1, 0, [1, 2])
    lacking_ms = history.now_ms
    assert opened(heartbeats(history, 30)) == []
    take_over(history, after_ms=3_000, wall_ahead_ms=HOUR_MS)
    assert opened(heartbeats(history, 25)) == []
    assert opened(heartbeats(history, 10)) == ["PartitionsUnderReplicated/broker 3"]
    assert history.open_alerts()["PartitionsUnderReplicated/broker 3"].since_ms == lacking_ms


@pytest.mark.parametrize("steady", [True, False])
def test_a_forwarder_whose_clock_is_an_hour_behind_holds_no_deadline_up_and_says_so(steady):
    history = a_cluster(steady=steady)
    history.state("t", 0, 1, 0, [1, 2])
    lacking_ms = history.now_ms
    assert opened(heartbeats(history, 30)) == []
    (stepped,) = (
        row for row in take_over(history, after_ms=3_000, wall_ahead_ms=-HOUR_MS) if isinstance(row, AlertRow)
    )
    whose = "times now go by the clock of host two, at least 59 min 56 s behind that of the host of `kontrast watch`: "
    assert stepped.cause.startswith(whose)
    (lacking,) = heartbeats(history, 35)
    assert lacking.id == "PartitionsUnderReplicated/broker 3"
    by_now_ms = lacking_ms - HOUR_MS + 3_000
    assert by_now_ms <= lacking.since_ms < by_now_ms + 100


def test_a_forwarder_that_is_restarted_with_a_clock_that_was_set_back_says_so():
    history = a_cluster()
    take_over(history, after_ms=2_000, wall_ahead_ms=HOUR_MS, host="host one")
    take_over(history, after_ms=2_000, wall_ahead_ms=0, host="host one")
    history.heartbeat()
    assert "the clock of host one was set back by at least 59 min 57 s" in history.open_alerts()["ClockStepped"].cause


def test_clocks_that_differ_by_less_than_a_second_are_no_step():
    history = a_cluster()
    take_over(history, after_ms=100, wall_ahead_ms=-900)
    history.heartbeat()
    assert "ClockStepped" not in history.open_alerts()
    assert history.heartbeat()[-1].time_ms == history.now_ms - 900


def test_what_happened_before_a_night_in_which_nobody_watched_keeps_its_time():
    history = a_cluster()
    history.broker_leaves(2)
    left_ms = history.now_ms
    history.heartbeat()
    stopped_ms = time_ms(history)
    take_over(history, after_ms=8 * HOUR_MS, wall_ahead_ms=0)
    assert time_ms(history) < stopped_ms + 2_000
    history.broker_leaves(3)
    left_next_ms = history.now_ms
    history.the_controller_writes_its_due()
    list(heartbeats(history, 10))
    alerts = history.open_alerts()
    assert alerts["BrokerCrashed/broker 2"].since_ms == left_ms
    rows = [row for row in history.effects if isinstance(row, BrokerRow) and row.broker == 3]
    assert (rows[-1].registered, rows[-1].since_ms) == (False, left_next_ms)
    assert "ClockStepped" not in alerts


def test_a_step_after_a_night_in_which_nobody_watched_moves_all_times_alike():
    history = a_cluster()
    history.broker_leaves(2)
    left_ms = history.now_ms
    take_over(history, after_ms=8 * HOUR_MS, wall_ahead_ms=0)
    history.heartbeat()
    history.wall_ahead_ms = -HOUR_MS
    list(heartbeats(history, 10))
    assert history.open_alerts()["BrokerCrashed/broker 2"].since_ms == left_ms - HOUR_MS


def test_however_many_forwarders_follow_one_another_what_is_kept_of_them_is_bounded():
    history = a_cluster()
    history.broker_leaves(2)
    sizes = []
    for _ in range(200):
        take_over(history, after_ms=60_000, wall_ahead_ms=0)
        sizes.append(len(history.context.header.clocks.walls))
    assert max(sizes) == sizes[-1] == 128
    header = history.context.header
    assert header.wall_ms == header.wall_ms_of(header.time_ms) == history.now_ms


# --- records without a steady clock, from ZooKeeper's logs and older forwarders


def test_without_a_steady_clock_time_goes_by_the_wall_clock():
    history = a_cluster(steady=False)
    for after_ms in (1_000, HOUR_MS, 0):
        history.heartbeat(after_ms)
        assert time_ms(history) == history.now_ms
    assert "ClockStepped" not in history.open_alerts()


def test_without_a_steady_clock_a_step_back_is_seen_and_time_goes_on():
    history = a_cluster(steady=False)
    history.delete("/controller")
    history.wall_ahead_ms = -HOUR_MS
    alerts = list(heartbeats(history, 13))
    assert set(opened(iter(alerts))) == {"ClockStepped", "NoController"}
    assert time_ms(history) == pytest.approx(history.now_ms, abs=1_000)


def test_without_a_steady_clock_time_waits_for_a_wall_clock_that_is_a_little_behind():
    history = a_cluster(steady=False)
    before_ms = time_ms(history)
    history.wall_ahead_ms = -900
    history.heartbeat(500)
    assert time_ms(history) == before_ms
    history.heartbeat(1_000)
    assert time_ms(history) == history.now_ms - 900
    assert history.context.header.clocks.walls == ()


# --- always

NUMBERS = st.integers(0, 2**47)
MOVES = st.lists(
    st.tuples(st.booleans(), st.one_of(st.just(-1), NUMBERS), st.one_of(NUMBERS, st.integers(0, 5_000))), max_size=30
)


@given(MOVES)
def test_time_never_goes_back_nor_faster_than_the_steady_clock(moves):
    header = Header("c", 1)
    generation = seq = 0
    newest_steady_ms = -1
    for takes_over, steady_ms, wall in moves:
        generation, seq = (generation + 1, 0) if takes_over else (generation, seq + 1)
        before_ms, known = header.time_ms, header.position
        record = Record(
            cluster="c",
            generation=generation,
            seq=seq,
            kind=RecordKind.HEARTBEAT,
            observed_ms=wall,
            steady_ms=steady_ms,
        )
        stepped_ms = clock.advance(header, record)
        header.position = record.position
        gone_ms = header.time_ms - before_ms
        assert gone_ms >= 0 or known == Position(-1, -1)
        if known == Position(-1, -1):
            assert header.time_ms == wall
        elif takes_over:
            assert gone_ms <= clock.WATCHED_AT_MOST_MS
        elif steady_ms >= 0 and newest_steady_ms >= 0:
            assert gone_ms == max(0, steady_ms - newest_steady_ms)
        # The shown time is the wall clock, or within a second of the wall clock.
        assert -CLOCK_STEP_MS <= wall - header.wall_ms <= 0
        assert stepped_ms == 0 or abs(stepped_ms) > CLOCK_STEP_MS
        in_one_life = not takes_over and steady_ms >= 0 and newest_steady_ms >= 0
        newest_steady_ms = max(steady_ms, newest_steady_ms) if in_one_life else steady_ms


def test_each_field_of_a_row_that_is_a_time_is_a_moment_or_the_records_own():
    own = {"time_ms"}
    zk_assignment = {"until_ms"}  # by people, who go by the wall clock
    durations = {"first_ms", "last_ms", "first_sum_ms", "last_sum_ms"}
    structs = [row for row in OutputRow.__args__ if issubclass(row, Row)]
    structs += [
        kind.cls
        for field in msgspec.inspect.type_info(GaugesRow).fields
        for kind in (getattr(field.type, "item_type", None), getattr(field.type, "value_type", None))
        if isinstance(kind, msgspec.inspect.StructType)
    ]
    for struct in structs:
        for field in msgspec.inspect.type_info(struct).fields:
            if field.name.endswith("_ms") and field.name not in own | zk_assignment | durations:
                kinds = getattr(field.type, "types", (field.type,))
                assert any(getattr(kind, "extra", None) == MOMENT for kind in kinds), (struct, field.name)


def test_an_unreadable_beginning_names_no_clock():
    history = ZnodeHistory()
    history.send(RecordKind.SNAPSHOT_BEGIN, data="{")
    assert history.context.header.clocks.wall_clock_of == ""
    history.generation, history.seq = 2, -1
    history.send(RecordKind.SNAPSHOT_BEGIN, data=json.dumps({"clock_of": "host one", "more": 1}))
    assert history.context.header.clocks.wall_clock_of == "host one"


def test_a_complete_read_of_files_gives_its_session_to_its_first_row():
    history = ZnodeHistory()
    session = msgspec.json.encode(ForwarderStatus(session="replay", watch_mode="transaction-log")).decode()
    history.send(RecordKind.SNAPSHOT_BEGIN, data=session)
    rows = history.send(RecordKind.SNAPSHOT_END)
    (gauges,) = (row for row in rows if isinstance(row, GaugesRow))
    assert (gauges.session, gauges.watch_mode) == ("replay", "transaction-log")
    history.send(RecordKind.SESSION, data='{"session":"connected","watch_mode":"persistent"}')
    (gauges,) = (row for row in history.heartbeat() if isinstance(row, GaugesRow))
    assert gauges.session == "connected"
