"""Alerts on the watched ZooKeeper ensemble, from its servers' answers."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_row import Severity
from controller.says.alert_kinds.kind import MINUTE_MS, SECOND_MS, AlertKind
from controller.says.remedies.remedy import Advice

ZOOKEEPER_NO_QUORUM: Final = AlertKind(
    name="ZooKeeperNoQuorum",
    severity=Severity.PAGE,
    headline="no ZooKeeper server serves",
    step="start the servers",
    meaning="No ZooKeeper server serves clients.",
    advice=Advice(
        "Start the named servers. A majority of the voting servers must run and reach each other.",
    ),
    patience_ms=10 * SECOND_MS,
    of_replica=True,
)
ZOOKEEPER_NO_ENSEMBLE: Final = AlertKind(
    name="ZooKeeperNoEnsemble",
    severity=Severity.PAGE,
    headline="ZooKeeper servers are no ensemble",
    step="name one ensemble",
    meaning="The address names servers that are not one ensemble, each with data of its own.",
    advice=Advice(
        "Give Kontrast and the brokers the servers of one ensemble. If all should be one, do not join them while "
        "brokers run: one half's znodes are lost. Find out first which half the brokers use, then give each server "
        "the server.N lines of all.",
    ),
    patience_ms=10 * SECOND_MS,
    of_replica=True,
)
ZOOKEEPER_QUORUM_AT_RISK: Final = AlertKind(
    name="ZooKeeperQuorumAtRisk",
    severity=Severity.WARN,
    headline="one loss stops ZooKeeper",
    step="start the lost server",
    meaning="Just enough ZooKeeper servers are in sync.",
    advice=Advice(
        "Start the named server. Restart no other server before it is in sync.",
    ),
    patience_ms=MINUTE_MS,
    of_replica=True,
)
ZOOKEEPER_SERVER_LAGS: Final = AlertKind(
    name="ZooKeeperServerLags",
    severity=Severity.WARN,
    headline="a ZooKeeper server lags",
    step="look at {subject}",
    meaning="A ZooKeeper server does not serve, or is behind the leader.",
    advice=Advice(
        "Read the server's log. Check its disk, its pauses and its network, then restart it.",
    ),
    patience_ms=MINUTE_MS,
    of_replica=True,
)
ZOOKEEPER_SLOW: Final = AlertKind(
    name="ZooKeeperSlow",
    severity=Severity.WARN,
    headline="ZooKeeper is slow",
    step="look at its disks",
    meaning="A ZooKeeper server forces its log slowly, answers late, or has a queue.",
    advice=Advice(
        "Give the transaction log a disk of its own, and look for pauses of the server's Java.",
    ),
    patience_ms=MINUTE_MS,
    of_replica=True,
)
ZXID_ROLLOVER: Final = AlertKind(
    name="ZxidRollover",
    severity=Severity.WARN,
    headline="ZooKeeper's counter is nearly full",
    step="plan an election",
    meaning="ZooKeeper's counter of changes is full within a day.",
    advice=Advice(
        "Restart ZooKeeper's leader at a quiet time. The next leader counts from zero.",
    ),
    of_replica=True,
)
ZNODE_NEAR_LIMIT: Final = AlertKind(
    name="ZnodeNearLimit",
    severity=Severity.WARN,
    headline="{subject} near its limit",
    step="remove entries",
    meaning="A znode or a list of children approaches jute.maxbuffer.",
    advice=Advice(
        "Find out who writes the znode and remove entries. Or raise jute.maxbuffer on all servers, then on all "
        "brokers.",
    ),
    of_replica=True,
)
SESSIONS_EXPIRED: Final = AlertKind(
    name="SessionsExpiredAfterPause",
    severity=Severity.WARN,
    headline="brokers lost their sessions",
    step="find ZooKeeper's pause",
    meaning="Brokers lost their sessions after ZooKeeper paused.",
    advice=Advice(
        "Find the pause in the server's log (fsync, garbage collection, machine). Check that the brokers are "
        "registered again.",
    ),
    lasts_ms=10 * MINUTE_MS,
)
BROKER_BLOCKED: Final = AlertKind(
    name="BrokerBlockedByOldSession",
    severity=Severity.WARN,
    headline="{brokers} cannot register",
    step="wait for the old session",
    meaning="A broker's registration belongs to a session without a connection (KAFKA-14845).",
    advice=Advice(
        "Wait until the session expires. If the broker has given up by then, restart it.",
    ),
)
