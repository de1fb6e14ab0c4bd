"""Every loss that takes a partition from clients is told under a group that nobody had silenced before the loss.

Random sequences of losses, silences, returns and reassignments. A person silences every open alert that a pager could
have sent, so after the incident has settled, and no silence ever expires.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from controller.alerts.incidents import settles_within_ms
from controller.contract.alert_row import AlertRow, Severity
from controller.view.partition_issues import OFFLINE_ISSUES, PartitionIssue, issues_of, parse_group
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory, catch_up

BROKERS = (1, 2, 3, 4)
CONTROLLER = 7  # hosts nothing and stays
ABSENT = 9  # never registers
TAKEN = OFFLINE_ISSUES | {PartitionIssue.UNDER_MIN_ISR, PartitionIssue.ELECTION_OWED, PartitionIssue.LEADERLESS}
TOPICS = {
    "ledger": {0: ([1, 2, 3], 1, 0, [1, 2, 3]), 1: ([2, 3, 4], 2, 0, [2, 3, 4])},
    "web": {0: ([2, 1, 3], 2, 0, [2, 1, 3]), 1: ([4, 2], 4, 0, [4, 2])},
    "scratch": {number: ([broker], broker, 0, [broker]) for number, broker in enumerate(BROKERS)},
}

losses = st.tuples(
    st.just("lose"), st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True), st.booleans()
)
returns = st.tuples(st.just("return"), st.sampled_from(BROKERS), st.booleans())
silences = st.tuples(st.just("silence"))
passing = st.tuples(st.just("wait"), st.sampled_from([1_000, 20_000, 16 * 60_000]))
reassigned = st.tuples(st.just("reassign"), st.sampled_from([("web", 0, [ABSENT, 2]), ("ledger", 0, [1, ABSENT, 3])]))
disks = st.tuples(st.just("disk"), st.sampled_from(BROKERS))
STEPS = st.lists(losses | returns | silences | passing | reassigned | disks, min_size=2, max_size=12)

SEQUENCES = [60, pytest.param(20_000, marks=[pytest.mark.nightly, pytest.mark.timeout(4 * 3600)])]


class Cluster:
    """A cluster, and the groups of its alerts that somebody has silenced."""

    def __init__(self) -> None:
        self.history = ZnodeHistory(chunk_count=4, release=(3, 9))
        self.history.start(*BROKERS, CONTROLLER, controller=CONTROLLER, topics=TOPICS)
        self.history.write("/config/topics/ledger", {"version": 1, "config": {"min.insync.replicas": "3"}})
        self.silenced: set[str] = set()

    def lose(self, brokers: list[int], written: bool) -> None:
        """Lose these brokers within a second, and assert that a pager hears of it if clients do."""
        usable, began, before = self._taken(), len(self.history.effects), self.history.open_alerts()
        registered = [broker for broker in brokers if broker in self.history.context.header.brokers]
        for broker in registered:
            self.history.now_ms += 300
            self.history.broker_leaves(broker)
            if written:
                self.history.the_controller_writes_its_due()
        self.history.the_controller_writes_its_due()
        for _ in range(2):
            self.history.heartbeat(6_000)
        taken = self._taken() - usable
        if registered and taken:
            rows = [row for row in self.history.effects[began:] if isinstance(row, AlertRow) and row.state == "open"]
            rung = {row.group for row in rows if row.severity is not Severity.INFO and is_news(row, before.get(row.id))}
            assert rung - self.silenced, (taken, rung, self.silenced)

    def silence(self) -> None:
        """Silence all that a pager may have told, which takes a person longer than an incident takes to settle."""
        self.history.heartbeat(settles_within_ms(self.history.context.header) + 1)
        self.silenced |= {row.group for row in self.history.open_alerts().values()}

    def comes_back(self, broker: int, catches_up: bool) -> None:
        if broker in self.history.context.header.brokers:
            return
        self.history.broker(broker)
        self.history.the_controller_writes_its_due()
        if catches_up:
            catch_up(self.history)
        self.history.heartbeat()

    def reassign(self, to: tuple[str, int, list[int]]) -> None:
        self.history.reassign(to)
        self.history.the_controller_writes_its_due()
        self.history.heartbeat()

    def disk_fails(self, broker: int) -> None:
        """Report a failed log directory without a replica in sync, whose alert has the broker's group."""
        if broker in self.history.context.header.brokers:
            self.history.write(LOG_DIR_EVENT, {"version": 1, "broker": broker, "event": 1})
            self.history.heartbeat()

    def _taken(self) -> set[tuple[str, int, PartitionIssue]]:
        context = self.history.context
        return {
            (name, number, issue)
            for name, topic in context.topics
            for number, partition in topic.partitions.items()
            for key in issues_of(topic, partition, context.header.counting_rules)
            if (issue := parse_group(key)[0]) in TAKEN
        }


def is_news(row: AlertRow, before: AlertRow | None) -> bool:
    """Return whether a pager gets another alert, or one that has ended before."""
    return before is None or row.severity is not before.severity or row.brokers != before.brokers


@pytest.mark.parametrize("sequences", SEQUENCES)
def test_every_loss_that_clients_notice_rings_whatever_was_silenced(sequences):
    @settings(max_examples=sequences, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(STEPS)
    def rings(steps) -> None:
        cluster = Cluster()
        act = {
            "lose": cluster.lose,
            "return": cluster.comes_back,
            "silence": cluster.silence,
            "wait": cluster.history.heartbeat,
            "reassign": cluster.reassign,
            "disk": cluster.disk_fails,
        }
        for name, *arguments in steps:
            act[name](*arguments)

    rings()


def names(history: ZnodeHistory) -> list[str]:
    return [incident.name for incident in history.context.header.alerts.incidents]


def settled_after(history: ZnodeHistory, broker: int) -> None:
    """Let the broker return and catch up, and wait until its incident has settled."""
    history.broker(broker)
    history.the_controller_writes_its_due()
    catch_up(history)
    history.heartbeat(60_000)
    assert names(history) == []


def test_an_incident_without_an_alert_leaves_its_number_to_the_next():
    history = Cluster().history
    history.broker_leaves(1)
    history.the_controller_writes_its_due()
    assert names(history) == ["broker 1"]
    settled_after(history, 1)
    for _ in range(3):
        for isr in ([2, 3], [2, 3, 1]):
            value = history.context.topics["web"].partitions[0].zk_state
            history.state("web", 0, value.leader, value.leader_epoch, isr, value.controller_epoch)
            history.heartbeat()
        history.heartbeat(60_000)
    assert len([row for row in history.effects if isinstance(row, AlertRow) and "(2)" in row.id]) == 0
    history.broker_leaves(1)
    assert names(history) == ["broker 1 (2)"]


def test_a_group_that_only_an_event_of_the_broker_had_is_not_the_next_crashs():
    history = Cluster().history
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 1, "event": 1})
    history.heartbeat(60_000)
    assert {row.group for row in history.open_alerts().values()} == {"broker 1"}
    assert names(history) == []
    history.broker_leaves(1)
    assert {row.group for row in history.open_alerts().values() if row.alert == "PartitionsOffline"} == {"broker 1 (2)"}
