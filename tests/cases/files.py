"""Files that people give to `kontrast whatif --reassign`: reassignments, and what they take for one."""

from __future__ import annotations

import json
from collections.abc import Mapping


def _orders(number: int, replicas: object, **fields: object) -> dict[str, object]:
    return {"topic": "orders", "partition": number, "replicas": replicas, **fields}


def _reassignment(*entries: dict[str, object], **fields: object) -> str:
    return json.dumps({"version": 1, "partitions": entries, **fields})


_ANY = {"log_dirs": ["any", "any"]}
_PROPOSAL = {"topicPartition": {"topic": "orders", "partition": 0}, "oldLeader": 1, "oldReplicas": [1, 2]}
_GENERATED = f"""Current partition replica assignment
{_reassignment(_orders(0, [1, 2], **_ANY))}

Proposed partition reassignment configuration
{_reassignment(_orders(0, [4, 2], **_ANY))}
"""
_DESCRIBED = """Topic: orders\tTopicId: jKTRaM_TSNqocJeQI2aYOQ\tPartitionCount: 3\tReplicationFactor: 2\tConfigs:
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2
"""

ACCEPTED: Mapping[str, str] = {
    "plain": _reassignment(_orders(0, [4, 2], **_ANY), _orders(1, [2, 3], **_ANY)),
    "without a version": json.dumps({"partitions": [_orders(0, [4, 2])]}),
    "a phase of topicmappr": _reassignment(_orders(0, [1, 2, 4]), _orders(1, [2, 3]), _orders(2, [3, 1])),
    "absolute log directories": _reassignment(_orders(0, [1, 2], log_dirs=["/data/a", "/data/b"])),
}
# The file KEY is refused with a sentence that has VALUE.
REFUSED: Mapping[str, tuple[str, str]] = {
    "the output of --generate": (_GENERATED, "Proposed partition reassignment configuration"),
    "topics to move": (json.dumps({"topics": [{"topic": "orders"}], "version": 1}), "partitions"),
    "a broker twice": (_reassignment(_orders(0, [4, 4])), r"orders-0 .*\(4, 4\)"),
    "a partition twice": (_reassignment(_orders(0, [4, 2]), _orders(0, [3, 2])), "orders-0 twice"),
    "proposals of Cruise Control": (json.dumps({"version": 1, "proposals": [_PROPOSAL]}), "partitions"),
    "an unknown broker": (_reassignment(_orders(0, [9, 2])), "broker 9 is not registered"),
    "an unknown topic": (_reassignment({**_orders(0, [1, 2]), "topic": "order"}), "no partition order-0.*orders-0"),
    "an unknown partition": (_reassignment(_orders(7, [1, 2])), "no partition orders-7"),
    "no partitions": (_reassignment(), "names no partition"),
    "a preferred election": (
        json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0}]}),
        "replicas",
    ),
    "no replicas": (_reassignment(_orders(0, [])), r"orders-0 .*\(\)"),
    "a cancellation": (_reassignment(_orders(0, None)), "replicas"),
    "the output of --describe": (_DESCRIBED, "no reassignment in JSON"),
}
