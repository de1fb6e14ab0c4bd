"""Remedies for reassignments: start, cancel, and remove a request that no controller handles."""

from __future__ import annotations

from typing import Final

from controller.says.remedies.controllership import DELETE_CONTROLLER
from controller.says.remedies.remedy import Remedy, Way, by_shell, by_tool

_TOOL: Final = "kafka-reassign-partitions.sh --bootstrap-server BOOTSTRAP --reassignment-json-file"
_MOVE: Final = "kafka-reassign-partitions.sh SERVER --reassignment-json-file move.json"
_DELETE_REQUEST: Final = "zookeeper-shell.sh ZOOKEEPER delete /admin/reassign_partitions"

REASSIGN: Final = Remedy(
    name="reassign",
    ways=by_tool(
        "Reassign the partitions (kafka-reassign-partitions.sh).", (2, 6), f"{_MOVE} --execute", f"{_MOVE} --verify"
    ),
    changes="New replicas copy the partitions, and replicas that the plan lacks are deleted after the copy.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
CANCEL_REASSIGNMENT: Final = Remedy(
    name="cancel-reassignment",
    ways=(
        Way(
            "Cancel the reassignment (kafka-reassign-partitions.sh --cancel).",
            (f"{_TOOL} move.json --cancel --preserve-throttles",),
            since=(2, 6),
        ),
        Way(
            "Cancel the reassignment by kafka-reassign-partitions.sh --cancel of a release from 2.6 on.",
            (f"{_TOOL} move.json --cancel --preserve-throttles",),
            since=(2, 4),
        ),
        Way(
            "Delete /admin/reassign_partitions, then /controller. Then reassign the partition to the replicas that it "
            "should keep.",
            (_DELETE_REQUEST, DELETE_CONTROLLER),
        ),
    ),
    changes="The partition keeps its old replicas. Up to 2.3 it also keeps the new ones, until it is reassigned again.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
RESTORE_REPLICAS: Final = Remedy(
    name="restore-replicas",
    ways=(
        Way(
            "Reassign the partition to its old replicas (kafka-reassign-partitions.sh --execute --additional).",
            (f"{_TOOL} old.json --execute --additional",),
            since=(2, 6),
        ),
    ),
    requires="--cancel finds no active reassignment, because it only adds replicas",
    changes="The old replicas replace the target.",
    tried_on=("2.8.2", "3.9.2"),
)
DELETE_REASSIGNMENT_REQUEST: Final = Remedy(
    name="delete-reassignment-request",
    ways=by_shell(
        "Delete /admin/reassign_partitions, then /controller, because the controller sees the next request only after "
        "a failover.",
        "delete /admin/reassign_partitions",
        "delete /controller",
    ),
    requires="no partition of the request is under way",
    changes="The next request there is handled.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
