"""Made-up rows in the form of the streaming job, each newer than the one before."""

from __future__ import annotations

from typing import Any

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.forwarder_status import LargeZnode
from controller.contract.gauges_row import GaugesRow, Maintenance, ReactionTimes
from controller.contract.ids import BrokerId, PartitionId
from controller.contract.job_row import ClusterProgress, JobRow, ProcessUse
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow, PartitionRow, TopicRow
from controller.contract.row import Row
from tests.controller.ensembles import ensemble

TIME_MS = 1_700_000_000_000
NEVER_STALE_MS = 10**15  # rows of TIME_MS are old
NO_COUNTS: dict[str, Any] = dict.fromkeys(
    (
        "offline_partitions",
        "leaderless_partitions",
        "under_replicated_partitions",
        "under_min_isr_partitions",
        "at_min_isr_partitions",
        "preferred_replica_imbalance",
        "topics_to_delete",
        "replicas_to_delete",
        "topics_ineligible_to_delete",
        "replicas_ineligible_to_delete",
        "pending_writes",
        "refused",
    ),
    0,
)
"""The required counts of gauges."""


class Rows:
    """Builds rows, each newer than the one before."""

    def __init__(self) -> None:
        self.seq = 0

    def _place(self, place: dict[str, Any]) -> dict[str, Any]:
        self.seq += 1
        first = {"cluster": "north", "generation": 1, "seq": self.seq, "ordinal": 0, "zxid": self.seq}
        return {**first, "time_ms": TIME_MS + self.seq, **place}

    def partition(self, topic: str, partition: int = 0, **fields: Any) -> PartitionRow:
        healthy = {"state": "OnlinePartition", "leader": 1, "leader_epoch": 0, "isr": (1, 2), "replicas": (1, 2)}
        return PartitionRow(**self._place({**healthy, **fields}), topic=topic, partition=PartitionId(partition))

    def offline(self, topic: str, partition: int = 0, **fields: Any) -> PartitionRow:
        trouble = {"state": "OfflinePartition", "leader": -1, "problem": "no_live_in_sync_replica"}
        return self.partition(topic, partition, **{**trouble, "problem_since_ms": TIME_MS, **fields})

    def under_min_isr(self, topic: str, partition: int = 0, **fields: Any) -> PartitionRow:
        lacks = {"isr": (1,), "writable_acks_all": False, "in_sync_lacking": 1, "in_sync_candidates": (2,)}
        trouble = {"problem": "under_min_isr", "problem_since_ms": TIME_MS}
        return self.partition(topic, partition, **{**lacks, **trouble, **fields})

    def topic(self, topic: str, **fields: Any) -> TopicRow:
        usual = {"topic_id": None, "min_insync_replicas": None, "unclean_election": None, "deletion": None}
        size = {"partitions": 2, "replication_factors": (2,)}
        return TopicRow(**self._place({**usual, **size, **fields}), topic=topic)

    def broker(self, broker: int, *, registered: bool = True, **fields: Any) -> BrokerRow:
        usual = {"epoch": 5, "since_ms": TIME_MS, "session": broker}
        return BrokerRow(**self._place({**usual, **fields}), broker=BrokerId(broker), registered=registered)

    def controller(self, broker: int, **fields: Any) -> ControllerRow:
        usual = {"epoch": 7, "since_ms": TIME_MS, "session": broker}
        return ControllerRow(**self._place({**usual, **fields}), broker=BrokerId(broker))

    def migration(self, phase: str = "hybrid", **fields: Any) -> MigrationRow:
        led = {"leader": 3001, "kraft_epoch": 9, "controller_epoch": 8, "offset": 110, "pulse_ms": TIME_MS}
        back = {"rollback": "raise_epoch", "rollback_epoch": 9, "rollback_sentence": "yes, after raising the epoch"}
        brokers = {"zookeeper_brokers": (1,), "kraft_brokers": (2,), "missing_brokers": (9,)}
        more = {"highest_state_epoch": 9, "next_step": "restart broker 1 in KRaft mode", "leftovers": ("/admin/x",)}
        whole = {"since_ms": TIME_MS, **led, **back, **brokers, **more}
        return MigrationRow(**self._place({**whole, **fields}), phase=phase)

    def alert(self, id_: str, state: str = "open", **fields: Any) -> AlertRow:
        what = {"alert": "PartitionsOffline", "subject": "partition orders-0", "group": "broker 1 crashed"}
        rest = {"severity": Severity.PAGE, "since_ms": TIME_MS, "cause": "broker 1 crashed"}
        return AlertRow(**self._place({**what, **rest, **fields}), id=id_, state=state)

    def gauges(self, **fields: Any) -> GaugesRow:
        whole = {
            "ready": True,
            "session": "connected",
            "watch_mode": "persistent",
            "controller": 1,
            "controller_epoch": 7,
            "controller_changes": 2,
            "active_brokers": 2,
            "topics": 1,
            "partitions": 3,
            "partitions_by_state": {"OnlinePartition": 2, "OfflinePartition": 1},
            "replicas_by_state": {"OnlineReplica": 5, "OfflineReplica": 1},
            "leaders_by_broker": {1: 1, 2: 1},
            "replicas_by_broker": {1: 3, 2: 3},
            "records": {"node": 12, "heartbeat": 3},
            "elections": {"OfflinePartitionLeaderElection": 1},
            "isr_changes": {"shrink": 1, "expand": 0},
            "divergences": {"leader": 1},
            "sole_in_sync_by_broker": {1: 2},
            "reassigning_partitions": 1,
            "ensemble": ensemble(
                (2, {"refused": ("mntr",)}), asked_ms=TIME_MS, large_znodes=(LargeZnode("/brokers/topics", 70_000),)
            ),
            "maintenance": (Maintenance(brokers=(BrokerId(1),), until_ms=TIME_MS + 60_000),),
            "reactions": {"BrokerChange": ReactionTimes((0, 2, *[0] * 11), 40, (0, 0, 0, 1, 0, 1, *[0] * 7), 500)},
        }
        return GaugesRow(**self._place({**NO_COUNTS, **whole, **fields}))

    def job(self, **fields: Any) -> JobRow:
        totals: dict[str, Any] = {
            "batch": 7,
            "batches": 3,
            "records": 20,
            "refused": 1,
            "rows": 30,
            "total_phase_ms": {"addBatch": 500},
        }
        state = {"state_bytes": 1000, "state_values": 65, "state_commit_ms": 9}
        clusters = {"north": ClusterProgress(records=2, observed_ms=TIME_MS, lag_ms=150)}
        java = ProcessUse(processes=1, open_files=355, open_files_limit=20_000, threads=90, resident_bytes=800_000_000)
        phases = {"phase_ms": {"addBatch": 90}, "total_phase_ms": {"addBatch": 500}}
        whole = {"time_ms": TIME_MS, "began_ms": TIME_MS - 9000, "clusters": clusters, **phases}
        whole["processes"] = {"java": java}
        return JobRow(**{**totals, **state, **whole, **fields})

    def of_everything(self) -> list[Row | JobRow]:
        """Return rows that give every metric of the catalogue a value."""
        return [
            self.job(),
            self.partition("orders", 0),
            self.offline("orders", 1),
            self.under_min_isr("orders", 3),
            self.topic("orders"),
            self.broker(1),
            self.broker(2, registered=False),
            self.controller(1),
            self.migration(),
            self.alert("a"),
            self.gauges(offline_partitions=1, leaderless_partitions=1, zxid=(3 << 32) + 9, agreement=0.5),
        ]
