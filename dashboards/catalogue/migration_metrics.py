"""Metrics of a migration to KRaft, by ZooKeeper and by the quorum."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, family_of, of_cluster

MIGRATION_PHASE = of_cluster(
    "migration_phase",
    "1 for the phase that the migration to KRaft is in, else 0: zookeeper, waiting, claimed, syncing, hybrid, "
    "dual_write, silent (/migration stands still), rolled_back.",
    "phase",
)
MIGRATION_PHASE_SINCE = of_cluster(
    "migration_phase_since_timestamp_seconds", "Since when the migration is in this phase."
)
MIGRATION_PULSE_AGE = of_cluster(
    "migration_pulse_age_seconds",
    "Age of the last write to /migration at the newest heartbeat, about half a second in the dual write. Absent while "
    "no KRaft controller leads.",
)
MIGRATION_OFFSET = of_cluster(
    "migration_offset", "Offset of KRaft's log in /migration, ZooKeeper's progress, or -1 before a copy."
)
MIGRATION_ROLLBACK_SAFE = of_cluster(
    "migration_rollback_safe",
    "1 if ZooKeeper's controllers can take over again without loss and without a write to /controller_epoch, or have "
    "already, else 0.",
)
MIGRATION_ROLLBACK = of_cluster(
    "migration_rollback",
    "1 for the present answer about the way back, else 0. yes, raise_epoch (after raising /controller_epoch), loses "
    "(KRaft's changes since the last pulse), no, done.",
    "verdict",
)
MIGRATION_ROLLBACK_EPOCH = of_cluster(
    "migration_rollback_epoch_needed",
    "Lowest /controller_epoch for a rollback, because a ZooKeeper controller elects no leader for a state with a "
    "higher epoch. Absent if the present one suffices.",
)
MIGRATION_HIGHEST_EPOCH = of_cluster(
    "migration_highest_state_epoch", "Highest controller epoch in a partition's state, or -1."
)
MIGRATION_NEVER_ELECTED = of_cluster(
    "migration_never_elected_partitions",
    "Partitions that the controller elects no leader for after a rollback, because of their epoch.",
)
MIGRATION_BROKERS = of_cluster(
    "migration_brokers",
    "Brokers by mode. zookeeper (registered, with or without the flag), kraft (inferred, because they lead or are in "
    "sync), missing (they have replicas and neither sign).",
    "mode",
)
MIGRATION_BROKER = of_cluster(
    "migration_broker", "1 for each broker and the mode that it is in, up to broker_detail_limit.", "broker mode"
)
MIGRATION_LEFTOVER = of_cluster(
    "migration_leftover",
    "1 for each thing that an earlier attempt left in ZooKeeper, or that waits in /admin for a rollback.",
    "leftover",
)
MIGRATION_ADVICE = of_cluster(
    "migration_advice_info", "The way back and the next step, as a sentence each.", "rollback next_step"
)

_of_quorum = family_of("migration_", CLUSTER_LABEL, before_ready=True, switched_on_by="serve.probe")

MIGRATION_NODES = _of_quorum(
    "nodes",
    "Brokers and KRaft controllers by mode, as each reports itself. zookeeper (without the migration's flag), "
    "zookeeper-migrating, kraft, controller-migrating, controller (without the flag, also after finalization), silent "
    "(no answer). Absent while Kontrast asks no quorum.",
    "mode",
)
MIGRATION_HIGH_WATERMARK = _of_quorum(
    "quorum_high_watermark",
    "High watermark of the quorum's log. The offset in /migration is 1 less when ZooKeeper has everything. Absent "
    "while no node reports it.",
)
MIGRATION_OFFSET_LAG = _of_quorum(
    "offset_lag",
    "Records of the quorum's log that ZooKeeper lacked at the last request, its high watermark - 1 - the offset in "
    "/migration. Absent while no node reports the high watermark, or no KRaft controller leads.",
)
MIGRATION_LEADER_EPOCH = _of_quorum(
    "quorum_leader_epoch", "Epoch of the quorum's leader as a node reports it. Absent while no node does."
)
MIGRATION_DIFFERING = _of_quorum(
    "differing_values",
    "Partitions of which ZooKeeper has other replicas, or another leader, leader epoch or ISR (partitions), than the "
    "quorum, for longer than confirm_seconds. Absent while the quorum cannot be compared.",
    "subject",
)
