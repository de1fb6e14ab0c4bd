"""Alerts on the way to KRaft: copy, sync, dual write, rollback, and what an earlier attempt left."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, SECOND_MS, AlertKind
from controller.contract.alert_row import Severity

MIGRATION_UNDER_WAY: Final = AlertKind(
    name="MigrationUnderWay",
    severity=Severity.INFO,
    meaning="The cluster is on the way to KRaft: a quorum waits, or leads. While it leads Kontrast predicts nothing "
    "and shows what KRaft writes to ZooKeeper.",
    action="The next step is in the sentence. Know at every moment whether you may still go back: `rollback` in the "
    "migration's row.",
)
MIGRATION_COPY_FAILS: Final = AlertKind(
    name="MigrationCopyFails",
    severity=Severity.PAGE,
    meaning="A KRaft controller owns /controller and has not copied ZooKeeper: no controller acts at all. A znode that "
    "it cannot read ends one KRaft controller after the other.",
    action="Mend the znode that its log names; or stop the KRaft controllers and delete /controller: a broker takes "
    "over.",
    # 47 records took 0.40 s, in batches of hundreds: ten thousand partitions take a few seconds.
    patience_ms=5 * SECOND_MS,
)
MIGRATION_SYNC_STUCK: Final = AlertKind(
    name="MigrationSyncStuck",
    severity=Severity.PAGE,
    meaning="A KRaft leader does not end making ZooKeeper equal to its log: brokers in ZooKeeper mode get no metadata.",
    action="Look at the active KRaft controller's log for what ZooKeeper refuses: a quota, a client-metrics or group "
    "resource. Delete that, and restart the active controller.",
)
DUAL_WRITE_STALLED: Final = AlertKind(
    name="DualWriteStalled",
    severity=Severity.PAGE,
    meaning="/migration is written every half second while KRaft leads, and is not any more: the dual write is broken, "
    "the quorum is lost, or the migration is finalized. Brokers in ZooKeeper mode get no metadata; Kafka's gauges stay "
    "green.",
    action="If the quorum lives and you did not finalize, restart the active KRaft controller: the next leader writes "
    "again. If you finalized, end the cluster's `kontrast watch`, then `kontrast forget CLUSTER`.",
)
KRAFT_LEADER_FLAPPING: Final = AlertKind(
    name="KRaftLeaderFlapping",
    severity=Severity.WARN,
    meaning="KRaft leaders follow one another. Each makes ZooKeeper equal again, with a write for every topic and "
    "partition once brokers are in KRaft mode, and raises the epoch that a rollback needs.",
    action="Look at the KRaft controllers' logs and connections for why the quorum elects.",
)
SECOND_CONTROLLER: Final = AlertKind(
    name="SecondController",
    severity=Severity.PAGE,
    meaning="/controller was deleted or taken while a KRaft controller leads and goes on writing: brokers follow two "
    "controllers.",
    action="To go on, restart the active KRaft controller: the next leader claims /controller. To go back, stop all "
    "KRaft controllers, then delete /controller and /migration.",
    lasts_ms=5 * MINUTE_MS,
)
OLD_MIGRATION: Final = AlertKind(
    name="OldMigration",
    severity=Severity.WARN,
    meaning="/migration has the offset of an earlier attempt while a broker is controller: a quorum that starts now "
    "deletes topics instead of copying them (KAFKA-17146).",
    action="Delete /migration, and format the KRaft controllers' disks before another attempt: both.",
)
OLD_MIGRATION_CLAIMED: Final = AlertKind(
    name="OldMigrationClaimed",
    severity=Severity.PAGE,
    meaning="A quorum claimed /controller over the /migration of an earlier attempt: it copies nothing, and deletes "
    "from ZooKeeper what its log lacks.",
    action="Stop all KRaft controllers at once; delete /controller and /migration. Brokers still hold the data of "
    "deleted topics: keep them from restarting before the znodes are put back.",
)
DELETED_BY_SYNC: Final = AlertKind(
    name="DeletedBySync",
    severity=Severity.WARN,
    meaning="A KRaft leader deleted topics from ZooKeeper that its log lacks.",
    action="If they were made past KRaft, make them again through a broker. If there are many, see "
    "OldMigrationClaimed.",
    several="KRaft lacks {count} topics{names} and deleted them from ZooKeeper when it made both equal",
    lasts_ms=30 * MINUTE_MS,
)
WRITTEN_PAST_KRAFT: Final = AlertKind(
    name="WrittenPastKRaft",
    severity=Severity.WARN,
    meaning="A tool or a person wrote to ZooKeeper while KRaft leads: KRaft does not see it, and its next leader "
    "deletes it or sets it back.",
    action="Do it through a broker instead (--bootstrap-server), before the next KRaft leader comes.",
    several="{count} topics{names} were changed in ZooKeeper, and KRaft leads: its next leader deletes that or sets it "
    "back, or it waits for a rollback",
    lasts_ms=30 * MINUTE_MS,
    ends_early="a broker is controller",
)
LEADERS_NEVER_ELECTED: Final = AlertKind(
    name="LeadersNeverElected",
    severity=Severity.PAGE,
    meaning="After a rollback the controller elects no leader for partitions whose state has KRaft's epoch, which is "
    "above its own (KAFKA-20488): a dead leader stays.",
    action="Set /controller_epoch to that epoch or more, then delete /controller: the next controller elects.",
    expected="nothing: it refuses to touch them",
)
