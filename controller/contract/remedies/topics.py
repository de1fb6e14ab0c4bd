"""Remedies for topics whose znodes lost content, and for the remains of deletions."""

from __future__ import annotations

from typing import Final

from controller.contract.remedies.controllership import DELETE_CONTROLLER
from controller.contract.remedies.remedy import Remedy, Way

PUT_ID_BACK: Final = Remedy(
    name="put-topic-id-back",
    ways=(
        Way(
            "Write the topic_id of that file into the topic's znode, and keep the other fields, before any failover.",
            ("zookeeper-shell.sh ZOOKEEPER set /brokers/topics/TOPIC 'CONTENT'",),
        ),
    ),
    requires="a broker has partition.metadata of the topic",
    changes="The next controller loads the topic under the id that its replicas have on disk.",
    tried_on=("2.8.2", "3.9.2"),
)
PUT_ID_BACK_AND_FAIL_OVER: Final = Remedy(
    name="put-topic-id-back-and-fail-over",
    ways=(
        Way(
            "Write topic_id FORMER into the topic's znode, and keep the other fields. Then delete /controller.",
            ("zookeeper-shell.sh ZOOKEEPER set /brokers/topics/TOPIC 'CONTENT'", DELETE_CONTROLLER),
        ),
    ),
    changes="The next controller sends the id that the replicas have on disk, and brokers accept it.",
    tried_on=("2.8.2", "3.9.2"),
)
ASSIGN_IDS: Final = Remedy(
    name="assign-topic-ids",
    ways=(Way("Delete /controller, so that the next controller assigns ids.", (DELETE_CONTROLLER,)),),
    requires="no broker has that file",
    changes="Each topic without an id gets a new one, and brokers write it to partition.metadata.",
    tried_on=("3.9.2",),
)
WRITE_TOPIC_BACK: Final = Remedy(
    name="write-topic-back",
    ways=(
        Way(
            "Write the assignment and the topic_id of partition.metadata on a broker into the topic's znode.",
            ("zookeeper-shell.sh ZOOKEEPER set /brokers/topics/TOPIC 'CONTENT'",),
        ),
    ),
    requires="nobody asked for the topic's deletion",
    changes="The next controller loads the topic, and clients use it with all its records.",
    tried_on=("2.8.2", "3.9.2"),
)
RESTORE_ASSIGNMENT: Final = Remedy(
    name="restore-assignment",
    ways=(
        Way(
            "Write the former assignment into the topic's znode, and ask for a reassignment instead.",
            ("zookeeper-shell.sh ZOOKEEPER set /brokers/topics/TOPIC 'CONTENT'",),
        ),
    ),
    changes="The next controller loads the assignment that the present one uses.",
    tried_on=("3.9.2",),
)
DELETE_DELETION_ENTRY: Final = Remedy(
    name="delete-deletion-entry",
    ways=(
        Way(
            "Delete the entry, because it would delete a new topic of that name.",
            ("zookeeper-shell.sh ZOOKEEPER delete /admin/delete_topics/TOPIC",),
        ),
    ),
    requires="no topic of that name exists",
    changes="A new topic of that name stays.",
    tried_on=("3.9.2",),
)
DELETE_PARTITION_ZNODES: Final = Remedy(
    name="delete-partition-znodes",
    ways=(
        Way(
            "Delete the topic's znode with all below it.",
            ("zookeeper-shell.sh ZOOKEEPER deleteall /brokers/topics/TOPIC",),
            since=(2, 4),
        ),
        Way("Delete the topic's znode with all below it.", ("zookeeper-shell.sh ZOOKEEPER rmr /brokers/topics/TOPIC",)),
    ),
    requires="the topic's deletion was requested and no live broker leads its partitions",
    changes="A topic of that name can be created.",
    loses="the records that brokers still have of the topic",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
DELETE_SETTINGS: Final = Remedy(
    name="delete-settings",
    ways=(Way("Delete /config/topics/TOPIC.", ("zookeeper-shell.sh ZOOKEEPER delete /config/topics/TOPIC",)),),
    requires="the topic does not exist and no one will create it with these settings",
    changes="A new topic of that name begins with the brokers' defaults.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
DELETE_ORPHAN_STATE: Final = Remedy(
    name="delete-orphan-state",
    ways=(
        Way(
            "Delete the znode /brokers/topics/TOPIC/partitions/PARTITION with its state.",
            ("zookeeper-shell.sh ZOOKEEPER deleteall /brokers/topics/TOPIC/partitions/PARTITION",),
            since=(2, 4),
        ),
        Way(
            "Delete the znode /brokers/topics/TOPIC/partitions/PARTITION with its state.",
            ("zookeeper-shell.sh ZOOKEEPER rmr /brokers/topics/TOPIC/partitions/PARTITION",),
        ),
    ),
    requires="no live broker leads the partition",
    changes="A partition of that number begins with a state of its own.",
    loses="the records that brokers still have of the partition",
    tried_on=("1.1.1", "3.9.2"),
)
DELETE_TOPIC: Final = Remedy(
    name="delete-topic",
    ways=(
        Way(
            "Delete the topic by kafka-topics.sh.",
            ("kafka-topics.sh --bootstrap-server BOOTSTRAP --delete --topic TOPIC",),
            since=(2, 2),
        ),
        Way("Delete the topic by kafka-topics.sh.", ("kafka-topics.sh --zookeeper ZOOKEEPER --delete --topic TOPIC",)),
    ),
    changes="The controller and the brokers remove the topic.",
    loses="all records of the topic",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
WRITE_BACK_AND_DELETE: Final = Remedy(
    name="write-topic-back-and-delete",
    ways=(
        Way(
            "Create the topic's znode again with its old content, delete /controller, and delete the topic by "
            "kafka-topics.sh.",
            (
                "zookeeper-shell.sh ZOOKEEPER create /brokers/topics/TOPIC 'CONTENT'",
                DELETE_CONTROLLER,
                "kafka-topics.sh --bootstrap-server BOOTSTRAP --delete --topic TOPIC",
            ),
            since=(2, 2),
        ),
        Way(
            "Create the topic's znode again with its old content, delete /controller, and delete the topic by "
            "kafka-topics.sh.",
            (
                "zookeeper-shell.sh ZOOKEEPER create /brokers/topics/TOPIC 'CONTENT'",
                DELETE_CONTROLLER,
                "kafka-topics.sh --zookeeper ZOOKEEPER --delete --topic TOPIC",
            ),
        ),
    ),
    requires="the topic should be gone",
    changes="Brokers delete the replicas that they kept.",
    loses="all records of the topic",
    tried_on=("2.8.2", "3.9.2"),
)
