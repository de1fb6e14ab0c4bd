"""Table of checks: what each finds, its consequence and its fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final

import msgspec

from controller.contract.alert_kinds import kinds
from controller.contract.alert_row import Severity
from controller.contract.remedies.controllership import DELETE_PREFERRED_REQUEST, RAISE_EPOCH
from controller.contract.remedies.partitions import FORBID_UNCLEAN, LOWER_MIN_ISR
from controller.contract.remedies.reassignments import CANCEL_REASSIGNMENT, DELETE_REASSIGNMENT_REQUEST, REASSIGN
from controller.contract.remedies.remedy import Advice
from controller.contract.remedies.topics import DELETE_ORPHAN_STATE, DELETE_SETTINGS
from controller.contract.znodes import ZnodeError, decode_config
from controller.rules.setting_definitions import TOPIC_SETTINGS
from controller.view.types import THROTTLES
from questions.lint import checks
from questions.lint.checks import Linted
from wording.sentences import bracketed, near

_CONFIGS: Final = ("/config/topics", "/config/brokers")
_THROTTLED: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_COMPACTED: Final = ("__consumer_offsets", "__transaction_state")
_DEFAULT_PARTITIONS: Final = 50


def _settings(cluster: Linted, parent: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the readable settings below the parent, by name."""
    for name, record in sorted(cluster.children[parent].items(), key=itemgetter(0)):
        try:
            yield name, decode_config(record.raw).config
        except ZnodeError:
            continue  # a check of its own finds it


def unknown_settings(cluster: Linted) -> Iterator[str]:
    """Yield settings of topics whose name no release knows, with the nearest name that Kafka knows."""
    for topic, config in _settings(cluster, _CONFIGS[0]):
        for name in sorted(config.keys() - TOPIC_SETTINGS.keys()):
            of_brokers = re.sub("hours$|minutes$", "ms", name.removeprefix("log."))
            known = [of_brokers] if of_brokers in TOPIC_SETTINGS else near(name, TOPIC_SETTINGS)
            nearest = f", perhaps meant as {known[0]}" if known else ""
            yield f"{name}={config[name][:40]} of topic {topic}{nearest}"


def forgotten_throttles(cluster: Linted) -> Iterator[str]:
    """Yield throttled topics and throttled brokers while nothing is reassigned."""
    header = cluster.picture.header
    if header.triggers.reassign is not None or any(
        partition.reassigning for _, topic in cluster.topics for partition in topic.partitions.values()
    ):
        return
    for parent, names in zip(_CONFIGS, (_THROTTLED, THROTTLES), strict=True):
        for name, config in _settings(cluster, parent):
            if found := [f"{key}={config[key][:40]}" for key in names if config.get(key)]:
                yield f"{', '.join(found)} of {parent}/{name}"


def deleted_internal_topics(cluster: Linted) -> Iterator[str]:
    """Yield internal topics that are not compacted, so that their records are deleted by time."""
    for topic, config in _settings(cluster, _CONFIGS[0]):
        policy = config.get("cleanup.policy", "compact")
        if topic in _COMPACTED and "delete" in policy:
            retention = f", retention.ms={config['retention.ms']}" if "retention.ms" in config else ""
            yield f"{topic} (cleanup.policy={policy}{retention})"


def grown_internal_topics(cluster: Linted) -> Iterator[str]:
    """Yield internal topics with more partitions than the default, because brokers map groups by that number."""
    for name, topic in cluster.topics:
        if name in _COMPACTED and len(topic.partitions) > _DEFAULT_PARTITIONS:
            yield f"{name} ({len(topic.partitions)} partitions)"


def gaps(cluster: Linted) -> Iterator[str]:
    """Yield topics whose partitions are not numbered without a gap."""
    for name, topic in cluster.topics:
        numbers = sorted(topic.partitions)
        if missing := sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers)):
            yield f"{name} (without partition {bracketed(missing[:3])}, of {len(numbers)})"


class LintCheck(msgspec.Struct, frozen=True):
    """A check with the function that finds the names of the places of trouble."""

    name: str
    severity: Severity
    find: Callable[[checks.Linted], Iterable[str]]
    will: str
    advice: Advice
    reads_znodes: bool = False  # it looks at znodes beyond the controller's context
    is_in_check: bool = False  # `kontrast check` tells it too, because no alert does


CHECKS: Final = (
    LintCheck(
        "duplicate-topic-id",
        Severity.PAGE,
        checks.duplicate_ids,
        "Every broker that is elected controller fails while it loads them.",
        kinds.DUPLICATE_TOPIC_ID.advice,
    ),
    LintCheck(
        "unloadable-topic",
        Severity.PAGE,
        checks.unloadable_topics,
        "Every broker that is elected controller fails while it loads the topic.",
        kinds.TOPIC_UNLOADABLE.advice,
    ),
    LintCheck(
        "unreadable-znode",
        Severity.PAGE,
        checks.deadly_znodes,
        "Kafka fails at the znode when a broker starts, a controller takes over, or a request comes.",
        Advice("Take the step that follows the znode."),
    ),
    LintCheck(
        "znode-without-effect",
        Severity.WARN,
        checks.weakening_znodes,
        "Brokers and controllers go on, but do not do what the znode is for.",
        Advice("Take the step that follows the znode."),
        is_in_check=True,
    ),
    LintCheck(
        "unparsable-settings",
        Severity.WARN,
        checks.unparsable_settings,
        "The settings are no JSON, so Kafka uses the defaults.",
        Advice("Write the settings again with kafka-configs.sh."),
        reads_znodes=True,
    ),
    LintCheck(
        "state-of-a-later-controller",
        Severity.PAGE,
        checks.newer_than_the_controller,
        "/controller_epoch was set back. Brokers refuse the controller's requests as those of a deposed one.",
        Advice(remedies=(RAISE_EPOCH.filled(EPOCH="the highest epoch in this finding"),)),
    ),
    LintCheck(
        "min-isr-above-replication-factor",
        Severity.PAGE,
        checks.needs_more_than_it_has,
        "Brokers refuse every write with acks=all, even while all brokers are live.",
        Advice(remedies=(LOWER_MIN_ISR, REASSIGN.given("the topic should have more replicas"))),
    ),
    LintCheck(
        "setting-stops-start",
        Severity.PAGE,
        checks.settings_that_end_a_start,
        "Brokers parse these settings when they start. Every broker fails at a topic's, even without a replica of it.",
        kinds.START_WILL_FAIL.advice,
        reads_znodes=True,
    ),
    LintCheck(
        "broker-without-session",
        Severity.PAGE,
        checks.persistent_brokers,
        "The znode is persistent. No process leads the broker's partitions, and the real broker cannot register.",
        kinds.BROKER_WITHOUT_SESSION.advice,
    ),
    LintCheck(
        "leader-out-of-sync",
        Severity.WARN,
        checks.leaders_out_of_sync,
        "No broker writes such a state, so somebody edited it. A failover may elect another leader and lose records.",
        Advice("Find out who wrote the partition's state, and compare the replicas before the next failover."),
    ),
    LintCheck(
        "endpoint-of-two-brokers",
        Severity.WARN,
        checks.same_endpoint,
        "Clients and brokers that mean one of them reach the other.",
        Advice("Give each broker its own advertised.listeners, and restart it."),
    ),
    LintCheck(
        "replicas-of-unknown-brokers",
        Severity.WARN,
        checks.unknown_brokers,
        "The controller waits for these brokers for ever, and handles no other reassignment of the partitions.",
        kinds.BROKER_UNKNOWN.advice,
    ),
    LintCheck(
        "child-list-too-long",
        Severity.PAGE,
        checks.long_lists,
        "A starting controller cannot read a list beyond jute.maxbuffer, so no controller stays.",
        Advice("Delete unused topics, or raise jute.maxbuffer on every ZooKeeper server, then on every broker."),
        reads_znodes=True,
    ),
    LintCheck(
        "leader-or-isr-not-assigned",
        Severity.WARN,
        checks.stray_states,
        "The state names brokers outside the replicas. The controller elects no such broker, and their ISR is lost.",
        kinds.ASSIGNMENT_EDITED.advice,
    ),
    LintCheck(
        "replica-listed-twice",
        Severity.WARN,
        checks.listed_twice,
        "The partition has fewer copies than replicas, and Kafka counts it as under-replicated for ever.",
        Advice("Reassign the partition to different brokers.", (REASSIGN,)),
        reads_znodes=True,
    ),
    LintCheck(
        "orphan-state",
        Severity.WARN,
        checks.orphan_states,
        "If a partition of this name is created, the controller cannot write its first state. It has no leader "
        "until the next failover, and the old one after it.",
        Advice(
            "Check whether someone edited the topic's znode. If a broker leads the partition, put it back there.",
            (DELETE_ORPHAN_STATE,),
        ),
        reads_znodes=True,
    ),
    LintCheck(
        "leftover-reassignment-fields",
        Severity.WARN,
        checks.leftover_fields,
        "The next controller takes the partition as reassigned, to or from brokers outside its replicas.",
        Advice(remedies=(CANCEL_REASSIGNMENT,)),
        reads_znodes=True,
    ),
    LintCheck(
        "leftover-request",
        Severity.WARN,
        checks.left_requests,
        "It blocks the next request of its kind, and is carried out at the next failover.",
        Advice(
            remedies=(
                DELETE_REASSIGNMENT_REQUEST,
                DELETE_PREFERRED_REQUEST.given("/admin/preferred_replica_election stays"),
            )
        ),
        reads_znodes=True,
    ),
    LintCheck(
        "deletion-of-no-topic",
        Severity.WARN,
        checks.deletions_of_nothing,
        "No controller has handled it. Until then a new topic with this name is deleted.",
        kinds.DELETION_IGNORED.advice,
        reads_znodes=True,
    ),
    LintCheck(
        "notifications-not-read",
        Severity.WARN,
        checks.unread_notifications,
        "The controller does not read the leaders' reports. It sends brokers old ISRs, and each report slows its"
        " successor.",
        kinds.NOTIFICATION_BACKLOG.advice,
        reads_znodes=True,
    ),
    LintCheck(
        "setting-without-effect",
        Severity.WARN,
        checks.ignored_settings,
        "Brokers log these settings as invalid and leave them out.",
        Advice("Correct or delete the named settings."),
        reads_znodes=True,
    ),
    LintCheck(
        "unknown-setting",
        Severity.WARN,
        unknown_settings,
        "Kafka ignores a topic's setting whose name it does not know, so the default applies.",
        Advice("Set the setting of the right name, and delete the named one."),
        reads_znodes=True,
        is_in_check=True,
    ),
    LintCheck(
        "throttle-without-reassignment",
        Severity.WARN,
        forgotten_throttles,
        "Replicas that fell behind, as after a restart, catch up only at this rate, and ISRs stay small.",
        Advice("Remove the throttle (kafka-configs.sh --delete-config)."),
        reads_znodes=True,
        is_in_check=True,
    ),
    LintCheck(
        "internal-topic-not-compacted",
        Severity.WARN,
        deleted_internal_topics,
        "Committed offsets of idle groups, or the states of transactions, are deleted after the retention.",
        Advice("Set cleanup.policy=compact on the topic."),
        reads_znodes=True,
        is_in_check=True,
    ),
    LintCheck(
        "internal-topic-grown",
        Severity.INFO,
        grown_internal_topics,
        "If partitions were added under live groups, brokers disagree on a group's coordinator until all restart, and "
        "groups look for their offsets in other partitions.",
        Advice("Check that the topic was created with this number (offsets.topic.num.partitions)."),
    ),
    LintCheck(
        "partitions-with-a-gap",
        Severity.WARN,
        gaps,
        "Clients that hash keys over the count send to a partition that does not exist, and never to the last one.",
        Advice("Find out who edited the topic's znode, and write the missing partition back."),
        is_in_check=True,
    ),
    LintCheck(
        "leader-alone-in-its-isrs",
        Severity.WARN,
        checks.lonely_leaders,
        "The leader is the common cause, because its followers are in sync with other leaders. Its loss takes the "
        "partitions offline in which it is the only in-sync replica.",
        Advice(
            "Look at the leader's connections, disks and log. Move its leaderships once another replica is in sync."
        ),
    ),
    LintCheck(
        "dead-replicas",
        Severity.WARN,
        checks.dead_brokers,
        "Each partition there lacks a replica, and a deletion of its topic waits for the broker.",
        kinds.BROKER_ABSENT.advice,
    ),
    LintCheck(
        "brokers-without-rack",
        Severity.WARN,
        checks.without_rack,
        "With racks on some brokers only, Kafka rejects new topics by rack, or ignores racks.",
        Advice("Set broker.rack on the named brokers, and restart them."),
    ),
    LintCheck(
        "all-replicas-in-one-rack",
        Severity.WARN,
        checks.in_one_rack,
        "The loss of that rack takes the partition offline.",
        Advice(remedies=(REASSIGN,)),
    ),
    LintCheck(
        "min-isr-of-all-replicas",
        Severity.WARN,
        checks.needs_all_it_has,
        "Each restart of a broker stops writes with acks=all.",
        Advice(remedies=(LOWER_MIN_ISR, REASSIGN.given("the topic should have more replicas"))),
    ),
    LintCheck(
        "settings-of-no-topic",
        Severity.INFO,
        checks.orphan_settings,
        "A new topic with this name begins with these settings.",
        Advice(remedies=(DELETE_SETTINGS,)),
        reads_znodes=True,
    ),
    LintCheck(
        "topic-without-settings",
        Severity.INFO,
        checks.without_settings,
        "A deletion by hand removed the settings. The topic has the brokers' defaults, its retention included.",
        Advice("Set the topic's settings again with kafka-configs.sh, or finish the deletion."),
        reads_znodes=True,
    ),
    LintCheck(
        "missing-topic-id",
        Severity.WARN,
        checks.missing_ids,
        "The next controller gives each a new id. Brokers that have the old id on disk then refuse the topic.",
        kinds.MISSING_TOPIC_ID.advice,
    ),
    LintCheck(
        "more-replicas-than-racks",
        Severity.INFO,
        checks.more_replicas_than_racks,
        "No spread gives each replica a rack of its own, so one rack has two.",
        Advice("Add a rack, or count on its loss taking two replicas."),
    ),
    LintCheck(
        "one-replica",
        Severity.INFO,
        checks.one_replica,
        "It goes offline with its broker, at each restart too, and is lost with its disk.",
        kinds.TOPIC_WITH_ONE_REPLICA.advice,
    ),
    LintCheck(
        "unclean-election-enabled",
        Severity.INFO,
        checks.unclean,
        "If all in-sync replicas fail, the controller elects a lagging replica, and records are lost.",
        Advice(remedies=(FORBID_UNCLEAN.given("its data matters more than availability"),)),
    ),
)
