"""Alerts on topics, about creation, deletion, reassignment, preferred leaders, and znodes edited by hand."""

from __future__ import annotations

from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, info, page, warn
from controller.says.remedies import controllership, partitions, reassignments, topics as remedies
from controller.says.remedies.remedy import Advice, Need, Task

DELETION_STUCK: Final = warn(
    name="DeletionStuck",
    headline="a deletion waits",
    step="look at the named brokers",
    advice=Advice(
        remedies=(controllership.MOVE_CONTROLLER.given("all of them are live", Need.BROKERS_LIVE),),
        steps=(
            Task("Bring back the named brokers. The deletion continues when they return.", (Need.BROKERS_AWAY,)),
            Task("The log of a live broker shows why it has not deleted.", (Need.BROKERS_LIVE,)),
        ),
    ),
    expected="The controller asks the brokers again when they return, and then removes the topics.",
    patience_ms=MINUTE_MS,
    patience_else="after 5 min where all brokers that it waits for are live",
)
DELETION_IGNORED: Final = warn(
    name="DeletionIgnored",
    headline="a deletion request has no effect",
    step="look at the controller",
    advice=Advice("Look at the controller, which removes such entries.", (remedies.DELETE_DELETION_ENTRY,)),
    expected="The controller removes the entries at once.",
    patience_ms=MINUTE_MS,
)
REASSIGNMENT_STUCK: Final = warn(
    name="ReassignmentStuck",
    headline="a reassignment does not end",
    step="look at the named brokers",
    advice=Advice(
        steps=(
            Task("Bring back the named brokers.", (Need.BROKERS_AWAY,)),
            Task("Look at the disks and the throttles of the named brokers.", (Need.BROKERS_LIVE,)),
        ),
        remedies=(reassignments.CANCEL_REASSIGNMENT.given("one of them never returns"),),
    ),
    expected="The controller completes them once the new replicas are in sync.",
    patience_ms=MINUTE_MS,
    patience_else="after 30 min where the new replicas are on live brokers and may still copy",
)
INVALID_REASSIGNMENT: Final = warn(
    name="InvalidReassignment",
    headline="a reassignment has no effect",
    step="look at its entry",
    advice=Advice(remedies=(reassignments.DELETE_REASSIGNMENT_REQUEST,)),
    expected="The controller removes the znode after its last reassignment, which never happens.",
    patience_ms=MINUTE_MS,
)
PREFERRED_IMBALANCE: Final = info(
    name="PreferredImbalance",
    headline="leaders are not where preferred",
    advice=Advice("Find out why the preferred replicas are not in sync.", (partitions.ELECT_ALL_PREFERRED,)),
    patience_else="after 10 min, or two intervals and a minute (11 min by default) if auto.leader.rebalance.enable is "
    "true",
)
TOPIC_WITH_ONE_REPLICA: Final = info(
    name="TopicWithOneReplica",
    headline="a new topic has one replica",
    advice=Advice(remedies=(reassignments.REASSIGN.given("its data matters"),)),
    several="{count} topics were created with partitions of one replica{names}: each goes offline with its broker",
    lasts_ms=10 * MINUTE_MS,
)
TOPIC_WITH_DEAD_REPLICA: Final = warn(
    name="TopicWithDeadReplica",
    headline="a new topic is on a dead broker",
    step="check its brokers",
    advice=Advice(
        "Bring back those of the named brokers that are still away.",
        (reassignments.REASSIGN.given("they do not exist"),),
    ),
    several="{count} topics were created with replicas on brokers that were not live{names}: they started with fewer "
    "replicas",
    lasts_ms=10 * MINUTE_MS,
)
TOPIC_REMOVED_BY_HAND: Final = warn(
    name="TopicRemovedByHand",
    headline="a topic's znode was removed",
    step="ask who did it",
    advice=Advice(remedies=(remedies.WRITE_BACK_AND_DELETE.given("the topic should be gone"),)),
    several="the znodes of {count} topics were removed by hand{names}: brokers keep and serve their replicas",
    lasts_ms=10 * MINUTE_MS,
    divergence="topic_removed_by_hand",
)
ASSIGNMENT_EDITED: Final = warn(
    name="AssignmentEdited",
    headline="an assignment was edited",
    step="ask who did it",
    advice=Advice(remedies=(remedies.RESTORE_ASSIGNMENT,)),
    several="the assignments of {count} partitions were edited by hand{names}: they have no effect until the next "
    "failover",
    expected="The controller ignores it until the next failover.",
    lasts_ms=10 * MINUTE_MS,
    divergence="assignment_edited",
)
DELETION_GIVEN_UP: Final = warn(
    name="DeletionGivenUp",
    headline="a deletion was withdrawn too late",
    step="ask who did it",
    advice=Advice(
        "The controller continues to delete until a failover.",
        (
            remedies.DELETE_TOPIC.given("the topic should be gone"),
            controllership.MOVE_CONTROLLER.given("the remaining data should stay"),
        ),
    ),
    several="the deletions of {count} topics were withdrawn by hand after they had begun{names}: data may be gone. The "
    "controller continues to delete until a failover",
    lasts_ms=10 * MINUTE_MS,
    divergence="deletion_given_up",
)
MISSING_TOPIC_ID: Final = warn(
    name="MissingTopicId",
    headline="topics have no id",
    step="look for partition.metadata",
    advice=Advice(
        "Look for partition.metadata in the topics' log directories.", (remedies.PUT_ID_BACK, remedies.ASSIGN_IDS)
    ),
    patience_ms=5 * MINUTE_MS,
    patience_else="at once where Kontrast saw a topic lose its id",
)
TOPIC_ID_CHANGED: Final = page(
    name="TopicIdChanged",
    headline="a topic got another id",
    step="put its id back",
    advice=Advice(remedies=(remedies.PUT_ID_BACK_AND_FAIL_OVER,)),
)
TOPIC_UNLOADABLE: Final = page(
    name="TopicUnloadable",
    headline="a topic's znode is damaged",
    step="write it back",
    advice=Advice("Do not delete the znode.", (remedies.WRITE_TOPIC_BACK,)),
)
