"""Alerts on partitions without a leader, with too few in-sync replicas, or with lost records."""

from __future__ import annotations

from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, SECOND_MS, page, warn
from controller.says.remedies import controllership, partitions as remedies
from controller.says.remedies.remedy import Advice, Need, Task

PARTITIONS_OFFLINE: Final = page(
    name="PartitionsOffline",
    headline="{partitions} offline",
    step="start the named brokers",
    advice=Advice(
        steps=(Task("Bring back one of the named brokers, so that no record is lost.", (Need.BROKERS_AWAY,)),),
        remedies=(remedies.ELECT_UNCLEAN,),
    ),
    expected="The controller elects a replica out of sync only if unclean.leader.election.enable is true.",
    patience_else="after 5 s where an in-sync replica is back and only has to be elected",
)
PARTITIONS_LEADERLESS: Final = page(
    name="PartitionsLeaderless",
    headline="{partitions} without a leader",
    step="delete /controller",
    advice=Advice(
        remedies=(remedies.ELECT_PREFERRED, controllership.MOVE_CONTROLLER.given("another replica is in sync"))
    ),
    expected="The controller elects no leader until a broker registers or leaves, or until a failover.",
    patience_ms=10 * SECOND_MS,
)
ELECTION_DUE: Final = warn(
    name="ElectionDue",
    headline="{partitions} without a leader",
    step="wait for the controller",
    advice=Advice(
        steps=(
            Task("Wait for some seconds.", (Need.CONTROLLER_ACTS,)),
            Task("If the problem lasts, look at the log of the controller's broker.", ()),
        )
    ),
    expected="The controller elects another in-sync replica at once.",
    patience_ms=5 * SECOND_MS,
)
CREATION_DUE: Final = warn(
    name="CreationDue",
    headline="{partitions} not created yet",
    step="wait for the controller",
    advice=Advice(remedies=(controllership.MOVE_CONTROLLER.given("no broker has the partitions"),)),
    expected="The controller writes the first states of new partitions at once. It does not write lost states again.",
    patience_ms=10 * SECOND_MS,
)
UNDER_MIN_ISR: Final = page(
    name="PartitionsUnderMinIsr",
    headline="{partitions} rejecting acks=all",
    step="bring back replicas",
    advice=Advice(
        steps=(
            Task("Bring back the missing replicas.", (Need.BROKERS_AWAY,)),
            Task("Look at the disks and the log of the lagging brokers.", (Need.BROKERS_LIVE,)),
        ),
        remedies=(remedies.LOWER_MIN_ISR.given("writes cannot wait"),),
    ),
)
UNDER_REPLICATED: Final = warn(
    name="PartitionsUnderReplicated",
    headline="{partitions} under-replicated",
    step="look at {brokers}",
    advice=Advice(
        "Look at the load, the disks and the log of the named brokers. A dead broker's replicas are in the alert of "
        "that broker."
    ),
    patience_ms=MINUTE_MS,
)
UNCLEAN_ELECTION: Final = page(
    name="UncleanElection",
    headline="{partitions} may have lost records",
    step="ask the producers",
    advice=Advice(
        "Find out with the producers which records they wrote since the replica fell out of sync.",
        (remedies.FORBID_UNCLEAN.given("this was not wanted"),),
    ),
    several="{count} partitions{names} may have lost records: replicas that were not in sync became leaders",
    lasts_ms=30 * MINUTE_MS,
)
