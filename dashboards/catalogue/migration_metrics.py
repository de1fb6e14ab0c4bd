"""The way to KRaft: its phase, its pulse, the way back, and which broker is in which mode."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric, MetricType, of_cluster

_SEEN = "Absent where no migration was ever seen."

MIGRATION_PHASE = of_cluster(
    "migration_phase",
    "1 for the phase that the migration to KRaft is in, else 0: zookeeper, waiting, claimed, syncing, hybrid, "
    f"dual_write, silent (/migration stands still), rolled_back. {_SEEN}",
    "phase",
)
MIGRATION_PHASE_SINCE = of_cluster(
    "migration_phase_since_timestamp_seconds", f"Since when the migration is in this phase. {_SEEN}", unit="seconds"
)
MIGRATION_PULSE_AGE = of_cluster(
    "migration_pulse_age_seconds",
    "Since /migration was last written, as of the newest heartbeat: about half a second in the dual write. Absent "
    "while no KRaft controller leads.",
    unit="seconds",
)
MIGRATION_OFFSET = of_cluster(
    "migration_offset",
    f"Offset of KRaft's log in /migration: how far ZooKeeper is; -1 while nothing is copied. {_SEEN}",
)
MIGRATION_ROLLBACK_SAFE = of_cluster(
    "migration_rollback_safe",
    "1 if ZooKeeper's controllers can take over again without loss and without a write to /controller_epoch, or have "
    f"already, else 0. {_SEEN}",
)
MIGRATION_ROLLBACK = of_cluster(
    "migration_rollback",
    "1 for the answer to whether there is a way back, else 0: yes, raise_epoch (after raising /controller_epoch), "
    f"loses (what KRaft did since the last pulse), no, done. {_SEEN}",
    "verdict",
)
MIGRATION_ROLLBACK_EPOCH = of_cluster(
    "migration_rollback_epoch_needed",
    "What /controller_epoch must at least be before a rollback: a ZooKeeper controller elects no leader where the "
    "state has a higher epoch. Absent while it need not be raised.",
)
MIGRATION_HIGHEST_EPOCH = of_cluster(
    "migration_highest_state_epoch", f"The highest controller epoch in a partition's state; -1 without one. {_SEEN}"
)
MIGRATION_NEVER_ELECTED = of_cluster(
    "migration_never_elected_partitions",
    f"Partitions that the controller elects no leader for after a rollback, because of their epoch. {_SEEN}",
)
MIGRATION_BROKERS = of_cluster(
    "migration_brokers",
    "Brokers by mode: zookeeper (registered there, with the migration flag or without), kraft (inferred: they lead or "
    f"are in sync), missing (they have replicas, and are neither). {_SEEN}",
    "mode",
)
MIGRATION_BROKER = of_cluster(
    "migration_broker",
    f"1 for each broker and the mode that it is in, up to broker_detail_limit. {_SEEN}",
    "broker",
    "mode",
)
MIGRATION_LEFTOVER = of_cluster(
    "migration_leftover",
    "1 for each thing that an earlier attempt left in ZooKeeper, or that waits in /admin for a rollback.",
    "leftover",
)
MIGRATION_ADVICE = Metric(
    name="kontrast_migration_advice_info",
    help=f"The way back and the next step, as a sentence each. {_SEEN}",
    type=MetricType.INFO,
    labels=(CLUSTER_LABEL, "rollback", "next_step"),
)
