"""The kinds of alerts: what each says, how urgent it is, and what a person can do about it.

Here belongs the catalogue, from which docs/alerts.md is made; each kind has a runbook in docs/runbooks/. When an alert
of a kind is open follows from `conditions` and `happenings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from controller.contract.alert_row import Severity

_SECOND_MS: Final = 1_000
_MINUTE_MS: Final = 60_000


class AlertKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of alert.

    What happened at a moment stays open for `lasts_ms` after it happened last; everything else while it is the case,
    once it has been for `patience_ms`.
    """

    section: str  # of the catalogue
    name: str
    severity: Severity
    meaning: str
    action: str
    expected: str | None = None  # of the controller
    patience_ms: int = 0
    patience_else: str | None = None  # where a condition has another: when, and which
    lasts_ms: int = 0
    several: str = ""  # the sentence where it happened to more than one, with {count} and {names} of them
    divergence: str | None = None  # the count of divergences that each adds to
    of_replica: bool = False  # about Kontrast itself: it stays known when the cluster is not


_KINDS: Final[dict[str, AlertKind]] = {}
_SECTIONS: Final[list[str]] = []  # a kind belongs to the newest


def _kind(name: str, severity: Severity, meaning: str, action: str, **more: object) -> AlertKind:
    said = {"name": name, "severity": severity, "meaning": meaning, "action": action}
    _KINDS[name] = kind = msgspec.convert({"section": _SECTIONS[-1], **said, **more}, AlertKind)
    return kind


_SECTIONS.append("Partitions")

PARTITIONS_OFFLINE = _kind(
    "PartitionsOffline",
    Severity.PAGE,
    "Partitions have no live in-sync replica: clients can neither produce to nor consume from them until a broker "
    "returns.",
    "Bring back one of the brokers that are named: nothing is lost then. An unclean election makes them usable with "
    "what another replica has, and loses what only the in-sync replicas had.",
    expected="nothing: the controller may elect no replica that is not in sync",
    patience_else="after 5 s where an in-sync replica is back and only has to be elected",
)
PARTITIONS_LEADERLESS = _kind(
    "PartitionsLeaderless",
    Severity.PAGE,
    "Partitions have no leader although an in-sync replica is live, and nothing makes the controller elect it.",
    "Move the controller (delete /controller): a new one elects an in-sync replica. A preferred election "
    "(kafka-leader-election.sh) elects one too where the preferred replica is in sync.",
    expected="nothing until a broker comes or goes, or until its next failover",
    patience_ms=10 * _SECOND_MS,
)
ELECTION_DUE = _kind(
    "ElectionDue",
    Severity.WARN,
    "Partitions are leaderless for the moment: their leader is gone, and the controller has yet to elect another.",
    "Wait for some seconds. If it lasts, the controller is the suspect: look at its broker's log.",
    expected="to elect another in-sync replica at once",
    patience_ms=5 * _SECOND_MS,
)
CREATION_DUE = _kind(
    "CreationDue",
    Severity.WARN,
    "Partitions are assigned, but the controller has not written their first state.",
    "Wait for some seconds. A topic that was removed by hand and made again waits for the next failover: delete "
    "/controller. Else the controller is the suspect: look at its broker's log.",
    expected="to write their first state at once",
    patience_ms=10 * _SECOND_MS,
)
UNDER_MIN_ISR = _kind(
    "PartitionsUnderMinIsr",
    Severity.PAGE,
    "Partitions have fewer in-sync replicas than min.insync.replicas asks for: writes with acks=all fail.",
    "Bring back the missing replicas. If that takes long, lower min.insync.replicas of the topics, knowing the risk.",
)
UNDER_REPLICATED = _kind(
    "PartitionsUnderReplicated",
    Severity.WARN,
    "Replicas on live brokers are not in sync: they lag, or catch up after a restart.",
    "Look at the load, the disks and the log of the brokers that are named. What a dead broker lacks is in the alert "
    "of that broker.",
    patience_ms=_MINUTE_MS,
)
UNCLEAN_ELECTION = _kind(
    "UncleanElection",
    Severity.PAGE,
    "A replica that was not in sync was elected leader: records that it did not have are lost.",
    "Find out with the producers what was written since the replica fell out of sync. If this was not wanted, set "
    "unclean.leader.election.enable=false.",
    several="records of {count} partitions{names} are lost: replicas that were not in sync were elected leader",
    lasts_ms=30 * _MINUTE_MS,
)

_SECTIONS.append("Brokers")

BROKER_CRASHED = _kind(
    "BrokerCrashed",
    Severity.PAGE,
    "A broker left without having shut down: it crashed, hangs, or is cut off from ZooKeeper.",
    "Look at the broker's machine and log, and start it again.",
    expected="to elect other leaders for what it led, and to drop it from every ISR",
)
BROKER_SHUT_DOWN = _kind(
    "BrokerShutDown",
    Severity.INFO,
    "A broker shut down in order and is not back yet.",
    "Nothing, if work on it is planned; else start it.",
    expected="nothing more: leaders were moved before it left",
)
BROKER_ABSENT = _kind(
    "BrokerAbsent",
    Severity.WARN,
    "A broker hosts replicas and was never seen since Kontrast follows this cluster.",
    "Start it, or reassign its replicas to other brokers if it is gone for good.",
    patience_ms=10 * _SECOND_MS,
)
BROKER_BOUNCED = _kind(
    "BrokerBounced",
    Severity.WARN,
    "A broker restarted, or lost its session, and was back at once: it registered again without having been missed.",
    "Look at the broker's log for the reason: an expired session, a long pause, a crash.",
    lasts_ms=10 * _MINUTE_MS,
)
BROKER_FLAPPING = _kind(
    "BrokerFlapping",
    Severity.PAGE,
    "A broker keeps leaving without having shut down.",
    "Find out why it loses its session (long pauses, network, disk) before it is started again: each return costs "
    "elections and catching up.",
)
LOG_DIR_FAILED = _kind(
    "LogDirFailed",
    Severity.PAGE,
    "A log directory of a live broker failed: the replicas in it are offline.",
    "Replace the disk, then restart the broker.",
    expected="to take its replicas for offline and to elect others",
    lasts_ms=30 * _MINUTE_MS,
)

_SECTIONS.append("The controller")

NO_CONTROLLER = _kind(
    "NoController",
    Severity.PAGE,
    "No broker is controller: dead leaders are not replaced, topics are neither created nor deleted.",
    "Look at the brokers' connections to ZooKeeper and at their logs: any live broker should make /controller.",
    expected="a live broker makes /controller at once",
    patience_ms=10 * _SECOND_MS,
)
CONTROLLER_MOVED = _kind(
    "ControllerMoved",
    Severity.INFO,
    "Another broker became controller.",
    "Nothing, if it happens once; look at why the last controller lost /controller.",
    lasts_ms=5 * _MINUTE_MS,
)
CONTROLLER_FLAPPING = _kind(
    "ControllerFlapping",
    Severity.PAGE,
    "Controllers follow one another: none stays long enough to replace dead leaders.",
    "Look at the brokers' logs for what ends their terms; a /admin/preferred_replica_election that names a partition "
    "without a state must be deleted.",
)
GHOST_CONTROLLER = _kind(
    "GhostController",
    Severity.PAGE,
    "No broker acts as controller, and none will: /controller names a broker that never took over. Or the controller "
    "is not registered, and brokers do not find it.",
    "Delete /controller, so that the brokers elect one. Restart a broker that lives and is not registered.",
    expected="nothing: nobody who could act knows that it is asked to",
    patience_else="after 10 s where it was elected and only its broker's registration is missing",
)
CONTROLLER_OVERDUE = _kind(
    "ControllerOverdue",
    Severity.PAGE,
    "The controller has not written what it must: it is slow, stuck, or paused.",
    "Look at its broker for long pauses and at its log. If it is stuck, delete /controller or restart that broker.",
    # A broker's session lasts for 18 s by default (zookeeper.session.timeout.ms from 2.5 on): a pause that is shorter
    # is over by itself, and a longer one makes another broker controller.
    patience_ms=20 * _SECOND_MS,
    patience_else="after 10 s where it has written what came later",
)
CONTROLLER_POISONED = _kind(
    "ControllerPoisoned",
    Severity.PAGE,
    "The controller's process can move no replica (KAFKA-12315), because an earlier term ended among removals from an "
    "ISR: dead replicas stay in the ISR, and deletions do not end.",
    "Restart that broker.",
    expected="to drop dead replicas from their ISRs, which it cannot",
)
CONTROLLER_NOT_PREFERRED = _kind(
    "ControllerNotPreferred",
    Severity.WARN,
    "A broker that was not chosen for it is controller.",
    "Delete /controller at a quiet moment; the next election may take several tries.",
    patience_ms=_MINUTE_MS,
)
STALE_CONTROLLER = _kind(
    "StaleController",
    Severity.WARN,
    "A controller of an older epoch went on writing: brokers may follow either of two.",
    "Look at that broker for long pauses; restart it if it goes on. Releases from 2.1 on fence these writes.",
    several="a deposed controller wrote {count} partitions{names}: brokers may follow either controller",
    lasts_ms=10 * _MINUTE_MS,
    divergence="stale_controller_epoch",
)
CONTROLLER_EPOCH_WENT_BACK = _kind(
    "ControllerEpochWentBack",
    Severity.PAGE,
    "/controller_epoch went back: it was edited, or ZooKeeper was restored from an old copy. Brokers refuse what a "
    "controller of an older epoch asks of them.",
    "Find out who wrote it. Set it to what it was or higher, then delete /controller: the next controller takes one "
    "more than that.",
    lasts_ms=30 * _MINUTE_MS,
    divergence="controller_epoch_went_back",
)
DUPLICATE_TOPIC_ID = _kind(
    "DuplicateTopicId",
    Severity.PAGE,
    "Two topics have the same id: no broker can become controller.",
    "Give each topic's znode the id that its replicas have on disk (partition.metadata): the brokers elect on and on, "
    "and the next one can load it.",
)
ELECTION_STORM = _kind(
    "ElectionStorm",
    Severity.WARN,
    "Leaders are elected over and over: more elections in a minute than twice the number of partitions, and "
    "more than 100.",
    "Look for brokers that come and go, and for tools that ask for elections.",
)
MIGRATION_STARTED = _kind(
    "MigrationStarted",
    Severity.INFO,
    "The cluster migrates to KRaft: its controller is none of ZooKeeper's, and Kontrast predicts nothing of it.",
    "Nothing, if the migration is planned; watch KRaft's own metrics. A persistent /controller in a cluster that "
    "knows no KRaft keeps every broker from being controller: delete it.",
)
NOTIFICATION_BACKLOG = _kind(
    "NotificationBacklog",
    Severity.WARN,
    "The controller does not read notifications of ISR changes: brokers and clients know old ISRs.",
    "Look at the controller's broker; moving the controller drops them.",
    expected="to read and remove them within seconds",
    patience_ms=30 * _SECOND_MS,
)

_SECTIONS.append("Topics")

DELETION_STUCK = _kind(
    "DeletionStuck",
    Severity.WARN,
    "Deletions of topics wait for brokers that have not deleted their replicas.",
    "Bring back the brokers that are named; a deletion goes on when they return. One that is live and does not delete "
    "is asked again once it was restarted, or after a failover; its log says why it did not.",
    expected="to ask the brokers again when they return, then to remove the topics",
    patience_ms=_MINUTE_MS,
    patience_else="after 5 min where all brokers that it waits for are live",
)
REASSIGNMENT_STUCK = _kind(
    "ReassignmentStuck",
    Severity.WARN,
    "Reassignments do not end: their new replicas are not in sync.",
    "Bring back the brokers that are named, or cancel the reassignment (kafka-reassign-partitions.sh --cancel).",
    expected="to complete them once the new replicas are in sync",
    patience_ms=_MINUTE_MS,
    patience_else="after 30 min where the new replicas are on live brokers and may still copy",
)
INVALID_REASSIGNMENT = _kind(
    "InvalidReassignment",
    Severity.WARN,
    "/admin/reassign_partitions stays although nothing is being reassigned: it blocks the next reassignment there.",
    "Delete /admin/reassign_partitions, then /controller: until a failover the controller does not see the next one. "
    "Ask again with partitions and brokers that exist, best by --bootstrap-server (from 2.6 on), which checks them.",
    expected="to remove it when everything in it is done, which it never is",
    patience_ms=_MINUTE_MS,
)
PREFERRED_IMBALANCE = _kind(
    "PreferredImbalance",
    Severity.INFO,
    "More leaders than the configured share are not on their preferred brokers, for longer than the controller takes "
    "to bring them back.",
    "Run a preferred election (kafka-leader-election.sh), or find out why the preferred replicas are not in sync.",
    patience_else="after 10 min; where auto.leader.rebalance.enable is true, after two of its intervals and a minute "
    "(11 min by default)",
)
TOPIC_WITH_ONE_REPLICA = _kind(
    "TopicWithOneReplica",
    Severity.INFO,
    "A topic was created with partitions of one replica: each goes offline with its broker.",
    "Reassign it to more replicas, if its data matters.",
    several="{count} topics were created with partitions of one replica{names}: each goes offline with its broker",
    lasts_ms=10 * _MINUTE_MS,
)
TOPIC_WITH_DEAD_REPLICA = _kind(
    "TopicWithDeadReplica",
    Severity.WARN,
    "A topic was created with replicas on brokers that are not live: it starts with fewer replicas.",
    "Bring back the brokers that are named, or reassign the topic.",
    several="{count} topics were created with replicas on brokers that are not live{names}: they start with fewer "
    "replicas",
    lasts_ms=10 * _MINUTE_MS,
)
TOPIC_REMOVED_BY_HAND = _kind(
    "TopicRemovedByHand",
    Severity.WARN,
    "A topic's znode was removed by hand: brokers keep its replicas and go on serving them.",
    "Create it again, then delete it in order: by /admin/delete_topics or a tool.",
    several="the znodes of {count} topics were removed by hand{names}: brokers keep and serve their replicas",
    lasts_ms=10 * _MINUTE_MS,
    divergence="topic_removed_by_hand",
)
ASSIGNMENT_EDITED = _kind(
    "AssignmentEdited",
    Severity.WARN,
    "A topic's assignment was edited by hand: controller and brokers go by the old one until the next failover.",
    "Set it back, and ask for a reassignment instead.",
    several="the assignments of {count} partitions were edited by hand{names}: they are without effect until the next "
    "failover",
    expected="to ignore it until the next failover",
    lasts_ms=10 * _MINUTE_MS,
    divergence="assignment_edited",
)
DELETION_GIVEN_UP = _kind(
    "DeletionGivenUp",
    Severity.WARN,
    "A topic's deletion was taken back by hand while it was under way: part of its data may be gone.",
    "Ask for the deletion again. To keep what is left, delete /controller at once: until a failover the controller "
    "goes on with what it began.",
    several="the deletions of {count} topics were taken back by hand while under way{names}: data may be gone, and the "
    "controller goes on deleting until a failover",
    lasts_ms=10 * _MINUTE_MS,
    divergence="deletion_given_up",
)
MISSING_TOPIC_ID = _kind(
    "MissingTopicId",
    Severity.INFO,
    "Topics have no id although others have one: the controller owes them one.",
    "Look at how these topics were created; a failover gives them ids.",
    expected="to write their ids at once",
    patience_ms=5 * _MINUTE_MS,
)

_SECTIONS.append("Writes that differ from what was predicted")

DIFFERENT_LEADER = _kind(
    "DifferentLeader",
    Severity.WARN,
    "A partition got another leader than the controller's rules give it.",
    "Compare the two values in the evidence: the state may have been edited, or the controller knew more.",
    several="{count} partitions got another leader than the controller's rules give{names}",
    lasts_ms=10 * _MINUTE_MS,
    divergence="different_leader",
)
UNEXPECTED_ISR = _kind(
    "UnexpectedIsr",
    Severity.INFO,
    "A partition got the leader that was predicted, and another ISR than the controller's rules give it.",
    "Compare the two values in the evidence.",
    several="{count} partitions got another ISR than the controller's rules give{names}",
    lasts_ms=10 * _MINUTE_MS,
    divergence="unexpected_isr",
)
UNEXPLAINED_WRITE = _kind(
    "UnexplainedWrite",
    Severity.INFO,
    "A partition's state was written, and nothing that the controller does explains it.",
    "Compare the two values in the evidence: the state may have been edited.",
    several="{count} partitions were written{names}, and nothing that the controller does explains it",
    lasts_ms=10 * _MINUTE_MS,
    divergence="unexplained_write",
)
ILLEGAL_STATE = _kind(
    "IllegalState",
    Severity.WARN,
    "A partition's state in ZooKeeper is one that no controller writes.",
    "Find out who wrote it. A failover makes the controller load it as it is.",
    several="{count} partitions have a state that no controller writes{names}; find out who wrote it",
    lasts_ms=10 * _MINUTE_MS,
    divergence="illegal_state",
)
ORPHAN_STATE = _kind(
    "OrphanState",
    Severity.INFO,
    "A partition has a state but is not in its topic's assignment.",
    "Look at the topic's znode: it may have been edited, or be half deleted.",
    several="{count} partitions have a state but are not in their topics' assignments{names}: the topics may be half "
    "deleted, or were edited",
    lasts_ms=10 * _MINUTE_MS,
    divergence="orphan_state",
)
WRITE_NEVER_CAME = _kind(
    "WriteNeverCame",
    Severity.INFO,
    "The controller never wrote what was predicted, and has done what came later.",
    "Compare with the controller's log: Kontrast may have predicted what the controller had no reason for.",
    several="the controller never wrote the states of {count} partitions{names}; it has done what came later",
    lasts_ms=10 * _MINUTE_MS,
    divergence="write_never_came",
)

_SECTIONS.append("Kontrast itself")

REPLICA_DISCONNECTED = _kind(
    "ReplicaDisconnected",
    Severity.PAGE,
    "`kontrast watch` has lost ZooKeeper: what Kontrast shows of the cluster is old, and its other alerts are unknown.",
    "Look at the log of `kontrast watch`, and whether ZooKeeper answers others.",
    patience_ms=10 * _SECOND_MS,
    of_replica=True,
)
REPLICA_LACKS_RECORDS = _kind(
    "ReplicaLacksRecords",
    Severity.PAGE,
    "Records of `kontrast watch` were lost on their way: nothing more is known of the cluster until it is read again.",
    "Look at the retention of the stream between `kontrast watch` and `kontrast stream`, which asks for a complete "
    "read by itself.",
    of_replica=True,
)
CLUSTER_QUARANTINED = _kind(
    "ClusterQuarantined",
    Severity.PAGE,
    "Kontrast failed over records of this cluster and knows nothing of it until it is read again; others are followed.",
    "Wait for the complete read that `kontrast stream` asks for. Keep the rows of the output `refused`, and report "
    "them.",
    of_replica=True,
)
OLDER_GENERATION = _kind(
    "OlderGeneration",
    Severity.PAGE,
    "What one `kontrast watch` sees is refused: its generation is older than one that was followed before.",
    "Let one `kontrast watch` run for the cluster, or elect one with election_zookeeper. If there is only one, the "
    "clock of its host was set back: set it right and start `kontrast watch` again.",
    of_replica=True,
)
ZNODE_REFUSED = _kind(
    "ZnodeRefused",
    Severity.WARN,
    "A znode could not be read; its last good value stays in force.",
    "Look at the row in the output `refused`, which has its path and its bytes.",
    several="{count} znodes cannot be read{names}: Kontrast goes by their last good values",
    lasts_ms=10 * _MINUTE_MS,
    of_replica=True,
)
CLOCK_STEPPED = _kind(
    "ClockStepped",
    Severity.WARN,
    "The wall clock of `kontrast watch` was set by more than a second, or the one that took over has a clock that is "
    "behind: times that were shown before are off by as much. Deadlines go by another clock.",
    "Look whether NTP keeps the clock of its host (`chronyc tracking`, `timedatectl`).",
    lasts_ms=30 * _MINUTE_MS,
    of_replica=True,
)

ALERT_KINDS: Final[Mapping[str, AlertKind]] = MappingProxyType(_KINDS)
