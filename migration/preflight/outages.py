"""Checks of total losses, and of clusters without a controller or brokers without metadata."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kinds import OLD_MIGRATION
from migration.preflight import cluster, settings, topics
from migration.preflight.check import Check, Outcome, nothing
from migration.preflight.tree import BROKER_CONFIGS, CONTROLLER, DELETIONS, MIGRATION, TOPIC_CONFIGS, TOPICS, USERS

_QUOTAS = (USERS, settings.CLIENTS, settings.IPS)
_STATES = (TOPICS, DELETIONS)
_DELETE_BEFORE = "Delete the key before the migration. Once the sync is stuck, only a rollback helps."

OUTAGES: Final[tuple[Check, ...]] = (
    Check(
        name="earlier-attempt",
        outcome=Outcome.LOSES,
        what="/migration of an earlier attempt",
        shown_by="an offset above 0 in /migration while no KRaft controller rules",
        means="The next quorum takes its own log for a copy of ZooKeeper. With newly formatted disks it deletes "
        "every topic and quota from ZooKeeper as soon as it has passed the old offset. With its old disks "
        "it deletes later topics and resets assignments and quotas.",
        mend=OLD_MIGRATION.action,
        source="KAFKA-17146; KRaftMigrationDriver, ZkMigrationLeadershipState (3.9)",
        find=cluster.earlier_attempt,
        reads=(MIGRATION, CONTROLLER),
    ),
    Check(
        name="no-replicas",
        outcome=Outcome.KILLS,
        what="a partition without replicas",
        shown_by="[] in the partitions of /brokers/topics/T",
        means="The copy ends with an exception at this topic.",
        mend="Take the partition out of the topic's znode, or delete the topic.",
        source="ZkTopicMigrationClient (3.9)",
        find=topics.without_replicas,
        reads=_STATES,
    ),
    Check(
        name="quota-no-number",
        outcome=Outcome.KILLS,
        what="a quota that is no number",
        shown_by="a value in /config/users, /config/users/U/clients, /config/clients or /config/ips",
        means="The copy ends with an exception at this quota.",
        mend="Delete the key, or write a number, with kafka-configs.sh or in the znode.",
        source="ZkConfigMigrationClient (3.9)",
        find=settings.quotas_that_are_no_number,
        reads=_QUOTAS,
    ),
    Check(
        name="scram-malformed",
        outcome=Outcome.KILLS,
        what="a SCRAM credential that cannot be read",
        shown_by="SCRAM-SHA-256 or SCRAM-SHA-512 in /config/users/U",
        means="The copy ends with an exception at this user.",
        mend="Delete the key and give the user a new password with kafka-configs.sh.",
        source="ZkConfigMigrationClient, ScramCredentialUtils (3.9)",
        find=settings.malformed_scram,
        reads=(USERS,),
    ),
    Check(
        name="acl-malformed",
        outcome=Outcome.KILLS,
        what="an ACL that is JSON, and not of Kafka's form",
        shown_by="/kafka-acl/TYPE/NAME, /kafka-acl-extended/PATTERN/TYPE/NAME",
        means="The copy ends with an exception at this resource, whatever authorizer runs.",
        mend="Delete the znode and give the rights again with kafka-acls.sh.",
        source="ZkAclMigrationClient, AclEntry.fromBytes (3.9)",
        find=settings.malformed_acls,
        reads=settings.ACLS,
    ),
    Check(
        name="config-no-text",
        outcome=Outcome.KILLS,
        what="a setting with a value that is not a text",
        shown_by='like {"retention.ms":1000} in /config/topics/T, /config/brokers/N, /config/users/U and the others',
        means="The copy ends with an exception at this configuration.",
        mend='Put the value into quotation marks: {"retention.ms":"1000"}.',
        source="ConfigEntityZNode.decode (3.9)",
        find=settings.values_that_are_no_text,
        reads=(TOPIC_CONFIGS, BROKER_CONFIGS, *_QUOTAS),
    ),
    Check(
        name="broker-config-name",
        outcome=Outcome.KILLS,
        what="a configuration of a broker whose name is no number",
        shown_by="/config/brokers/NAME",
        means="The copy ends with an exception at this name.",
        mend="Delete the znode.",
        source="ZkConfigMigrationClient (3.9)",
        find=settings.broker_configurations_of_no_number,
        reads=(BROKER_CONFIGS,),
    ),
    Check(
        name="producer-ids-no-json",
        outcome=Outcome.KILLS,
        what="a block of producer ids that is not JSON",
        shown_by="/latest_producer_id_block, where it is not empty",
        means="The copy ends with an exception.",
        mend="Write a whole block, above all that were given out: "
        '{"version":1,"broker":B,"block_start":"S","block_end":"E"}.',
        source="ZkMigrationClient (3.9)",
        find=settings.unreadable_producer_ids,
        reads=(settings.PRODUCER_IDS,),
    ),
    Check(
        name="broker-password",
        outcome=Outcome.KILLS,
        what="a password in a dynamic configuration of a broker",
        shown_by="*.password, *.jaas.config and PEM keys in /config/brokers/N",
        means="With another secret than the brokers' the copy ends with an exception. Without a secret the "
        "encoded text becomes the password, and the broker loses its listener or its login.",
        mend="Give every controller the brokers' password.encoder.secret and, where set, the other "
        "password.encoder.* settings.",
        source="ZkConfigMigrationClient, PasswordEncoder (3.9)",
        find=settings.passwords,
        reads=(BROKER_CONFIGS,),
    ),
    Check(
        name="quota-unknown",
        outcome=Outcome.STICKS,
        what="a quota that Kafka does not know",
        shown_by="a key in /config/users, /config/users/U/clients, /config/clients or /config/ips",
        means="It is copied, and cannot be written back.",
        mend=_DELETE_BEFORE,
        source="ZkConfigMigrationClient.writeClientQuotas (3.9)",
        find=settings.unknown_quotas,
        reads=_QUOTAS,
    ),
    Check(
        name="quota-fraction",
        outcome=Outcome.STICKS,
        what="a rate in bytes or connections with a fraction",
        shown_by="producer_byte_rate, consumer_byte_rate or connection_creation_rate, like 1000.5",
        means="It is copied, and cannot be written back as a whole number.",
        mend="Write a whole number before the migration. Once the sync is stuck, only a rollback helps.",
        source="ZkConfigMigrationClient.writeClientQuotas (3.9)",
        find=settings.fractional_quotas,
        reads=_QUOTAS,
    ),
    Check(
        name="client-metrics-or-group",
        outcome=Outcome.STICKS,
        what="a configuration of client metrics or of a group, made in the dual write",
        shown_by="no znode",
        means="It works until the next KRaft leader, whose sync fails.",
        mend="Create none before the migration is finalized. If one exists, delete it and restart the active "
        "controller.",
        source="KRaftMigrationZkWriter.handleConfigsSnapshot (3.9)",
        find=nothing,
        hindered=lambda _tree: "no znode shows it; ask a broker with kafka-configs.sh",
        since=(3, 7, 0),
    ),
)
