"""Alerts on the way to KRaft, about copy, sync, dual write, rollback, and leftovers of an earlier attempt."""

from __future__ import annotations

from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, SECOND_MS, info, page, warn
from controller.says.remedies import controllership, migration as remedies
from controller.says.remedies.remedy import Advice

MIGRATION_UNDER_WAY: Final = info(
    name="MigrationUnderWay",
    headline="the way to KRaft is open",
    advice=Advice(
        "Take the next step in the alert's sentence. Before each step, check in the migration's row whether a "
        "`rollback` is possible."
    ),
)
MIGRATION_COPY_FAILS: Final = page(
    name="MigrationCopyFails",
    headline="KRaft has not copied ZooKeeper",
    step="fix the named znode",
    advice=Advice(
        "Fix the znode that the KRaft controller's log names.", (remedies.DELETE_CLAIM.given("that takes long"),)
    ),
    # 47 records took 0.40 s, and come in batches of hundreds, so ten thousand partitions take a few seconds.
    patience_ms=5 * SECOND_MS,
)
MIGRATION_SYNC_STUCK: Final = page(
    name="MigrationSyncStuck",
    headline="KRaft does not finish its sync",
    step="fix the named entry",
    advice=Advice(
        "Find in the active KRaft controller's log the entry that ZooKeeper refuses, such as a quota, a "
        "client-metrics or a group resource. Delete that entry, and restart the active controller."
    ),
)
DUAL_WRITE_STALLED: Final = page(
    name="DualWriteStalled",
    headline="KRaft's dual write stalled",
    step="restart its controller",
    advice=Advice(
        "If the quorum lives and you did not finalize, restart the active KRaft controller, so that the next leader "
        "writes again. If you finalized, end the cluster's `kontrast watch`, then run `kontrast forget CLUSTER`."
    ),
)
KRAFT_LEADER_FLAPPING: Final = warn(
    name="KRaftLeaderFlapping",
    headline="KRaft leaders follow one another",
    step="read their logs",
    advice=Advice("Find in the KRaft controllers' logs and connections why the quorum elects."),
)
SECOND_CONTROLLER: Final = page(
    name="SecondController",
    headline="two controllers write",
    step="restart the KRaft one",
    advice=Advice(
        "To continue, restart the active KRaft controller, so that the next leader claims /controller.",
        (remedies.RETURN_TO_ZOOKEEPER.given("you go back"),),
    ),
    lasts_ms=5 * MINUTE_MS,
)
OLD_MIGRATION: Final = warn(
    name="OldMigration",
    headline="/migration has an old offset",
    advice=Advice(remedies=(remedies.DELETE_MIGRATION,)),
)
OLD_MIGRATION_CLAIMED: Final = page(
    name="OldMigrationClaimed",
    headline="KRaft deletes topics",
    step="stop all its controllers",
    advice=Advice(
        "Do not restart brokers before the znodes are restored, because they still have the data of deleted topics.",
        (remedies.RETURN_TO_ZOOKEEPER,),
    ),
)
DELETED_BY_SYNC: Final = warn(
    name="DeletedBySync",
    headline="KRaft deleted topics",
    step="check their data",
    advice=Advice(
        "If the topics were created without KRaft, create them again through a broker. If KRaft deleted many, see "
        "OldMigrationClaimed."
    ),
    several="KRaft lacked {count} topics{names} and deleted them from ZooKeeper",
    lasts_ms=30 * MINUTE_MS,
)
WRITTEN_PAST_KRAFT: Final = warn(
    name="WrittenPastKRaft",
    headline="ZooKeeper was written past KRaft",
    step="find who wrote",
    advice=Advice("Make the change through a broker (--bootstrap-server), before KRaft elects its next leader."),
    several="{count} topics{names} were changed in ZooKeeper while KRaft leads: the next KRaft leader reverts the "
    "changes, or they wait for a rollback",
    lasts_ms=30 * MINUTE_MS,
    ends_early="a broker is controller",
)
LEADERS_NEVER_ELECTED: Final = page(
    name="LeadersNeverElected",
    headline="{partitions} without an election",
    step="raise the epoch",
    advice=Advice(remedies=(controllership.RAISE_EPOCH.filled(EPOCH="the highest epoch of the states"),)),
    expected="The controller elects no leader, because it refuses to touch these partitions.",
)
