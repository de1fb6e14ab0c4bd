"""Metrics of the watched ZooKeeper ensemble, as its servers describe it."""

from __future__ import annotations

from dashboards.catalogue.metric import of_cluster

ZOOKEEPER_SERVER_UP = of_cluster(
    "zookeeper_server_up",
    "1 while the server serves clients, else 0. Absent if it does not allow `srvr`, or never answered and only "
    "/zookeeper/config names it.",
    "server",
)
ZOOKEEPER_SERVER_MODE = of_cluster("zookeeper_server_mode", "1 for the server's mode.", "server", "mode")
ZOOKEEPER_REFUSED = of_cluster(
    "zookeeper_question_refused", "1 for a four-letter word that the server does not allow.", "server", "word"
)
ZOOKEEPER_VOTERS = of_cluster("zookeeper_voters", "Voting servers of the ensemble.")
ZOOKEEPER_VOTERS_IN_SYNC = of_cluster(
    "zookeeper_voters_in_sync",
    "Voting servers in sync, with the leader. By the leader's count if `mntr` is allowed, else those that serve.",
)
ZOOKEEPER_ANSWER = of_cluster(
    "zookeeper_server_answer_seconds", "Time of the server's answer to `srvr`.", "server", unit="seconds"
)
ZOOKEEPER_LATENCY = of_cluster(
    "zookeeper_server_latency_seconds",
    "Mean time of the server's requests since its start.",
    "server",
    unit="seconds",
)
ZOOKEEPER_FSYNC = of_cluster(
    "zookeeper_server_fsync_seconds",
    "Mean time to force the log to disk since the answer before. By `mntr`, from ZooKeeper 3.6 on. Absent without "
    "writes.",
    "server",
    unit="seconds",
)
ZOOKEEPER_OUTSTANDING = of_cluster("zookeeper_server_outstanding_requests", "Requests in the server's queue.", "server")
ZOOKEEPER_CONNECTIONS = of_cluster("zookeeper_server_connections", "Open connections to the server.", "server")
ZOOKEEPER_ZNODES = of_cluster("zookeeper_server_znodes", "Znodes on the server.", "server")
ZOOKEEPER_DATA = of_cluster(
    "zookeeper_server_data_bytes", "Approximate size of the server's data. By `mntr`.", "server", unit="bytes"
)
ZOOKEEPER_ZXID_LEFT = of_cluster(
    "zookeeper_zxid_left",
    "Changes until the zxid's low 32 bits are full and the leader resigns.",
)
ZOOKEEPER_ZNODE_BYTES = of_cluster(
    "zookeeper_znode_bytes",
    "Size of the largest znodes and lists of children, from 64 kB on.",
    "path",
    unit="bytes",
)
ZOOKEEPER_JUTE_MAXBUFFER = of_cluster(
    "zookeeper_jute_maxbuffer_bytes", "Limit of a request or answer, as configured.", unit="bytes"
)
