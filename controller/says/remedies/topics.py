"""Remedies for topics whose znodes lost content, and for the remains of deletions."""

from __future__ import annotations

from typing import Final

from controller.says.remedies.controllership import DELETE_CONTROLLER
from controller.says.remedies.remedy import Remedy, by_removal, by_shell, by_tool

_WRITE: Final = "set /brokers/topics/TOPIC 'CONTENT'"
_DELETE: Final = "kafka-topics.sh SERVER --delete --topic TOPIC"

PUT_ID_BACK: Final = Remedy(
    name="put-topic-id-back",
    ways=by_shell(
        "Write the topic_id of that file into the topic's znode, and keep the other fields, before any failover.",
        _WRITE,
    ),
    requires="a broker has partition.metadata of the topic",
    changes="The next controller loads the topic under the id that its replicas have on disk.",
    tried_on=("2.8.2", "3.9.2"),
)
PUT_ID_BACK_AND_FAIL_OVER: Final = Remedy(
    name="put-topic-id-back-and-fail-over",
    ways=by_shell(
        "Write topic_id FORMER into the topic's znode, and keep the other fields. Then delete /controller.",
        _WRITE,
        "delete /controller",
    ),
    changes="The next controller sends the id that the replicas have on disk, and brokers accept it.",
    tried_on=("2.8.2", "3.9.2"),
)
ASSIGN_IDS: Final = Remedy(
    name="assign-topic-ids",
    ways=by_shell("Delete /controller, so that the next controller assigns ids.", "delete /controller"),
    requires="no broker has that file",
    changes="Each topic without an id gets a new one, and brokers write it to partition.metadata.",
    tried_on=("3.9.2",),
)
WRITE_TOPIC_BACK: Final = Remedy(
    name="write-topic-back",
    ways=by_shell(
        "Write the assignment and the topic_id of partition.metadata on a broker into the topic's znode.", _WRITE
    ),
    requires="nobody asked for the topic's deletion",
    changes="The next controller loads the topic, and clients use it with all its records.",
    tried_on=("2.8.2", "3.9.2"),
)
RESTORE_ASSIGNMENT: Final = Remedy(
    name="restore-assignment",
    ways=by_shell("Write the former assignment into the topic's znode, and ask for a reassignment instead.", _WRITE),
    changes="The next controller loads the assignment that the present one uses.",
    tried_on=("3.9.2",),
)
DELETE_DELETION_ENTRY: Final = Remedy(
    name="delete-deletion-entry",
    ways=by_shell(
        "Delete the entry, because it would delete a new topic of that name.", "delete /admin/delete_topics/TOPIC"
    ),
    requires="no topic of that name exists",
    changes="A new topic of that name stays.",
    tried_on=("3.9.2",),
)
DELETE_PARTITION_ZNODES: Final = Remedy(
    name="delete-partition-znodes",
    ways=by_removal("Delete the topic's znode with all below it.", "/brokers/topics/TOPIC"),
    requires="the topic's deletion was requested and no live broker leads its partitions",
    changes="A topic of that name can be created.",
    loses="the records that brokers still have of the topic",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
DELETE_SETTINGS: Final = Remedy(
    name="delete-settings",
    ways=by_shell("Delete /config/topics/TOPIC.", "delete /config/topics/TOPIC"),
    requires="the topic does not exist and no one will create it with these settings",
    changes="A new topic of that name begins with the brokers' defaults.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
DELETE_ORPHAN_STATE: Final = Remedy(
    name="delete-orphan-state",
    ways=by_removal(
        "Delete the znode /brokers/topics/TOPIC/partitions/PARTITION with its state.",
        "/brokers/topics/TOPIC/partitions/PARTITION",
    ),
    requires="no live broker leads the partition",
    changes="A partition of that number begins with a state of its own.",
    loses="the records that brokers still have of the partition",
    tried_on=("1.1.1", "3.9.2"),
)
DELETE_TOPIC: Final = Remedy(
    name="delete-topic",
    ways=by_tool("Delete the topic by kafka-topics.sh.", (2, 2), _DELETE),
    changes="The controller and the brokers remove the topic.",
    loses="all records of the topic",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
WRITE_BACK_AND_DELETE: Final = Remedy(
    name="write-topic-back-and-delete",
    ways=by_tool(
        "Create the topic's znode again with its old content, delete /controller, and delete the topic by "
        "kafka-topics.sh.",
        (2, 2),
        "zookeeper-shell.sh ZOOKEEPER create /brokers/topics/TOPIC 'CONTENT'",
        DELETE_CONTROLLER,
        _DELETE,
    ),
    requires="the topic should be gone",
    changes="Brokers delete the replicas that they kept.",
    loses="all records of the topic",
    tried_on=("2.8.2", "3.9.2"),
)
