"""Alerts on the watched ZooKeeper ensemble, from its servers' answers."""

from __future__ import annotations

from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, SECOND_MS, page, warn
from controller.says.remedies.remedy import Advice

ZOOKEEPER_NO_QUORUM: Final = page(
    name="ZooKeeperNoQuorum",
    headline="no ZooKeeper server serves",
    step="start the servers",
    advice=Advice("Start the named servers. A majority of the voting servers must run and reach each other."),
    patience_ms=10 * SECOND_MS,
    of_replica=True,
)
ZOOKEEPER_NO_ENSEMBLE: Final = page(
    name="ZooKeeperNoEnsemble",
    headline="ZooKeeper servers are no ensemble",
    step="name one ensemble",
    advice=Advice(
        "Give Kontrast and the brokers the servers of one ensemble. If all should be one, do not join them while "
        "brokers run: one half's znodes are lost. Find out first which half the brokers use, then give each server "
        "the server.N lines of all."
    ),
    patience_ms=10 * SECOND_MS,
    of_replica=True,
)
ZOOKEEPER_QUORUM_AT_RISK: Final = warn(
    name="ZooKeeperQuorumAtRisk",
    headline="one loss stops ZooKeeper",
    step="start the lost server",
    advice=Advice("Start the named server. Restart no other server before it is in sync."),
    patience_ms=MINUTE_MS,
    of_replica=True,
)
ZOOKEEPER_SERVER_LAGS: Final = warn(
    name="ZooKeeperServerLags",
    headline="a ZooKeeper server lags",
    step="look at {subject}",
    advice=Advice("Read the server's log. Check its disk, its pauses and its network, then restart it."),
    patience_ms=MINUTE_MS,
    of_replica=True,
)
ZOOKEEPER_SLOW: Final = warn(
    name="ZooKeeperSlow",
    headline="ZooKeeper is slow",
    step="look at its disks",
    advice=Advice("Give the transaction log a disk of its own, and look for pauses of the server's Java."),
    patience_ms=MINUTE_MS,
    of_replica=True,
)
ZXID_ROLLOVER: Final = warn(
    name="ZxidRollover",
    headline="ZooKeeper's counter is nearly full",
    step="plan an election",
    advice=Advice("Restart ZooKeeper's leader at a quiet time. The next leader counts from zero."),
    of_replica=True,
)
ZNODE_NEAR_LIMIT: Final = warn(
    name="ZnodeNearLimit",
    headline="{subject} near its limit",
    step="remove entries",
    advice=Advice(
        "Find out who writes the znode and remove entries. Or raise jute.maxbuffer on all servers, then on all brokers."
    ),
    of_replica=True,
)
SESSIONS_EXPIRED: Final = warn(
    name="SessionsExpiredAfterPause",
    headline="brokers lost their sessions",
    step="find ZooKeeper's pause",
    advice=Advice(
        "Find the pause in the server's log (fsync, garbage collection, machine). Check that the brokers are "
        "registered again."
    ),
    lasts_ms=10 * MINUTE_MS,
)
BROKER_BLOCKED: Final = warn(
    name="BrokerBlockedByOldSession",
    headline="{brokers} cannot register",
    step="wait for the old session",
    advice=Advice("Wait until the session expires. If the broker has given up by then, restart it."),
)
