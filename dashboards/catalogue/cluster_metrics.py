"""Metrics of the watched cluster: controller, brokers, partitions, ensemble and alerts."""

from __future__ import annotations

from dashboards.catalogue.metric import of_cluster, of_known_cluster

CONTROLLER_INFO = of_cluster(
    "controller_info", "The broker that is the active controller. Absent without one.", "broker"
)
CONTROLLER_ACTIVE = of_cluster("controller_active", "1 while a broker is the active controller, else 0.")
CONTROLLER_EPOCH = of_cluster("controller_epoch", "Controller epoch as ZooKeeper has it.")
CONTROLLER_SINCE = of_cluster(
    "controller_since_timestamp_seconds", "Time since which this broker, or no broker, is the active controller."
)
CONTROLLER_CHANGES = of_cluster("controller_changes_total", "Changes of the active controller.")
PENDING_WRITES = of_cluster("pending_writes", "Writes to ZooKeeper that the controller must still do.")
DIVERGENCES = of_cluster("divergences_total", "Deviations of the real controller from its rules.", "kind")
WRITES = of_cluster(
    "writes_total",
    "The controller's writes of partition states. `expected` writes were predicted, inference explains `inferred` "
    "writes, and `unexplained` ones have no known cause.",
    "verdict",
)
INFERRED_WRITES = of_cluster(
    "inferred_writes_total", "Writes of the controller that a rule of inference explains, by rule.", "rule"
)
INFERRED_EVENTS = of_cluster(
    "inferred_events_total",
    "Unannounced events of the controller, by the rule that inferred them, including those without a write.",
    "rule",
)
AGREEMENT = of_cluster(
    "agreement_ratio",
    "Share of expected and inferred writes in all writes of the controller, for the last hour (`1h`) and since the "
    "job's state began (`start`). Absent without writes.",
    "window",
)
CONTROLLER_REACTION = of_cluster(
    "controller_reaction_seconds",
    "From an event's cause in ZooKeeper to the controller's first and last write after it, by kind of event.",
    "event write",
    is_histogram=True,
)

BROKERS = of_cluster("brokers", "Brokers that are registered in ZooKeeper.")
BROKER_REGISTERED = of_cluster(
    "broker_registered",
    "1 while a known broker is registered, else 0. A broker without replicas is known for a day after it left.",
    "broker",
)
BROKER_LEADERS = of_cluster("broker_leaders", "Partitions that the broker leads.", "broker")
BROKER_REPLICAS = of_cluster("broker_replicas", "Replicas that are assigned to the broker.", "broker")
BROKER_UNDER_REPLICATED = of_cluster(
    "broker_partitions_under_replicated", "Under-replicated partitions that the broker leads.", "broker"
)
BROKER_UNDER_MIN_ISR = of_cluster(
    "broker_partitions_under_min_isr", "Partitions below min.insync.replicas that the broker leads.", "broker"
)
BROKER_AT_MIN_ISR = of_cluster(
    "broker_partitions_at_min_isr", "Partitions at exactly min.insync.replicas that the broker leads.", "broker"
)
BROKER_SOLE_IN_SYNC = of_cluster(
    "broker_sole_in_sync_partitions",
    "Partitions whose only in-sync replica is on this broker. Its loss takes them offline.",
    "broker",
)
BROKER_DETAIL_DROPPED = of_cluster(
    "broker_detail_dropped", "Brokers, known or with replicas, that are not named, for there are too many."
)

TOPICS = of_cluster("topics", "Topics, as Kafka's GlobalTopicCount.")
TOPICS_TO_DELETE = of_cluster("topics_to_delete", "Topics whose deletion is queued.")
REPLICAS_TO_DELETE = of_cluster("replicas_to_delete", "Replicas whose deletion is queued.")
TOPICS_INELIGIBLE = of_cluster("topics_ineligible_to_delete", "Topics whose deletion cannot go on for now.")
REPLICAS_INELIGIBLE = of_cluster("replicas_ineligible_to_delete", "Replicas whose deletion cannot go on for now.")
PARTITIONS = of_cluster("partitions", "Partitions by the controller's partition state.", "state")
REPLICAS = of_cluster("replicas", "Replicas by the controller's replica state.", "state")
OFFLINE = of_cluster("partitions_offline", "Offline partitions, as Kafka's OfflinePartitionsCount.")
LEADERLESS = of_cluster(
    "partitions_leaderless", "Partitions without a live leader right now, whether an election is due or not."
)
UNDER_REPLICATED = of_cluster("partitions_under_replicated", "Partitions whose ISR lacks an assigned replica.")
UNDER_MIN_ISR = of_cluster("partitions_under_min_isr", "Partitions with an ISR below min.insync.replicas.")
AT_MIN_ISR = of_cluster("partitions_at_min_isr", "Partitions with an ISR of exactly min.insync.replicas.")
PREFERRED_IMBALANCE = of_cluster(
    "partitions_preferred_imbalance",
    "Partitions that their preferred replica does not lead, as Kafka's PreferredReplicaImbalanceCount.",
)
OFFLINE_SINCE = of_cluster(
    "partition_offline_since_timestamp_seconds",
    "Time since which a partition is unusable, by name and reason. Usable partitions are absent.",
    "topic partition reason",
)
BROUGHT_BACK_BY = of_cluster(
    "partition_brought_back_by",
    "1 for each named unusable partition. The label `brokers` lists brokers each of which would bring it back.",
    "topic partition brokers",
)
DETAIL_DROPPED = of_cluster(
    "partition_detail_dropped", "Partitions that cannot be used but are not named, for there are too many."
)
UNDER_MIN_ISR_SINCE = of_cluster(
    "partition_under_min_isr_since_timestamp_seconds",
    "Time since which a partition with a leader rejects writes with acks=all, by name. Others are absent.",
    "topic partition",
)
IN_SYNC_LACKING = of_cluster(
    "partition_in_sync_lacking",
    "Number of replicas that must join the ISR before a named partition accepts acks=all. The label `brokers` lists "
    "the candidates.",
    "topic partition brokers",
)
UNDER_MIN_ISR_DROPPED = of_cluster(
    "partition_under_min_isr_detail_dropped",
    "Partitions that are led and reject acks=all but are not named, for there are too many.",
)
ELECTIONS = of_cluster("leader_elections_total", "Confirmed leader elections.", "strategy")
ISR_CHANGES = of_cluster("isr_changes_total", "ISR changes.", "operation")
REASSIGNING = of_cluster("partitions_reassigning", "Partitions that are being reassigned.")

ZOOKEEPER_SERVER_UP = of_cluster(
    "zookeeper_server_up",
    "1 while the server serves clients, else 0. Absent if it does not allow `srvr`, or never answered and only "
    "/zookeeper/config names it.",
    "server",
)
ZOOKEEPER_SERVER_MODE = of_cluster("zookeeper_server_mode", "1 for the server's mode.", "server mode")
ZOOKEEPER_REFUSED = of_cluster(
    "zookeeper_question_refused", "1 for a four-letter word that the server does not allow.", "server word"
)
ZOOKEEPER_VOTERS = of_cluster("zookeeper_voters", "Voting servers of the ensemble.")
ZOOKEEPER_VOTERS_IN_SYNC = of_cluster(
    "zookeeper_voters_in_sync",
    "Voting servers in sync, with the leader. By the leader's count if `mntr` is allowed, else those that serve.",
)
ZOOKEEPER_ANSWER = of_cluster("zookeeper_server_answer_seconds", "Time of the server's answer to `srvr`.", "server")
ZOOKEEPER_LATENCY = of_cluster(
    "zookeeper_server_latency_seconds", "Mean time of the server's requests since its start.", "server"
)
ZOOKEEPER_FSYNC = of_cluster(
    "zookeeper_server_fsync_seconds",
    "Mean time to force the log to disk since the answer before. By `mntr`, from ZooKeeper 3.6 on. Absent without "
    "writes.",
    "server",
)
ZOOKEEPER_OUTSTANDING = of_cluster("zookeeper_server_outstanding_requests", "Requests in the server's queue.", "server")
ZOOKEEPER_CONNECTIONS = of_cluster("zookeeper_server_connections", "Open connections to the server.", "server")
ZOOKEEPER_ZNODES = of_cluster("zookeeper_server_znodes", "Znodes on the server.", "server")
ZOOKEEPER_DATA = of_cluster(
    "zookeeper_server_data_bytes", "Approximate size of the server's data. By `mntr`.", "server"
)
ZOOKEEPER_ZXID_LEFT = of_cluster(
    "zookeeper_zxid_left", "Changes until the zxid's low 32 bits are full and the leader resigns."
)
ZOOKEEPER_ZNODE_BYTES = of_cluster(
    "zookeeper_znode_bytes", "Size of the largest znodes and lists of children, from 64 kB on.", "path"
)
ZOOKEEPER_JUTE_MAXBUFFER = of_cluster("zookeeper_jute_maxbuffer_bytes", "Limit of a request or answer, as configured.")

ALERTS_OPEN = of_cluster(
    "alerts_open",
    "Open alerts of Kontrast by kind. `state` is open, or unknown while the cluster is not seen.",
    "alert severity state",
)
ALERT_SINCE = of_known_cluster(
    "alert_since_timestamp_seconds",
    "Start of an active alert's problem, with the labels of its messages to Alertmanager. It stays while its cluster "
    "is unknown. Alerts that page are named first, then the oldest ones. Each further broker has a series, and so has "
    "each news, whose number is in the label `news`. `rank` orders alerts as a text, the worst first.",
    "alert severity component subject group topic partition broker other_broker news rank",
)
ALERT_DETAIL_DROPPED = of_known_cluster(
    "alert_detail_dropped", "Active alerts that are not named, for there are too many."
)
MAINTENANCE_UNTIL = of_cluster(
    "maintenance_until_timestamp_seconds",
    "End of a broker's maintenance window. `all` covers the whole cluster. Until then its alerts have severity info.",
    "broker",
)
