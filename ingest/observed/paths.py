"""Watched znodes of a Kafka cluster below its chroot, and the order of simultaneous changes."""

from __future__ import annotations

import re
from enum import IntEnum

from controller.contract.znode_table import CHILDREN, SINGLES

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"

SINGLE_ZNODES = tuple(SINGLES)
PARENTS = tuple(CHILDREN)

COPIED_BESIDES = (
    "/config/users",
    "/config/clients",
    "/config/ips",
    "/kafka-acl",
    "/kafka-acl-extended",
    "/delegation_token/tokens",
)
"""Subtrees that a migration to KRaft copies and that the controller does not read."""

COPIED_SINGLE_BESIDES = ("/latest_producer_id_block", "/brokers/seqid")

_WATCHED_WHOLE = ("/brokers", "/admin")


def _watched(path: str) -> str:
    return next((root for root in _WATCHED_WHOLE if path.startswith(f"{root}/")), path)


WATCHED = tuple(dict.fromkeys(map(_watched, (*SINGLE_ZNODES, *PARENTS))))
"""Subtrees that are watched, even if absent. They are the fewest that cover all paths with records."""

_PARTITION_STATE = re.compile(rf"{TOPICS}/[^/]+/partitions/[^/]+/state")
_PARTITIONS = re.compile(rf"{TOPICS}/[^/]+/partitions")
_CONTROLLER = {"/controller", "/controller_epoch"}
_SINGLE = frozenset(SINGLE_ZNODES)
_PARENTS = frozenset(PARENTS)
_REQUESTS = ("/admin/", "/isr_change_notification/", "/log_dir_event_notification/")
_COPIED_SINGLE = frozenset(COPIED_SINGLE_BESIDES)
_COPIED_BELOW = tuple(f"{root}/" for root in COPIED_BESIDES)


class Rank(IntEnum):
    """Order of changes in one ZooKeeper transaction, with causes before effects."""

    CONTROLLER = 0
    BROKER = 1
    CAUSE = 2
    PARTITION_STATE = 3


def is_recorded(path: str) -> bool:
    """Return whether a znode gets records. Watched parents, and a topic's `partitions` and `P`, do not."""
    if path in _SINGLE or path.rpartition("/")[0] in _PARENTS:
        return True
    return is_partition_state(path)


def is_copied(path: str) -> bool:
    """Return whether a migration to KRaft reads a znode."""
    return is_recorded(path) or path in _COPIED_SINGLE or path.startswith(_COPIED_BELOW)


def is_partition_state(path: str) -> bool:
    """Return whether a path is a partition's state."""
    return path.endswith("/state") and _PARTITION_STATE.fullmatch(path) is not None


def is_request(path: str) -> bool:
    """Return whether the controller removes a znode once it has handled it."""
    return path.startswith(_REQUESTS)


def is_listed(path: str) -> bool:
    """Return whether a znode's children get records. The parents and a topic's `partitions` have such children."""
    return path in _PARENTS or _PARTITIONS.fullmatch(path) is not None


def recorded_child(path: str, child: str) -> str:
    """Return the path with records for a child of a listed znode, the child itself or a partition's state."""
    return f"{path}/{child}" if path in _PARENTS else f"{path}/{child}/state"


def rank(path: str) -> Rank:
    """Return the place of a recorded path among changes that were made at once."""
    if path in _CONTROLLER:
        return Rank.CONTROLLER
    if path.startswith("/brokers/ids/"):
        return Rank.BROKER
    return Rank.PARTITION_STATE if is_partition_state(path) else Rank.CAUSE


def topic_path(topic: str) -> str:
    """Return a topic's znode."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Return the parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def state_path(topic: str, partition: str) -> str:
    """Return a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"
