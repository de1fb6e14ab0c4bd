"""Alerts on Kontrast itself, if it cannot see the cluster or refuses a znode or record."""

from __future__ import annotations

from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, SECOND_MS, page, warn
from controller.says.remedies.remedy import Advice

REPLICA_DISCONNECTED: Final = page(
    name="ReplicaDisconnected",
    headline="Kontrast has lost ZooKeeper",
    step="check ZooKeeper",
    advice=Advice("Look at the log of `kontrast watch`, and check whether ZooKeeper answers other clients."),
    patience_ms=10 * SECOND_MS,
    of_replica=True,
)
REPLICA_LACKS_RECORDS: Final = page(
    name="ReplicaLacksRecords",
    headline="Kontrast lost records",
    step="check their retention",
    advice=Advice(
        "Look at the retention of the stream between `kontrast watch` and `kontrast stream`. `kontrast stream` has "
        "requested a complete read."
    ),
    of_replica=True,
)
CLUSTER_QUARANTINED: Final = page(
    name="ClusterQuarantined",
    headline="Kontrast failed over records",
    step="wait for a new read",
    advice=Advice(
        "Wait for the complete read that `kontrast stream` has requested. Keep the rows of the output `refused`, "
        "and report them."
    ),
    of_replica=True,
)
OLDER_GENERATION: Final = page(
    name="OlderGeneration",
    headline="two `kontrast watch` run",
    step="end one",
    advice=Advice(
        "Let only one `kontrast watch` run for the cluster, or elect one with election_zookeeper. If only one runs, "
        "the clock of its host was set back. Correct the clock and start `kontrast watch` again."
    ),
    of_replica=True,
)
ZOOKEEPER_ROLLED_BACK: Final = page(
    name="ZooKeeperRolledBack",
    headline="ZooKeeper lost changes",
    step="look for newer data",
    advice=Advice("Keep newer ZooKeeper data if a server still has it. Then restart the brokers that cannot connect."),
    lasts_ms=30 * MINUTE_MS,
    of_replica=True,
)
ZNODE_REFUSED: Final = warn(
    name="ZnodeRefused",
    headline="Kafka cannot read a znode",
    step="repair it",
    advice=Advice("Mend the znode before the next failover or restart of a broker, because Kafka reads it then."),
    several="{count} znodes cannot be read{names}: `kontrast lint` has the effect and the step of each",
    lasts_ms=10 * MINUTE_MS,
    of_replica=True,
)
CLOCK_STEPPED: Final = warn(
    name="ClockStepped",
    headline="the clock of `kontrast watch` was set",
    step="check its clock",
    advice=Advice("Check that NTP keeps the clock of its host (`chronyc tracking`, `timedatectl`)."),
    lasts_ms=30 * MINUTE_MS,
    of_replica=True,
)
