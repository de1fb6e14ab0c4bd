"""Prober that asks the brokers of every cluster in rounds, and keeps the differences that last."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import BrokerRow
from dashboards.alerting.registry import BROKER_VIEW, ActiveAlerts, Finder, alert_at
from dashboards.errors import ServeError
from dashboards.probe.broker import (
    BrokerConnection,
    BrokerView,
    Leader,
    ProbeError,
    ask_ports,
    choose_endpoint,
    expected_bytes,
)
from dashboards.probe.comparison import (
    CurrentRows,
    DifferenceKind,
    PartitionDifference,
    PartitionName,
    Rounds,
    differences,
    gauges_of,
    lasting,
)
from dashboards.probe.config import ProbeConfig
from dashboards.probe.groups import GroupsProbe
from dashboards.probe.quorum import QuorumProbe, is_asked
from outputs.reading import ReadingCounts
from questions.clients.known_groups import NO_GROUPS, KnownGroups
from questions.cluster_rows import ClusterSnapshot
from questions.memory import Memory
from questions.page.known_clusters import now_ms
from wording.sentences import counted
from wording.times import rfc3339

_EXAMPLES = 10

_WORDS = {
    DifferenceKind.STALE: "with an older leader",
    DifferenceKind.MISSING: "that it does not know",
    DifferenceKind.UNEXPECTED: "of topics that are gone or being deleted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFindings:
    """The lasting differences of one broker in its newest answer. Times are in milliseconds since 1970."""

    broker: BrokerId
    found: Mapping[PartitionName, PartitionDifference]
    since_ms: int
    answered_ms: int

    def counts(self) -> dict[DifferenceKind, int]:
        """Return the number of partitions by difference."""
        counted = Counter(found.difference for found in self.found.values())
        return {difference: counted[difference] for difference in DifferenceKind}


def alert_id(broker: BrokerId) -> str:
    """Return the id of the alert on this broker's metadata."""
    return f"{BROKER_VIEW}/{broker}"


def open_alert(findings: BrokerFindings, gauges: GaugesRow) -> AlertRow:
    """Return the alert of a broker whose metadata differs from the rows of these gauges."""
    broker = findings.broker
    parts = [
        f"{count} {_WORDS[difference]} ({_example(findings.found, difference)})"
        for difference, count in findings.counts().items()
        if count
    ]
    return _alert(
        gauges,
        broker,
        state="open",
        since_ms=findings.since_ms,
        cause=f"broker {broker} gives clients old metadata of {counted(len(findings.found), 'partition')}, "
        f"they may miss leaders: {'; '.join(parts)}",
        expected="After every change the controller sends UpdateMetadata to every live broker, within a second or two.",
        action=f"check in the log of broker {broker} whether the controller's requests reach it. If not, restart "
        f"the broker. Its clients may look for leaders in the wrong place. If the broker has no fault, check that "
        f"Kontrast's user may describe all topics",
        evidence=(
            f"broker {broker} answered at {rfc3339(findings.answered_ms)}",
            f"the rows of ZooKeeper were at {gauges.generation}-{gauges.seq} (zxid {gauges.zxid:#x}, "
            f"{rfc3339(gauges.time_ms)})",
        ),
        partitions=len(findings.found),
        examples=tuple(f"{topic}-{number}" for topic, number in sorted(findings.found)[:_EXAMPLES]),
    )


def resolved_alert(broker: BrokerId, gauges: GaugesRow, cause: str) -> AlertRow:
    """Return the row that resolves the alert of a broker."""
    return _alert(gauges, broker, state="resolved", since_ms=gauges.time_ms, cause=cause)


def _alert(gauges: GaugesRow, broker: BrokerId, **fields: object) -> AlertRow:
    return alert_at(
        gauges,
        id=alert_id(broker),
        alert=BROKER_VIEW,
        severity=Severity.WARN,
        subject=f"broker {broker}",
        group=BROKER_VIEW,
        broker=broker,
        **fields,
    )


def _example(found: Mapping[PartitionName, PartitionDifference], difference: DifferenceKind) -> str:
    (topic, number), one = min((name, one) for name, one in found.items() if one.difference is difference)
    name = f"{topic}-{number}"
    if one.expected is None:
        return f"{name}: {_leader(one.seen)}"
    if one.seen is None:
        return f"{name}: in ZooKeeper {_leader(one.expected)}"
    return f"{name}: {_leader(one.seen)}, in ZooKeeper {_leader(one.expected)}"


def _leader(leader: Leader | None) -> str:
    if leader is None or leader.broker < 0:
        return "no leader"
    return f"leader {leader.broker}" + (f" in epoch {leader.epoch}" if leader.epoch >= 0 else "")


_LOOK_SECONDS = 0.2
_LOOK_FOR_CLUSTERS_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 600.0

_logger = logging.getLogger("kontrast.dashboards.probe")


@dataclass(slots=True)
class ProbedBroker:
    """State of one broker's probe. One thread writes, and any thread reads."""

    broker: BrokerId
    answers: int = 0
    failures: int = 0
    seconds: float | None = None  # duration of the newest answer
    findings: BrokerFindings | None = None  # None before the first comparison, and without an answer
    connection: BrokerConnection | None = field(default=None, repr=False)
    failures_in_a_row: int = 0
    not_before: float = 0.0  # when the broker may be asked again, by the monotonic clock


class ClusterProbe:
    """The rounds of one cluster, in a thread of its own."""

    def __init__(self, cluster: str, config: ProbeConfig, memory: Memory, reading: ReadingCounts) -> None:
        self.cluster = cluster
        self._config = config
        self._login = config.login_of(cluster)
        self._memory = memory
        self._rows = CurrentRows(cluster, memory, reading)
        self._lock = threading.Lock()
        self._brokers: dict[BrokerId, ProbedBroker] = {}
        self._alerts: dict[str, AlertRow] = {}
        self._resolved: dict[str, AlertRow] = {}
        self._is_current = False
        self._asked_at = 0.0
        self.rounds = Rounds(cluster, "brokers")

    def brokers(self) -> tuple[ProbedBroker, ...]:
        """Return the registered brokers as probed, in the order of their ids."""
        with self._lock:
            return tuple(self._brokers[broker] for broker in sorted(self._brokers))

    def active_alerts(self) -> ActiveAlerts:
        """Return the probe's alerts of the cluster."""
        with self._lock:
            return ActiveAlerts(
                cluster=self.cluster,
                source=Finder.PROBE,
                certain=self._is_current,
                alerts=dict(self._alerts),
                resolved=dict(self._resolved),
            )

    def run(self, stop: threading.Event) -> None:
        """Ask until `stop`."""
        try:
            self.rounds.run(lambda: self._round(stop), self._config.interval_seconds, stop, self._miss)
        finally:
            for broker in self.brokers():
                self._let_go(broker)

    def _miss(self) -> None:
        self._is_current = False

    def _round(self, stop: threading.Event) -> None:
        snapshot = self._rows.after(now_ms(), stop)
        self._keep_only({row.broker for row in snapshot.brokers if row.registered}, gauges_of(snapshot))
        suspects: dict[BrokerId, tuple[dict[PartitionName, PartitionDifference], int]] = {}
        for broker, seen in self._views_of([row for row in snapshot.brokers if row.registered], stop):
            if first := self._differences(snapshot, seen):
                suspects[broker] = first, now_ms()
            else:
                self._judge(broker, {}, 0)
        if suspects:
            stop.wait(self._config.confirm_seconds)
        for broker, seen in self._views_of([row for row in snapshot.brokers if row.broker in suspects], stop):
            first, since_ms = suspects[broker]
            # If the rows lagged behind the answer, every new topic would look like a deleted one.
            again = self._differences(self._rows.after(now_ms(), stop), seen)
            self._judge(broker, lasting(first, again), since_ms)
        self._is_current = True

    def _views_of(self, rows: Sequence[BrokerRow], stop: threading.Event) -> Iterator[tuple[BrokerId, BrokerView]]:
        """Ask one broker after the other, and yield what each shows that answers."""
        for row in rows:
            seen = None if stop.is_set() else self._ask(self._broker(row), row, stop)
            if seen is not None:
                yield row.broker, seen

    def _differences(self, snapshot: ClusterSnapshot, seen: BrokerView) -> dict[PartitionName, PartitionDifference]:
        live = {row.broker for row in snapshot.brokers if row.registered}
        return differences(self._memory.partitions(self.cluster), seen, live)

    def _ask(self, broker: ProbedBroker, row: BrokerRow, stop: threading.Event) -> BrokerView | None:
        """Return the broker's metadata. Return None if it does not answer, or must not be asked again yet."""
        if time.monotonic() < broker.not_before:
            return None
        pause = self._asked_at + 1 / self._config.requests_per_second - time.monotonic()
        if pause > 0 and stop.wait(pause):
            return None
        self._asked_at = time.monotonic()
        try:
            if broker.connection is None:
                endpoint = choose_endpoint(row.endpoints, self._login)
                broker.connection = BrokerConnection(endpoint, self._login, self._config.timeout_seconds)
            seen = broker.connection.view(expected_bytes(self._memory.partitions(self.cluster)))
        except ProbeError as error:
            self._failed(broker, error)
            return None
        broker.seconds = time.monotonic() - self._asked_at
        broker.answers += 1
        if broker.failures_in_a_row:
            _logger.info("%s: broker %d answers again", self.cluster, broker.broker)
        broker.failures_in_a_row, broker.not_before = 0, 0.0
        return seen

    def _judge(self, broker: BrokerId, found: dict[PartitionName, PartitionDifference], since_ms: int) -> None:
        gauges = gauges_of(self._rows.now())
        with self._lock:
            probed = self._brokers[broker]
            if (alert := self._alerts.get(alert_id(broker))) is not None:
                since_ms = alert.since_ms
            probed.findings = BrokerFindings(broker=broker, found=found, since_ms=since_ms, answered_ms=now_ms())
            if found:
                self._resolved.pop(alert_id(broker), None)
                self._alerts[alert_id(broker)] = open_alert(probed.findings, gauges)
            else:
                self._alerts.pop(alert_id(broker), None)
                cause = f"broker {broker} gives clients the metadata that ZooKeeper has"
                self._resolved[alert_id(broker)] = resolved_alert(broker, gauges, cause)

    def _failed(self, broker: ProbedBroker, error: ProbeError) -> None:
        broker.failures += 1
        broker.failures_in_a_row += 1
        with self._lock:
            broker.seconds = broker.findings = None
            if (alert := self._alerts.get(alert_id(broker.broker))) is not None:
                self._alerts[alert.id] = msgspec.structs.replace(alert, state="unknown")
        backoff_seconds = self._config.interval_seconds * 2 ** min(broker.failures_in_a_row - 1, 10)
        broker.not_before = time.monotonic() + min(backoff_seconds, _LONGEST_BACKOFF_SECONDS) - _LOOK_SECONDS
        if broker.failures_in_a_row == 1:
            _logger.warning("%s: cannot compare broker %d: %s", self.cluster, broker.broker, error)
        self._let_go(broker)

    def _broker(self, row: BrokerRow) -> ProbedBroker:
        with self._lock:
            broker = self._brokers.setdefault(row.broker, ProbedBroker(row.broker))
        known = broker.connection and f"://{broker.connection.endpoint}"
        if known and not any(text.endswith(known) for text in row.endpoints):
            self._let_go(broker)
        return broker

    def _keep_only(self, registered: Collection[BrokerId], gauges: GaugesRow) -> None:
        gone = [broker for broker in self.brokers() if broker.broker not in registered]
        for broker in gone:
            self._let_go(broker)
        with self._lock:
            for broker in gone:
                del self._brokers[broker.broker]
                self._alerts.pop(alert_id(broker.broker), None)
                cause = f"broker {broker.broker} is not registered any more"
                self._resolved[alert_id(broker.broker)] = resolved_alert(broker.broker, gauges, cause)

    def _let_go(self, broker: ProbedBroker) -> None:
        if broker.connection is not None:
            broker.connection.close()
            broker.connection = None


class Prober:
    """One probe per cluster. `failure` is set if a defect ended a probe."""

    def __init__(self, config: ProbeConfig, memory: Memory, reading: ReadingCounts) -> None:
        self.failure: ServeError | None = None
        self._config = config
        self._memory = memory
        self._reading = reading
        self._probes: dict[str, ClusterProbe] = {}
        self._quorums: dict[str, QuorumProbe] = {}
        self._groups: dict[str, GroupsProbe] = {}
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def probes(self) -> tuple[ClusterProbe, ...]:
        """Return the running probes of the existing clusters."""
        return tuple(probe for probe in self._probes.copy().values() if self._memory.knows(probe.cluster))

    def quorums(self) -> tuple[QuorumProbe, ...]:
        """Return the running probes of the existing clusters' quorums."""
        return tuple(quorum for quorum in self._quorums.copy().values() if self._memory.knows(quorum.cluster))

    def quorum_sentence(self, cluster: str) -> str:
        """Return the last answer of the cluster's KRaft quorum as a sentence, or the reason without one."""
        quorum = self._quorums.get(cluster)
        if quorum is None:
            return "not asked. Name the KRaft controllers in kafka_quorum, or switch the probe of brokers on"
        return quorum.sentence

    def known_groups(self, cluster: str) -> KnownGroups:
        """Return the consumer groups of a cluster as its brokers last described them."""
        probe = self._groups.get(cluster)
        return NO_GROUPS if probe is None else probe.known

    def active_alerts(self) -> Sequence[ActiveAlerts]:
        """Return the probes' alerts."""
        of_brokers = (probe.active_alerts() for probe in self.probes())
        return (*of_brokers, *(quorum.active_alerts() for quorum in self.quorums()))

    def __enter__(self) -> Prober:
        if self._config.brokers or self._config.groups or self._config.asks_a_quorum:
            self._start("probes", self._look_for_clusters)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        give_up_at = time.monotonic() + self._config.timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))  # daemons do not keep the process alive

    def _look_for_clusters(self, stop: threading.Event) -> None:
        while not stop.is_set():
            for snapshot in self._memory.clusters():
                cluster = snapshot.cluster
                if self._config.brokers and cluster not in self._probes:
                    probe = ClusterProbe(cluster, self._config, self._memory, self._reading)
                    self._probes[cluster] = probe
                    self._start(f"probe of {cluster}", probe.run)
                    self._start(f"ports of {cluster}", partial(ask_ports, cluster, self._config, self._memory))
                if self._config.groups and cluster not in self._groups:
                    rows = CurrentRows(cluster, self._memory, self._reading)
                    self._groups[cluster] = GroupsProbe(cluster, self._config, rows)
                    self._start(f"groups of {cluster}", self._groups[cluster].run)
                login = self._config.login_of(cluster)
                if cluster not in self._quorums and is_asked(login, self._config, snapshot.migration):
                    quorum = QuorumProbe(cluster, self._config, CurrentRows(cluster, self._memory, self._reading))
                    self._quorums[cluster] = quorum
                    self._start(f"quorum of {cluster}", quorum.run)
            stop.wait(_LOOK_FOR_CLUSTERS_SECONDS)

    def _start(self, name: str, job: Callable[[threading.Event], None]) -> None:
        thread = threading.Thread(target=self._run, args=(job,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, job: Callable[[threading.Event], None]) -> None:
        try:
            job(self._stop)
        except Exception as error:  # a bug must end the exporter, or it would be silent and look healthy
            _logger.exception("comparing brokers failed")
            self.failure = ServeError(f"comparing brokers failed with {error!r} (details in the log)")
