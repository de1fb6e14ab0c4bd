"""Alerts on partitions: no leader, too few in-sync replicas, lost records."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, SECOND_MS, AlertKind
from controller.contract.alert_row import Severity
from controller.contract.remedies import controllership, partitions as remedies
from controller.contract.remedies.remedy import Advice

PARTITIONS_OFFLINE: Final = AlertKind(
    name="PartitionsOffline",
    severity=Severity.PAGE,
    meaning="Partitions have no live in-sync replica. Clients can neither produce nor consume until a broker returns.",
    advice=Advice(
        "Bring back one of the named brokers, so that no record is lost.",
        (remedies.ELECT_UNCLEAN,),
    ),
    expected="to elect only replicas that are in sync",
    patience_else="after 5 s where an in-sync replica is back and only has to be elected",
)
PARTITIONS_LEADERLESS: Final = AlertKind(
    name="PartitionsLeaderless",
    severity=Severity.PAGE,
    meaning="Partitions have no leader although an in-sync replica is live, and the controller has no reason to elect "
    "it.",
    advice=Advice(
        remedies=(remedies.ELECT_PREFERRED, controllership.MOVE_CONTROLLER.given("another replica is in sync"))
    ),
    expected="no election until a broker registers or leaves, or until its next failover",
    patience_ms=10 * SECOND_MS,
)
ELECTION_DUE: Final = AlertKind(
    name="ElectionDue",
    severity=Severity.WARN,
    meaning="Partitions are leaderless for the moment. Their leader is gone, and the controller has yet to elect "
    "another.",
    advice=Advice(
        "Wait for some seconds. If the problem lasts, look at the log of the controller's broker.",
    ),
    expected="to elect another in-sync replica at once",
    patience_ms=5 * SECOND_MS,
)
CREATION_DUE: Final = AlertKind(
    name="CreationDue",
    severity=Severity.WARN,
    meaning="Partitions are assigned, but the controller has not written their first state.",
    advice=Advice(
        "Wait for some seconds, then look at the log of the controller's broker.",
        (controllership.MOVE_CONTROLLER.given("the controller acts and the partitions still wait"),),
    ),
    expected="to write their first state at once",
    patience_ms=10 * SECOND_MS,
)
UNDER_MIN_ISR: Final = AlertKind(
    name="PartitionsUnderMinIsr",
    severity=Severity.PAGE,
    meaning="Partitions have fewer in-sync replicas than min.insync.replicas asks for. Writes with acks=all fail.",
    advice=Advice(
        "Bring back the missing replicas.",
        (remedies.LOWER_MIN_ISR.given("writes cannot wait"),),
    ),
)
UNDER_REPLICATED: Final = AlertKind(
    name="PartitionsUnderReplicated",
    severity=Severity.WARN,
    meaning="Replicas on live brokers are not in sync. They lag, or catch up after a restart.",
    advice=Advice(
        "Look at the load, the disks and the log of the named brokers. A dead broker's replicas are in the alert of "
        "that broker.",
    ),
    patience_ms=MINUTE_MS,
)
UNCLEAN_ELECTION: Final = AlertKind(
    name="UncleanElection",
    severity=Severity.PAGE,
    meaning="A replica that was not in sync became leader. Records that it did not have are lost.",
    advice=Advice(
        "Find out with the producers which records they wrote since the replica fell out of sync.",
        (remedies.FORBID_UNCLEAN.given("this was not wanted"),),
    ),
    several="{count} partitions{names} lost records: replicas that were not in sync became leaders",
    lasts_ms=30 * MINUTE_MS,
)
