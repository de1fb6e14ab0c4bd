"""Remedies for partitions: elections, and the limit of in-sync replicas."""

from __future__ import annotations

from typing import Final

from controller.says.remedies.remedy import Remedy, Way, by_tool

_ELECTION: Final = "kafka-leader-election.sh --bootstrap-server BOOTSTRAP"
_SETTINGS: Final = "--entity-type topics --entity-name TOPIC --alter"
_CONFIGS: Final = f"kafka-configs.sh SERVER {_SETTINGS}"

ELECT_PREFERRED: Final = Remedy(
    name="elect-preferred",
    ways=(
        Way(
            "Run a preferred election (kafka-leader-election.sh).",
            (f"{_ELECTION} --election-type preferred --topic TOPIC --partition PARTITION",),
            since=(2, 4),
        ),
        Way(
            "Run a preferred election (kafka-preferred-replica-election.sh).",
            ("kafka-preferred-replica-election.sh --zookeeper ZOOKEEPER --path-to-json-file partitions.json",),
        ),
    ),
    requires="the preferred replica is live and in sync",
    changes="The preferred replica becomes leader.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
ELECT_ALL_PREFERRED: Final = Remedy(
    name="elect-all-preferred",
    ways=(
        Way(
            "Run a preferred election of all partitions (kafka-leader-election.sh).",
            (f"{_ELECTION} --election-type preferred --all-topic-partitions",),
            since=(2, 4),
        ),
        Way(
            "Run a preferred election of all partitions (kafka-preferred-replica-election.sh).",
            ("kafka-preferred-replica-election.sh --zookeeper ZOOKEEPER",),
        ),
    ),
    requires="the preferred replicas are in sync",
    changes="Each preferred replica that is in sync becomes leader.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
ELECT_UNCLEAN: Final = Remedy(
    name="elect-unclean",
    ways=(
        Way(
            "Elect another live replica (kafka-leader-election.sh --election-type unclean).",
            (f"{_ELECTION} --election-type unclean --topic TOPIC --partition PARTITION",),
            since=(2, 4),
        ),
        Way(
            "Set unclean.leader.election.enable=true on the topic, and remove the setting after the election.",
            (
                f"kafka-configs.sh --zookeeper ZOOKEEPER {_SETTINGS} --add-config unclean.leader.election.enable=true",
                f"kafka-configs.sh --zookeeper ZOOKEEPER {_SETTINGS} --delete-config unclean.leader.election.enable",
            ),
            since=(2, 1),
        ),
        Way(
            "Set unclean.leader.election.enable=true on the topic, delete /controller, and remove the setting after "
            "the election.",
            (
                f"kafka-configs.sh --zookeeper ZOOKEEPER {_SETTINGS} --add-config unclean.leader.election.enable=true",
                "zookeeper-shell.sh ZOOKEEPER delete /controller",
                f"kafka-configs.sh --zookeeper ZOOKEEPER {_SETTINGS} --delete-config unclean.leader.election.enable",
            ),
        ),
    ),
    requires="no named broker can return, and another replica is live",
    changes="A replica that is not in sync becomes leader, and the others truncate their logs to its log.",
    loses="the records that only in-sync replicas have",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
LOWER_MIN_ISR: Final = Remedy(
    name="lower-min-isr",
    ways=by_tool("Lower min.insync.replicas of the topic.", (2, 5), f"{_CONFIGS} --add-config min.insync.replicas=1"),
    changes="The leader accepts acks=all again.",
    loses="copies of new records",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
FORBID_UNCLEAN: Final = Remedy(
    name="forbid-unclean-elections",
    ways=by_tool(
        "Set unclean.leader.election.enable=false on the topic.",
        (2, 5),
        f"{_CONFIGS} --add-config unclean.leader.election.enable=false",
    ),
    changes="The controller elects no replica that is not in sync.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
