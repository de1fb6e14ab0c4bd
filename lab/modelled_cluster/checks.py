"""Properties that hold after every record of any history. A broken one raises `BrokenProperty`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from msgspec.structs import asdict

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BeginningRow, BrokerRow, PartitionRow
from controller.contract.problem import UNUSABLE_WORDS
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.context import Context, Phase
from controller.restore.context_of_rows import context_of_rows
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.rules.releases import Release, profile_of
from controller.rules.settings import GivenSettings
from controller.rules.states import PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS
from controller.says.alert_kinds.kinds import ALERT_KINDS, SECTIONS
from controller.step import step, steps
from controller.view.counting import count_gauges
from controller.view.health import judged
from controller.view.partition_issues import index_issues
from lab.modelled_cluster.zookeeper import Znode

CHUNKS = 2
_LOOKED_AT = (
    6  # one of so many records is also applied after a restart of the job, and what it left is counted from nothing
)
LEGAL_MOVES = {
    subject: {(state.word, target.word) for target, states in table.items() for state in states}
    for subject, table in (("partition", PARTITION_VALID_PREVIOUS), ("replica", REPLICA_VALID_PREVIOUS))
}
JUDGED = {kind.name for section in ("Partitions", "Brokers", "The controller", "Topics") for kind in SECTIONS[section]}
# Alerts that outlast their cause, such as ten minutes after a broker's departure, or occurrences.
LOOK_BACK = {"BrokerFlapping", *(kind.name for kind in ALERT_KINDS.values() if kind.lasts_ms)}


class BrokenPropertyError(AssertionError):
    """Property that does not hold. `name` is the property's, and the text has the particulars."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


def require(name: str, holds: bool, text: object = "") -> None:  # noqa: FBT001
    """Raise BrokenPropertyError where a property does not hold."""
    if not holds:
        raise BrokenPropertyError(name, str(text))


class Stored(NamedTuple):
    """Bytes of a context before a record, and the number of rows until then."""

    header: bytes
    chunks: dict[int, bytes]
    rows: int

    def restored(self) -> Context:
        """Return the context, as after a restart of the job."""
        return restore_context("c", self.header, self.chunks.get)


class Checked:
    """Core that applies records, and the checks of each step."""

    def __init__(self, release: Release | None, settings: GivenSettings) -> None:
        profile = None if release is None else profile_of(release)
        self.context = new_context("c", settings, profile, chunk_count=CHUNKS)
        self.records: list[Record] = []
        self.last: dict[str, AlertRow] = {}
        self.brokers: dict[int, BrokerRow] = {}
        self.partitions: dict[tuple[str, int], PartitionRow] = {}
        self.rows: list[Row] = []
        self.gauges: GaugesRow | None = None
        self.provisional: dict[str, Row] = {}
        self._empty = self.context
        self._stored = [Stored(encode_header(self.context), {}, 0)]  # before each record, and after the last one
        self._counted: tuple[object, ...] = ()
        self._expected: set[str] = set()
        self._ended: dict[str, Row] = {}

    def apply(self, record: Record) -> None:
        """Apply a record, and check the step."""
        self.records.append(record)
        before, stored = self.context, self._stored[-1]
        try:
            outcome = step(before, record)
        except Exception as error:  # the property forbids every exception
            raise BrokenPropertyError("step never raises", repr(error)) from error
        self.context = outcome.context
        self._take(outcome.effects)
        chunks = stored.chunks | changed_chunks(before, self.context)
        self._stored.append(Stored(encode_header(self.context), chunks, len(self.rows)))
        is_looked_at = len(self.records) % _LOOKED_AT == 0
        if is_looked_at:
            require("step changes no header", encode_header(before) == stored.header)
            changed = changed_chunks(self._empty, before)
            require("step changes no topic", stored.chunks | changed == stored.chunks)
            self._check_again("a restart gives the same rows", len(self.records) - 1, len(self.records))
        if is_looked_at or record.kind is RecordKind.HEARTBEAT:  # a wrong count stays wrong until the next read
            self._check_indexes(outcome.context)

    def restore(self) -> None:
        """Go on from the stored state, as after a restart of the job."""
        self.context = self._stored[-1].restored()

    def _check_again(self, name: str, begin: int, end: int) -> None:
        """Check that these records have the same rows and lead to the same state in one batch after a restart."""
        before, after = self._stored[begin], self._stored[end]
        again = steps(before.restored(), self.records[begin:end])
        rows = tuple(self.rows[before.rows : after.rows])
        require(name, again.effects == rows, again.effects == rows or _difference_of(again.effects, rows))
        chunks = before.chunks | changed_chunks(self._empty, again.context)
        require(name, (encode_header(again.context), chunks) == (after.header, after.chunks), "another state")

    def _take(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        self.rows += rows
        for row in rows:
            if isinstance(row, (Transition, Request)):
                self._take_effect(row)
            elif isinstance(row, AlertRow):
                self.last[row.id] = row
            elif isinstance(row, BrokerRow):
                self.brokers[row.broker] = row
            elif isinstance(row, PartitionRow):
                self.partitions[row.topic, row.partition] = row
                if row.removed:
                    del self.partitions[row.topic, row.partition]
            elif isinstance(row, GaugesRow) and row.ready:
                self.gauges = row
                registered = len(self.context.header.brokers)
                require("active_brokers counts the registered", row.active_brokers == registered, row.active_brokers)

    def _take_effect(self, row: Transition | Request) -> None:
        if isinstance(row, Request) and row.part > 1:
            return
        if row.status is Status.PROVISIONAL:
            require("an effect is expected once", row.effect not in self._expected, row)
            self._expected.add(row.effect)
            self.provisional[row.effect] = row
        else:
            require("an effect ends once", row.effect not in self._ended, row)
            require("only the expected is withdrawn", row.status is Status.FINAL or row.effect in self._expected, row)
            self._ended[row.effect] = row
            self.provisional.pop(row.effect, None)
        if isinstance(row, Transition) and row.subject in LEGAL_MOVES and row.status is not Status.WITHDRAWN:
            require(
                f"moves are legal ({row.status.value})", (row.from_state, row.to_state) in LEGAL_MOVES[row.subject], row
            )

    def _check_indexes(self, context: Context) -> None:
        header = context.header
        if header.phase is not Phase.FOLLOWING:
            return
        self._check_counts(context)
        if self.records[-1].kind is RecordKind.HEARTBEAT:  # after which changed settings count
            self._check_problems(context)
        index = context.replica_index
        if index is not None:
            rebuilt = BrokerReplicaIndex(context.topics)
            kept = {host: dict(index.hosted_by(host)) for host in index.hosts}
            require(
                "replicas by broker equal a recount", kept == {b: dict(rebuilt.hosted_by(b)) for b in rebuilt.hosts}
            )
            require("unsettled partitions equal a recount", index.unsettled == rebuilt.unsettled)

    def _check_counts(self, context: Context) -> None:
        header, tally = context.header, context.header.tally
        kept = (tally.gauges, tally.issues, tally.offline_by_topic, self._stored[-1].chunks, header.counting_rules)
        if kept == self._counted:
            return  # as after the record before
        counted = count_gauges(context.topics, header.counting_rules)
        require("counts equal a recount", tally.gauges == counted, (tally.gauges, counted))
        issues, offline_by_topic = index_issues(context.topics, header)
        found = {key: group.count for key, group in tally.issues.items()}
        recount = {key: group.count for key, group in issues.items()}
        require("issues equal a recount", found == recount, _difference(found, recount))
        require("offline partitions equal a recount", tally.offline_by_topic == offline_by_topic)
        self._counted = kept

    def _check_problems(self, context: Context) -> None:
        header = context.header
        for name, topic in context.topics:
            for number, each in topic.partitions.items():
                due = each.value(header.controller_epoch)
                again = judged(each, topic, header, header.counting_rules, due, header.time_ms)
                found, expected = (each.problem, each.in_sync_lacking), (again.problem, again.in_sync_lacking)
                row = self.partitions[name, number]
                shown = (row.problem, row.in_sync_lacking)
                text = (name, number, found, expected, shown)
                require("problems at a heartbeat are those that another judgement finds", found == expected, text)
                word = each.problem.value if each.problem else None
                require("rows have the problems", shown == (word, each.in_sync_lacking), text)

    # --- with the model's znodes, where all their changes were published

    def check_znodes(self, znodes: dict[str, Znode]) -> None:
        """Check brokers and settings against ZooKeeper."""
        header = self.context.header
        if header.phase is not Phase.FOLLOWING:
            return
        registered = sorted(int(path[13:]) for path in znodes if path.startswith("/brokers/ids/"))
        rows = sorted(broker for broker, row in self.brokers.items() if row.registered)
        known = sorted(broker for broker, each in header.brokers.items() if not each.inferred)
        require("registered brokers are in the context", known == registered, (known, registered))
        require("registered brokers have rows", rows == registered, (rows, registered))
        self._check_settings(znodes)

    def _check_settings(self, znodes: dict[str, Znode]) -> None:
        dynamic = {
            path[16:]: znode.content["config"] for path, znode in znodes.items() if path.startswith("/config/brokers/")
        }
        known = {name: settings for name, settings in self.context.header.configuration.dynamic.items() if settings}
        require("broker settings are the znodes'", known == {k: v for k, v in dynamic.items() if v}, (known, dynamic))
        for name, topic in self.context.topics:
            znode = znodes.get(f"/config/topics/{name}")
            config = {} if znode is None else znode.content["config"]
            least, unclean = config.get("min.insync.replicas"), config.get("unclean.leader.election.enable")
            found = (topic.min_insync_replicas, topic.unclean_election)
            expected = (None if least is None else int(least), None if unclean is None else unclean == "true")
            require("topic settings are the znodes'", found == expected, (name, found, expected))

    def check_offline(
        self, znodes: dict[str, Znode], failed: Collection[tuple[tuple[str, int], int]] = frozenset()
    ) -> None:
        """Check that each partition without a live leader is shown as such, and no other one.

        ZooKeeper shows neither whether a leader can read its replica, nor whether it lives in KRaft mode.
        """
        registered = {int(path[13:]) for path in znodes if path.startswith("/brokers/ids/")}
        for (topic, number), (replicas, state) in shown_in(znodes).items():
            row = self.partitions.get((topic, number))
            if state is None or row is None or row.deleting or not replicas:
                continue
            if ((topic, number), state["leader"]) in failed or state["leader"] in self.context.header.in_kraft_mode:
                continue
            is_offline = state["leader"] not in registered
            is_shown = row.problem in UNUSABLE_WORDS
            text = (topic, number, state, sorted(registered), row.problem, row.reason)
            require("partitions that are offline are shown offline", is_shown or not is_offline, text)
            require("partitions that are led are not shown offline", is_offline or not is_shown, text)

    def check_at_rest(self, znodes: dict[str, Znode]) -> None:
        """Check that a healthy cluster is shown as ZooKeeper has it, with no expected effect and no condition."""
        self.check_offline(znodes)
        shown = shown_in(znodes)
        require("topics at rest are the znodes'", self.partitions.keys() == shown.keys(), (self.partitions, shown))
        for key, (replicas, state) in shown.items():
            row = self.partitions[key]
            assert state is not None
            found = (row.replicas, row.leader, row.leader_epoch, row.isr, row.adding_replicas, row.removing_replicas)
            expected = (replicas, state["leader"], state["leader_epoch"], tuple(state["isr"]), (), ())
            require("metadata at rest is the znodes'", found == expected, (key, found, expected))
            well = (row.state, row.deleting, row.predicted_leader)
            require("partitions at rest are online", well == ("OnlinePartition", False, None), (key, well))
        alerts = [
            f"{row.id}: {row.cause}"
            for row in self.last.values()
            if row.state != "resolved" and row.alert in JUDGED and row.alert not in LOOK_BACK
        ]
        require("no alert at rest", not alerts, alerts)
        require("no row is provisional at rest", not self.provisional, list(self.provisional.values())[:2])
        self._check_gauges()

    def check_other_ways(self) -> None:
        """Check that batches give the same rows, and that a context made from the rows knows the same."""
        for batch in _in_batches(self.records):
            if len(batch) > 1:
                self._check_again("batches give the same rows", batch[0], batch[-1] + 1)
        standing: dict[str, Any] = {}
        for row in self.rows:
            if row.output == "metadata" and not isinstance(row, BeginningRow):
                standing.pop(row.subject_key(), None)
                if not row.ends_subject:
                    standing[row.subject_key()] = row
        assert self.gauges is not None
        from_rows = context_of_rows(new_context("c", chunk_count=CHUNKS), standing.values(), self.gauges)
        known, shown = _facts(self.context), _facts(from_rows)
        require("a context made from rows is equal", known == shown, _difference(known, shown))

    def _check_gauges(self) -> None:
        gauges = self.gauges
        assert gauges is not None
        counts = (
            gauges.partitions,
            gauges.offline_partitions,
            gauges.leaderless_partitions,
            gauges.pending_writes,
            gauges.topics_to_delete,
            gauges.reassigning_partitions,
        )
        require("gauges at rest are the rows'", counts == (len(self.partitions), 0, 0, 0, 0, 0), counts)


def shown_in(znodes: dict[str, Znode]) -> dict[tuple[str, int], tuple[tuple[int, ...], dict[str, Any] | None]]:
    """Return the replicas and the state of each partition in its topic's znode."""
    found = {}
    for path, znode in znodes.items():
        if path.startswith("/brokers/topics/") and path.count("/") == 3:
            for number, replicas in znode.content["partitions"].items():
                state = znodes.get(f"{path}/partitions/{number}/state")
                found[path[16:], int(number)] = (tuple(replicas), None if state is None else state.content)
    return found


def _facts(context: Context) -> dict[object, object]:
    """Return what a context knows of partitions and brokers, with its counts."""
    facts: dict[object, object] = {
        "counts": asdict(context.header.tally.gauges),
        "brokers": sorted(context.header.brokers),
    }
    for name, topic in context.topics:
        for number, each in topic.partitions.items():
            facts[name, number] = (each.replicas, each.zk_state, each.state, each.problem, each.replica_states)
    return facts


def _in_batches(records: Sequence[Record]) -> list[list[int]]:
    """Return the numbers of the records that share a transaction where they come in one batch."""
    states = [each.kind is RecordKind.NODE and each.path.endswith("/state") for each in records]
    found = groupby(range(len(records)), key=lambda number: -1 if states[number] else number)
    return [list(batch) for _, batch in found]


def _difference(kept: object, recount: object) -> object:
    assert isinstance(kept, dict)
    assert isinstance(recount, dict)
    keys = {key for key in {*kept, *recount} if kept.get(key) != recount.get(key)}
    return {key: (kept.get(key), recount.get(key)) for key in keys}


def _difference_of(again: Sequence[Row], kept: Sequence[Row]) -> str:
    counts = Counter(map(str, again)), Counter(map(str, kept))
    return f"only again: {list(counts[0] - counts[1])[:2]} only kept: {list(counts[1] - counts[0])[:2]}"
