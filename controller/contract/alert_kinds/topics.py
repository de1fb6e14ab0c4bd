"""Alerts on topics: creation, deletion, reassignment, preferred leaders, znodes edited by hand."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, AlertKind
from controller.contract.alert_row import Severity

DELETION_STUCK: Final = AlertKind(
    name="DeletionStuck",
    severity=Severity.WARN,
    meaning="Deletions of topics wait for brokers that have not deleted their replicas.",
    action="Bring back the named brokers. The deletion continues when they return. The controller asks a live broker "
    "again only after the broker's restart or a failover. The broker's log shows why it has not deleted.",
    expected="to ask the brokers again when they return, then to remove the topics",
    patience_ms=MINUTE_MS,
    patience_else="after 5 min where all brokers that it waits for are live",
)
DELETION_IGNORED: Final = AlertKind(
    name="DeletionIgnored",
    severity=Severity.WARN,
    meaning="/admin/delete_topics has entries that delete no topic. The topic does not exist, or deletion is "
    "disabled. A working controller removes such entries at once.",
    action="Delete the named entries, because they would delete a new topic of that name. Then look at the controller.",
    expected="to remove the entries at once",
    patience_ms=MINUTE_MS,
)
REASSIGNMENT_STUCK: Final = AlertKind(
    name="ReassignmentStuck",
    severity=Severity.WARN,
    meaning="Reassignments do not end, because their new replicas are not in sync.",
    action="Bring back the named brokers, or cancel the reassignment (kafka-reassign-partitions.sh --cancel).",
    expected="to complete them once the new replicas are in sync",
    patience_ms=MINUTE_MS,
    patience_else="after 30 min where the new replicas are on live brokers and may still copy",
)
INVALID_REASSIGNMENT: Final = AlertKind(
    name="InvalidReassignment",
    severity=Severity.WARN,
    meaning="/admin/reassign_partitions stays although it reassigns no partition. It blocks the next reassignment "
    "there.",
    action="Delete /admin/reassign_partitions, then /controller, because the controller sees the next request only "
    "after a failover. Ask again with partitions and brokers that exist. From 2.6 on use --bootstrap-server, which "
    "checks them.",
    expected="to remove the znode after its last reassignment, which never happens",
    patience_ms=MINUTE_MS,
)
PREFERRED_IMBALANCE: Final = AlertKind(
    name="PreferredImbalance",
    severity=Severity.INFO,
    meaning="More leaders than the configured share are not on their preferred brokers, for longer than the controller "
    "takes to move them back.",
    action="Run a preferred election (kafka-leader-election.sh), or find out why the preferred replicas are not in "
    "sync.",
    patience_else="after 10 min, or two intervals and a minute (11 min by default) if auto.leader.rebalance.enable is "
    "true",
)
TOPIC_WITH_ONE_REPLICA: Final = AlertKind(
    name="TopicWithOneReplica",
    severity=Severity.INFO,
    meaning="A topic was created with partitions of one replica. Each goes offline with its broker.",
    action="Reassign the topic to more replicas if its data matters.",
    several="{count} topics were created with partitions of one replica{names}: each goes offline with its broker",
    lasts_ms=10 * MINUTE_MS,
)
TOPIC_WITH_DEAD_REPLICA: Final = AlertKind(
    name="TopicWithDeadReplica",
    severity=Severity.WARN,
    meaning="A topic was created with replicas on brokers that are not live. It starts with fewer replicas.",
    action="Bring back the named brokers, or reassign the topic.",
    several="{count} topics were created with replicas on brokers that are not live{names}: they start with fewer "
    "replicas",
    lasts_ms=10 * MINUTE_MS,
)
TOPIC_REMOVED_BY_HAND: Final = AlertKind(
    name="TopicRemovedByHand",
    severity=Severity.WARN,
    meaning="A topic's znode was removed by hand. Brokers keep and serve its replicas.",
    action="Create the topic again, then delete it by /admin/delete_topics or a tool.",
    several="the znodes of {count} topics were removed by hand{names}: brokers keep and serve their replicas",
    lasts_ms=10 * MINUTE_MS,
    divergence="topic_removed_by_hand",
)
ASSIGNMENT_EDITED: Final = AlertKind(
    name="AssignmentEdited",
    severity=Severity.WARN,
    meaning="A topic's assignment was edited by hand. Controller and brokers use the old one until the next failover.",
    action="Restore the old assignment, and request a reassignment.",
    several="the assignments of {count} partitions were edited by hand{names}: they have no effect until the next "
    "failover",
    expected="to ignore it until the next failover",
    lasts_ms=10 * MINUTE_MS,
    divergence="assignment_edited",
)
DELETION_GIVEN_UP: Final = AlertKind(
    name="DeletionGivenUp",
    severity=Severity.WARN,
    meaning="A topic's deletion was withdrawn by hand after it had begun. Part of its data may be gone.",
    action="Request the deletion again. To keep the remaining data, delete /controller at once, because the controller "
    "continues to delete until a failover.",
    several="the deletions of {count} topics were withdrawn by hand after they had begun{names}: data may be gone. The "
    "controller continues to delete until a failover",
    lasts_ms=10 * MINUTE_MS,
    divergence="deletion_given_up",
)
MISSING_TOPIC_ID: Final = AlertKind(
    name="MissingTopicId",
    severity=Severity.INFO,
    meaning="Topics have no id although others have one. The controller must assign an id.",
    action="Check how these topics were created. A controller failover assigns their ids.",
    expected="to write their ids at once",
    patience_ms=5 * MINUTE_MS,
)
