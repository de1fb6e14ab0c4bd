"""Alerts on partitions: no leader, too few in-sync replicas, lost records."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, SECOND_MS, AlertKind
from controller.contract.alert_row import Severity

PARTITIONS_OFFLINE: Final = AlertKind(
    name="PartitionsOffline",
    severity=Severity.PAGE,
    meaning="Partitions have no live in-sync replica: clients can neither produce to nor consume from them until a "
    "broker returns.",
    action="Bring back one of the brokers that are named: nothing is lost then. An unclean election makes them usable "
    "with what another replica has, and loses what only the in-sync replicas had.",
    expected="nothing: the controller may elect no replica that is not in sync",
    patience_else="after 5 s where an in-sync replica is back and only has to be elected",
)
PARTITIONS_LEADERLESS: Final = AlertKind(
    name="PartitionsLeaderless",
    severity=Severity.PAGE,
    meaning="Partitions have no leader although an in-sync replica is live, and nothing makes the controller elect it.",
    action="Move the controller (delete /controller): a new one elects an in-sync replica. A preferred election "
    "(kafka-leader-election.sh) elects one too where the preferred replica is in sync.",
    expected="nothing until a broker comes or goes, or until its next failover",
    patience_ms=10 * SECOND_MS,
)
ELECTION_DUE: Final = AlertKind(
    name="ElectionDue",
    severity=Severity.WARN,
    meaning="Partitions are leaderless for the moment: their leader is gone, and the controller has yet to elect "
    "another.",
    action="Wait for some seconds. If it lasts, the controller is the suspect: look at its broker's log.",
    expected="to elect another in-sync replica at once",
    patience_ms=5 * SECOND_MS,
)
CREATION_DUE: Final = AlertKind(
    name="CreationDue",
    severity=Severity.WARN,
    meaning="Partitions are assigned, but the controller has not written their first state.",
    action="Wait for some seconds. A topic that was removed by hand and made again waits for the next failover: delete "
    "/controller. Else the controller is the suspect: look at its broker's log.",
    expected="to write their first state at once",
    patience_ms=10 * SECOND_MS,
)
UNDER_MIN_ISR: Final = AlertKind(
    name="PartitionsUnderMinIsr",
    severity=Severity.PAGE,
    meaning="Partitions have fewer in-sync replicas than min.insync.replicas asks for: writes with acks=all fail.",
    action="Bring back the missing replicas. If that takes long, lower min.insync.replicas of the topics, knowing the "
    "risk.",
)
UNDER_REPLICATED: Final = AlertKind(
    name="PartitionsUnderReplicated",
    severity=Severity.WARN,
    meaning="Replicas on live brokers are not in sync: they lag, or catch up after a restart.",
    action="Look at the load, the disks and the log of the brokers that are named. What a dead broker lacks is in the "
    "alert of that broker.",
    patience_ms=MINUTE_MS,
)
UNCLEAN_ELECTION: Final = AlertKind(
    name="UncleanElection",
    severity=Severity.PAGE,
    meaning="A replica that was not in sync was elected leader: records that it did not have are lost.",
    action="Find out with the producers what was written since the replica fell out of sync. If this was not wanted, "
    "set unclean.leader.election.enable=false.",
    several="records of {count} partitions{names} are lost: replicas that were not in sync were elected leader",
    lasts_ms=30 * MINUTE_MS,
)
