"""Alerts on topics: creation, deletion, reassignment, preferred leaders, znodes edited by hand."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, AlertKind
from controller.contract.alert_row import Severity

DELETION_STUCK: Final = AlertKind(
    name="DeletionStuck",
    severity=Severity.WARN,
    meaning="Deletions of topics wait for brokers that have not deleted their replicas.",
    action="Bring back the brokers that are named; a deletion goes on when they return. One that is live and does not "
    "delete is asked again once it was restarted, or after a failover; its log says why it did not.",
    expected="to ask the brokers again when they return, then to remove the topics",
    patience_ms=MINUTE_MS,
    patience_else="after 5 min where all brokers that it waits for are live",
)
DELETION_IGNORED: Final = AlertKind(
    name="DeletionIgnored",
    severity=Severity.WARN,
    meaning="/admin/delete_topics has entries that delete no topic: the topic does not exist, or deletion is disabled. "
    "A controller that works removes them at once.",
    action="Delete the entries that are named, else a topic that is made by this name is deleted. Then look at the "
    "controller.",
    expected="to remove the entries at once",
    patience_ms=MINUTE_MS,
)
REASSIGNMENT_STUCK: Final = AlertKind(
    name="ReassignmentStuck",
    severity=Severity.WARN,
    meaning="Reassignments do not end: their new replicas are not in sync.",
    action="Bring back the brokers that are named, or cancel the reassignment (kafka-reassign-partitions.sh --cancel).",
    expected="to complete them once the new replicas are in sync",
    patience_ms=MINUTE_MS,
    patience_else="after 30 min where the new replicas are on live brokers and may still copy",
)
INVALID_REASSIGNMENT: Final = AlertKind(
    name="InvalidReassignment",
    severity=Severity.WARN,
    meaning="/admin/reassign_partitions stays although nothing is being reassigned: it blocks the next reassignment "
    "there.",
    action="Delete /admin/reassign_partitions, then /controller: until a failover the controller does not see the next "
    "one. Ask again with partitions and brokers that exist, best by --bootstrap-server (from 2.6 on), which checks "
    "them.",
    expected="to remove it when everything in it is done, which it never is",
    patience_ms=MINUTE_MS,
)
PREFERRED_IMBALANCE: Final = AlertKind(
    name="PreferredImbalance",
    severity=Severity.INFO,
    meaning="More leaders than the configured share are not on their preferred brokers, for longer than the controller "
    "takes to bring them back.",
    action="Run a preferred election (kafka-leader-election.sh), or find out why the preferred replicas are not in "
    "sync.",
    patience_else="after 10 min; where auto.leader.rebalance.enable is true, after two of its intervals and a minute "
    "(11 min by default)",
)
TOPIC_WITH_ONE_REPLICA: Final = AlertKind(
    name="TopicWithOneReplica",
    severity=Severity.INFO,
    meaning="A topic was created with partitions of one replica: each goes offline with its broker.",
    action="Reassign it to more replicas, if its data matters.",
    several="{count} topics were created with partitions of one replica{names}: each goes offline with its broker",
    lasts_ms=10 * MINUTE_MS,
)
TOPIC_WITH_DEAD_REPLICA: Final = AlertKind(
    name="TopicWithDeadReplica",
    severity=Severity.WARN,
    meaning="A topic was created with replicas on brokers that are not live: it starts with fewer replicas.",
    action="Bring back the brokers that are named, or reassign the topic.",
    several="{count} topics were created with replicas on brokers that are not live{names}: they start with fewer "
    "replicas",
    lasts_ms=10 * MINUTE_MS,
)
TOPIC_REMOVED_BY_HAND: Final = AlertKind(
    name="TopicRemovedByHand",
    severity=Severity.WARN,
    meaning="A topic's znode was removed by hand: brokers keep its replicas and go on serving them.",
    action="Create it again, then delete it in order: by /admin/delete_topics or a tool.",
    several="the znodes of {count} topics were removed by hand{names}: brokers keep and serve their replicas",
    lasts_ms=10 * MINUTE_MS,
    divergence="topic_removed_by_hand",
)
ASSIGNMENT_EDITED: Final = AlertKind(
    name="AssignmentEdited",
    severity=Severity.WARN,
    meaning="A topic's assignment was edited by hand: controller and brokers go by the old one until the next "
    "failover.",
    action="Set it back, and ask for a reassignment instead.",
    several="the assignments of {count} partitions were edited by hand{names}: they are without effect until the next "
    "failover",
    expected="to ignore it until the next failover",
    lasts_ms=10 * MINUTE_MS,
    divergence="assignment_edited",
)
DELETION_GIVEN_UP: Final = AlertKind(
    name="DeletionGivenUp",
    severity=Severity.WARN,
    meaning="A topic's deletion was taken back by hand while it was under way: part of its data may be gone.",
    action="Ask for the deletion again. To keep what is left, delete /controller at once: until a failover the "
    "controller goes on with what it began.",
    several="the deletions of {count} topics were taken back by hand while under way{names}: data may be gone, and the "
    "controller goes on deleting until a failover",
    lasts_ms=10 * MINUTE_MS,
    divergence="deletion_given_up",
)
MISSING_TOPIC_ID: Final = AlertKind(
    name="MissingTopicId",
    severity=Severity.INFO,
    meaning="Topics have no id although others have one: the controller owes them one.",
    action="Look at how these topics were created; a failover gives them ids.",
    expected="to write their ids at once",
    patience_ms=5 * MINUTE_MS,
)
