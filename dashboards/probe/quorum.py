"""Ask the nodes of a cluster on the way to KRaft for their modes, and compare the quorum with ZooKeeper's rows.

An alert opens if the migration is finalized while brokers are still registered in ZooKeeper (KAFKA-20960).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId, PartitionId
from controller.contract.metadata_rows import MigrationRow, PartitionRow
from controller.rules.migration_phases import MigrationPhase
from controller.rules.states import PartitionState
from dashboards.alerting.registry import FINALIZED_TOO_EARLY, ActiveAlerts, Finder, alert_at
from dashboards.probe.broker import ProbeError, choose_endpoint
from dashboards.probe.comparison import CurrentRows, NothingNewError, Rounds
from dashboards.probe.config import KafkaLoginConfig, ProbeConfig
from migration.comparison.quorum_view import QuorumReader
from migration.comparison.view import (
    BothValues,
    CopiedKey,
    CopiedSubject,
    Expected,
    differences,
    leadership_text,
    replicas_text,
)
from migration.nodes.nodes import Mode, Node, Nodes, Quorum
from migration.nodes.requests import ask_nodes
from outputs.kafka_node import NodeError
from questions.cluster_rows import ClusterSnapshot
from questions.page.known_clusters import now_ms
from transport.kafka_login import KafkaLogin
from wording.sentences import counted, listed, plural
from wording.times import rfc3339


def is_too_early(unflagged: Sequence[Node], row: MigrationRow) -> bool:
    """Return whether KRaft leads, a controller lacks the migration flag, and a broker is registered in ZooKeeper."""
    return bool(unflagged) and row.leader >= 0 and row.offset > 0 and bool(row.zookeeper_brokers)


def open_alert(unflagged: Sequence[Node], row: MigrationRow, gauges: GaugesRow, since_ms: int) -> AlertRow:
    """Return the alert that names the controllers without the migration flag and the registered brokers."""
    controllers = " and ".join(sorted(node.name for node in unflagged))
    brokers, count = listed(row.zookeeper_brokers), len(row.zookeeper_brokers)
    return _alert(
        gauges,
        state="open",
        since_ms=since_ms,
        cause=f"{controllers} {plural(len(unflagged), 'runs', 'run')} without the migration flag while {brokers} "
        f"{plural(count, 'is', 'are')} still registered in ZooKeeper: {brokers} {plural(count, 'gets', 'get')} no "
        "metadata from a leader without the flag. Restart no other controller",
        action=f"restart {controllers} with the migration flag, restart {brokers} in KRaft mode, and finalize when "
        "/brokers/ids is empty. If no controller has the flag any more, restart the brokers in KRaft mode at once",
        evidence=(f"{brokers} at zxid {gauges.zxid:#x}, by /brokers/ids",),
    )


def resolved_alert(gauges: GaugesRow) -> AlertRow:
    """Return the row that resolves the alert."""
    cause = "every controller has the migration flag again, or no broker is registered in ZooKeeper"
    return _alert(gauges, state="resolved", since_ms=gauges.time_ms, cause=cause)


def _alert(gauges: GaugesRow, **fields: object) -> AlertRow:
    return alert_at(
        gauges,
        id=FINALIZED_TOO_EARLY,
        alert=FINALIZED_TOO_EARLY,
        severity=Severity.PAGE,
        subject="migration",
        group="migration",
        **fields,
    )


SILENT = "silent"
COMPARED = (CopiedSubject.REPLICAS, CopiedSubject.PARTITIONS)

NONE_SPEAKS = "no known node speaks for it. Name the KRaft controllers in kafka_quorum"

_NOT_UNDER_WAY = (MigrationPhase.ZOOKEEPER.value, MigrationPhase.ROLLED_BACK.value)

_logger = logging.getLogger("kontrast.dashboards.quorum")


@dataclass(frozen=True, slots=True)
class QuorumSeen:
    """Result of a round, with nodes by mode, the quorum, and lasting differences by subject.

    `differing` is None without a node that speaks for the quorum, or without current rows. `offset` is the offset in
    /migration after the quorum's answer, None unless a KRaft controller leads.
    """

    modes: Mapping[str, int]
    quorum: Quorum | None
    differing: Mapping[CopiedSubject, int] | None
    offset: int | None = None
    pulse_ms: int | None = None  # when /migration was last written

    @property
    def offset_lag(self) -> int | None:
        """Return the number of records in the quorum's log that ZooKeeper lacked."""
        if self.quorum is None or self.offset is None:
            return None
        return max(0, self.quorum.high_watermark - 1 - self.offset)


class QuorumProbe:
    """The rounds of one cluster, in a thread of its own."""

    def __init__(self, cluster: str, config: ProbeConfig, rows: CurrentRows) -> None:
        self.cluster = cluster
        self.seen: QuorumSeen | None = None
        self._config = config
        self._login: KafkaLoginConfig = config.login_of(cluster)
        self._rows = rows
        self._complained = False
        self.rounds = Rounds(cluster, "quorum")
        self._too_early: AlertRow | None = None  # the alert's newest row, open or resolved

    def active_alerts(self) -> ActiveAlerts:
        """Return the alert on a finalization that comes too early."""
        row = self._too_early
        rows = {} if row is None else {FINALIZED_TOO_EARLY: row}
        is_open = row is not None and row.state == "open"
        alerts, resolved = (rows, {}) if is_open else ({}, rows)
        certain = self.seen is not None
        return ActiveAlerts(
            cluster=self.cluster, source=Finder.QUORUM, certain=certain, alerts=alerts, resolved=resolved
        )

    @property
    def sentence(self) -> str:
        """Return the last answer as a sentence."""
        seen = self.seen
        if seen is None:
            return "asked, without an answer yet"
        if seen.quorum is None:
            return NONE_SPEAKS
        nodes = ", ".join(f"{count} {mode}" for mode, count in sorted(seen.modes.items()))
        lag = "" if seen.offset_lag is None else f", ZooKeeper lacked {counted(seen.offset_lag, 'record')} of its log"
        finalized = ""
        if _is_finalized(seen):
            finalized = ", the migration is finalized (no controller has its flag)"
            if seen.pulse_ms is not None:
                blind = f"blind to leaders, ISRs and topics for {max(0, now_ms() - seen.pulse_ms) // 1000} s"
                finalized += f" and Kontrast is {blind}, since the last write of /migration at {rfc3339(seen.pulse_ms)}"
        leads = f"controller {seen.quorum.leader} leads in epoch {seen.quorum.leader_epoch}"
        return f"{leads}{lag}{finalized}, nodes: {nodes}"

    def run(self, stop: threading.Event) -> None:
        """Ask until `stop`."""
        self.rounds.run(lambda: self._ask(stop), self._config.interval_seconds, stop, self._miss)

    def _ask(self, stop: threading.Event) -> None:
        try:
            self.seen = self._round(stop)
        except (OSError, ValueError) as error:  # the file with the password is unreadable
            self._miss()
            self._complain(f"the login cannot be read: {error}")

    def _miss(self) -> None:
        self.seen = None

    def _round(self, stop: threading.Event) -> QuorumSeen:
        login = self._login.node_login()
        snapshot = self._rows.now()
        if not is_asked(self._login, self._config, snapshot.migration):
            raise NothingNewError
        nodes = ask_nodes(self._login.kafka_quorum, self._addresses(snapshot), login, self._config.timeout_seconds)
        modes = Counter(node.mode.value if node.mode else SILENT for node in nodes.nodes)
        # If the rows lagged behind the answer, the quorum's newest records would look like a lag.
        snapshot = self._rows.after(now_ms(), stop)
        self._judge_finalization(nodes, snapshot)
        offset = None if nodes.quorum is None else _offset(snapshot)
        differing = None if nodes.quorum is None else self._differing(nodes, login, stop)
        if nodes.quorum is None:
            reasons = "; ".join(f"{node.name}: {node.reason}" for node in nodes.nodes if node.reason)
            self._complain(reasons or NONE_SPEAKS)
        else:
            self._complained = False
        pulse_ms = None if snapshot.migration is None else snapshot.migration.pulse_ms
        return QuorumSeen(modes, nodes.quorum, differing, offset, pulse_ms)

    def _judge_finalization(self, nodes: Nodes, snapshot: ClusterSnapshot) -> None:
        row, gauges, before = snapshot.migration, snapshot.gauges, self._too_early
        if gauges is None:
            return
        is_open = before is not None and before.state == "open"
        unflagged = nodes.in_mode(Mode.CONTROLLER)
        if row is not None and is_too_early(unflagged, row):
            since_ms = before.since_ms if before is not None and is_open else gauges.time_ms
            self._too_early = open_alert(unflagged, row, gauges, since_ms)
        elif is_open:
            self._too_early = resolved_alert(gauges)

    def _differing(self, nodes: Nodes, login: KafkaLogin, stop: threading.Event) -> Mapping[CopiedSubject, int] | None:
        """Return the differences that last for `confirm_seconds` with an unchanged quorum."""
        reader = QuorumReader(nodes, login, self._config.timeout_seconds)
        try:
            first = self._differences(reader, stop)
            if not first:
                return dict.fromkeys(COMPARED, 0)
            if stop.wait(self._config.confirm_seconds):
                return None
            again = self._differences(reader, stop)
        except NodeError as error:
            self._complain(str(error))
            return None
        finally:
            reader.close()
        lasting = Counter(key.subject for key, one in again.items() if key in first and first[key].quorum == one.quorum)
        return {subject: lasting[subject] for subject in COMPARED}

    def _differences(self, reader: QuorumReader, stop: threading.Event) -> Mapping[CopiedKey, BothValues]:
        rows = self._rows.memory.partitions(self._rows.cluster)
        said = reader.read_topics(Expected(frozenset(topic for topic, _ in rows), len(rows)))
        if CopiedSubject.PARTITIONS not in said.sources:
            raise NodeError(said.reasons[CopiedSubject.PARTITIONS])
        self._rows.after(now_ms(), stop)  # otherwise every new topic would look like a difference
        rows = self._rows.memory.partitions(self._rows.cluster)
        return {key: one for key, one in differences(_values(rows), said).items() if _is_compared(key, rows)}

    def _addresses(self, snapshot: ClusterSnapshot) -> dict[BrokerId, str]:
        """Return addresses of registered brokers, and the last known ones of brokers in KRaft mode."""
        addresses = {}
        for row in snapshot.brokers:
            if row.registered or (row.inferred and row.endpoints):
                try:
                    addresses[row.broker] = str(choose_endpoint(row.endpoints, self._login))
                except ProbeError as error:
                    self._complain(f"broker {row.broker}: {error}")
        return addresses

    def _complain(self, reason: str) -> None:
        if not self._complained:
            _logger.warning("%s: cannot compare the quorum: %s", self.cluster, reason)
        self._complained = True


def _is_finalized(seen: QuorumSeen) -> bool:
    """Return whether all answering controllers run without the migration flag although ZooKeeper was copied."""
    copied = seen.offset is not None and seen.offset > 0
    return copied and Mode.CONTROLLER.value in seen.modes and Mode.CONTROLLER_MIGRATING.value not in seen.modes


def is_asked(login: KafkaLoginConfig, config: ProbeConfig, row: MigrationRow | None) -> bool:
    """Return whether to ask a cluster's quorum, at its configured address or through probed brokers.

    Without a configured address, the quorum is asked only during a migration.
    """
    under_way = row is not None and row.phase not in _NOT_UNDER_WAY
    return bool(login.kafka_quorum) or (config.brokers and under_way)


def _offset(snapshot: ClusterSnapshot) -> int | None:
    """Return the offset in /migration while a KRaft controller leads and writes it."""
    row = snapshot.migration
    return None if row is None or row.leader < 0 else row.offset


def _values(rows: Mapping[tuple[str, PartitionId], PartitionRow]) -> dict[CopiedKey, str]:
    values = {}
    for (topic, number), row in rows.items():
        replicas = replicas_text(row.replicas, row.adding_replicas, row.removing_replicas)
        values[CopiedKey(CopiedSubject.REPLICAS, topic, str(number))] = replicas
        leadership = leadership_text(row.leader, row.leader_epoch, row.isr)
        values[CopiedKey(CopiedSubject.PARTITIONS, topic, str(number))] = leadership
    return values


def _is_compared(key: CopiedKey, rows: Mapping[tuple[str, PartitionId], PartitionRow]) -> bool:
    """Return whether rows have this key, because they lack topic ids, and partitions before their first leader."""
    if key.subject not in COMPARED:
        return False
    row = rows.get((key.group, PartitionId(int(key.name))))
    return row is None or (row.state != PartitionState.NEW.word and row.leader_epoch >= 0)
