"""Checks of partial losses, and of damage to a rollback."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kinds import DUPLICATE_TOPIC_ID
from controller.contract.remedies.controllership import DELETE_PREFERRED_REQUEST, RAISE_EPOCH
from controller.contract.remedies.reassignments import DELETE_REASSIGNMENT_REQUEST
from controller.contract.remedies.remedy import Advice
from controller.contract.remedies.topics import DELETE_ORPHAN_STATE, DELETE_SETTINGS
from migration.preflight import cluster, settings, topics
from migration.preflight.check import Check, Outcome
from migration.preflight.tree import (
    BROKER_CONFIGS,
    BROKERS,
    CONTROLLER,
    DELETIONS,
    MIGRATION,
    TOPIC_CONFIGS,
    TOPICS,
    USERS,
)

_QUOTAS = (USERS, settings.CLIENTS, settings.IPS)
_STATES = (TOPICS, DELETIONS)

LOSSES: Final[tuple[Check, ...]] = (
    Check(
        name="broker-in-zookeeper",
        outcome=Outcome.LOSES,
        what="a broker that is registered in ZooKeeper, while KRaft leads: do not finalize yet",
        shown_by="/brokers/ids/N while a KRaft controller owns /controller; with --bootstrap the controllers' flag",
        means="Kafka finalizes nevertheless. That broker then gets no metadata, and its clients keep dead leaders.",
        mend="Restart the broker in KRaft mode. Finalize when /brokers/ids is empty. If a controller runs without the "
        "flag already, restart it with the flag first.",
        source="KAFKA-20960, https://github.com/apache/kafka/pull/23338 (open in September 2026)",
        find=cluster.still_registered,
        reads=(BROKERS, CONTROLLER, MIGRATION),
    ),
    Check(
        name="config-no-json",
        outcome=Outcome.LOSES,
        what="a configuration that is not JSON",
        shown_by="/config/topics/T, /config/brokers/N, /config/users/U, /config/clients/C, /config/ips/IP",
        means="KRaft reads it as empty, so the defaults apply from then on.",
        mend='Write it again: {"version":1,"config":{...}}.',
        source="ConfigEntityZNode (3.9)",
        find=settings.unreadable_configurations,
        reads=(TOPIC_CONFIGS, BROKER_CONFIGS, *_QUOTAS),
    ),
    Check(
        name="acl-no-json",
        outcome=Outcome.LOSES,
        what="an ACL that is not JSON",
        shown_by="/kafka-acl/TYPE/NAME, /kafka-acl-extended/PATTERN/TYPE/NAME",
        means="KRaft reads it as no rights at all. Permitted users lose access, and denied users may gain it.",
        mend="Delete the znode and give the rights again with kafka-acls.sh.",
        source="AclEntry.fromBytes (3.9)",
        find=settings.unreadable_acls,
        reads=settings.ACLS,
    ),
    Check(
        name="no-state",
        outcome=Outcome.LOSES,
        what="a partition without a state",
        shown_by="no /brokers/topics/T/partitions/P/state",
        means="KRaft takes the first replica for its leader, all replicas for in sync, and begins with leader epoch 0, "
        "below that of the brokers.",
        mend="If brokers have the partition, write its state back with a leader_epoch above theirs, before any "
        "failover. If it is new, start one of its brokers.",
        source="ZkTopicMigrationClient (3.9)",
        find=topics.without_state,
        reads=_STATES,
    ),
    Check(
        name="shared-topic-id",
        outcome=Outcome.LOSES,
        what="two topics with one topic_id",
        shown_by="/brokers/topics/T",
        means="KRaft keeps one topic of that id. A starting ZooKeeper controller cannot load them either.",
        mend=DUPLICATE_TOPIC_ID.action,
        source="ZkTopicMigrationClient, ReplicationControlManager (3.9)",
        find=topics.shared_ids,
        reads=(TOPICS,),
    ),
    Check(
        name="no-leader",
        outcome=Outcome.LOSES,
        what="a partition that nobody leads",
        shown_by='"leader":-1 in /brokers/topics/T/partitions/P/state',
        means="It is copied without a leader, and gets one only when KRaft checks the balance (every 5 minutes by "
        "default) or a broker registers.",
        mend="Bring its in-sync replicas back, or have a leader elected, before the migration.",
        source="ZkTopicMigrationClient, ReplicationControlManager (3.9)",
        find=topics.without_leader,
        reads=_STATES,
    ),
    Check(
        name="reassignment",
        outcome=Outcome.LOSES,
        what="a reassignment under way",
        shown_by="adding_replicas or removing_replicas in /brokers/topics/T",
        means="KRaft copies and continues it. Replicas stay on disks, and epochs get stuck.",
        mend="Let it finish before the migration, or go to 3.9 first.",
        source="KAFKA-16120, KAFKA-16121",
        find=topics.reassignments,
        reads=_STATES,
        fixed_in=(3, 6, 2),
    ),
    Check(
        name="orphan-config",
        outcome=Outcome.LOSES,
        what="a configuration of a topic that is not there",
        shown_by="/config/topics/T without /brokers/topics/T",
        means="The sync deletes it.",
        mend=DELETE_SETTINGS.says(),
        source="KRaftMigrationZkWriter (3.9)",
        find=topics.orphan_configurations,
        reads=(TOPIC_CONFIGS, TOPICS),
    ),
    Check(
        name="pending-deletion",
        outcome=Outcome.LOSES,
        what="a deletion that is not done",
        shown_by="/admin/delete_topics/T",
        means="KRaft does not copy the topic, and deletes it from ZooKeeper after the copy. Folders stay on the "
        "brokers. Before 3.6.1 the topic returns in KRaft (KAFKA-15605).",
        mend="Let the deletion finish. Start the brokers with its replicas.",
        source="KAFKA-15605, KAFKA-15799",
        find=topics.under_deletion,
        reads=(DELETIONS,),
    ),
    Check(
        name="stray-state",
        outcome=Outcome.ROLLBACK,
        what="a state of a partition that its topic lacks",
        shown_by="/brokers/topics/T/partitions/P/state without P in /brokers/topics/T",
        means="When KRaft creates this partition, ZooKeeper keeps the old leader and ISR until the next change. "
        "A rollback would use them.",
        mend=DELETE_ORPHAN_STATE.says(),
        source="ZkTopicMigrationClient.createTopicPartitions (3.9)",
        find=topics.stray_states,
        reads=_STATES,
    ),
    Check(
        name="leftover-trigger",
        outcome=Outcome.ROLLBACK,
        what="a request for a reassignment or an election that was left",
        shown_by="/admin/reassign_partitions, /admin/preferred_replica_election",
        means="KRaft leaves it. After a rollback the next ZooKeeper controller obeys it.",
        mend=Advice(
            "Let the controller finish it.", (DELETE_REASSIGNMENT_REQUEST, DELETE_PREFERRED_REQUEST)
        ).in_words(),
        source="KafkaController (3.9)",
        find=cluster.triggers_left,
        reads=cluster.TRIGGERS,
    ),
    Check(
        name="small-epoch",
        outcome=Outcome.ROLLBACK,
        what="a small /controller_epoch",
        shown_by="/controller_epoch below 10",
        means="KRaft's epoch grows faster with each of its elections. Once it exceeds /controller_epoch + 1, a "
        "ZooKeeper controller after a rollback elects no leader for the partitions that KRaft has written.",
        mend=RAISE_EPOCH.filled(EPOCH="1000")
        .given("ZooKeeper leads, and `kontrast lint` finds no unloadable-topic, duplicate-topic-id or missing-topic-id")
        .says(),
        source="KAFKA-20488; PartitionStateMachine (3.9)",
        find=cluster.small_epoch,
        reads=(cluster.EPOCH, MIGRATION, CONTROLLER),
        advises=True,
    ),
)
