"""Alerts on Kontrast itself: the cluster cannot be seen, or what is read is refused."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, SECOND_MS, AlertKind
from controller.contract.alert_row import Severity

REPLICA_DISCONNECTED: Final = AlertKind(
    name="ReplicaDisconnected",
    severity=Severity.PAGE,
    meaning="`kontrast watch` has lost ZooKeeper: what Kontrast shows of the cluster is old, and its other alerts are "
    "unknown.",
    action="Look at the log of `kontrast watch`, and whether ZooKeeper answers others.",
    patience_ms=10 * SECOND_MS,
    of_replica=True,
)
REPLICA_LACKS_RECORDS: Final = AlertKind(
    name="ReplicaLacksRecords",
    severity=Severity.PAGE,
    meaning="Records of `kontrast watch` were lost on their way: nothing more is known of the cluster until it is read "
    "again.",
    action="Look at the retention of the stream between `kontrast watch` and `kontrast stream`, which asks for a "
    "complete read by itself.",
    of_replica=True,
)
CLUSTER_QUARANTINED: Final = AlertKind(
    name="ClusterQuarantined",
    severity=Severity.PAGE,
    meaning="Kontrast failed over records of this cluster and knows nothing of it until it is read again; others are "
    "followed.",
    action="Wait for the complete read that `kontrast stream` asks for. Keep the rows of the output `refused`, and "
    "report them.",
    of_replica=True,
)
OLDER_GENERATION: Final = AlertKind(
    name="OlderGeneration",
    severity=Severity.PAGE,
    meaning="What one `kontrast watch` sees is refused: its generation is older than one that was followed before.",
    action="Let one `kontrast watch` run for the cluster, or elect one with election_zookeeper. If there is only one, "
    "the clock of its host was set back: set it right and start `kontrast watch` again.",
    of_replica=True,
)
ZOOKEEPER_ROLLED_BACK: Final = AlertKind(
    name="ZooKeeperRolledBack",
    severity=Severity.PAGE,
    meaning="ZooKeeper lost changes that it had confirmed: it was restored from a backup or lost its data. Topics, "
    "leaders and epochs may be missing or old.",
    action="Keep newer ZooKeeper data if a server still has it. Then restart the brokers that cannot connect.",
    lasts_ms=30 * MINUTE_MS,
    of_replica=True,
)
ZNODE_REFUSED: Final = AlertKind(
    name="ZnodeRefused",
    severity=Severity.WARN,
    meaning="A znode could not be read; its last good value stays in force.",
    action="Look at the row in the output `refused`, which has its path and its bytes.",
    several="{count} znodes cannot be read{names}: Kontrast goes by their last good values",
    lasts_ms=10 * MINUTE_MS,
    of_replica=True,
)
CLOCK_STEPPED: Final = AlertKind(
    name="ClockStepped",
    severity=Severity.WARN,
    meaning="The wall clock of `kontrast watch` was set by more than a second, or the one that took over has a clock "
    "that is behind: times that were shown before are off by as much. Deadlines go by another clock.",
    action="Look whether NTP keeps the clock of its host (`chronyc tracking`, `timedatectl`).",
    lasts_ms=30 * MINUTE_MS,
    of_replica=True,
)
