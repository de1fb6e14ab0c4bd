"""Remedies for the controller: a failover, a higher epoch, requests that end every term."""

from __future__ import annotations

from typing import Final

from controller.says.remedies.remedy import Remedy, by_shell

DELETE_CONTROLLER: Final = "zookeeper-shell.sh ZOOKEEPER delete /controller"

MOVE_CONTROLLER: Final = Remedy(
    name="move-controller",
    ways=by_shell("Delete /controller, so that a live broker becomes controller.", "delete /controller"),
    changes="The next controller loads every znode as it is, elects missing leaders and resumes deletions. It forgets "
    "failed log directories and shutdowns under way.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
RAISE_EPOCH: Final = Remedy(
    name="raise-controller-epoch",
    ways=by_shell(
        "Set /controller_epoch to EPOCH or more, in digits alone. Then delete /controller.",
        "set /controller_epoch EPOCH",
        "delete /controller",
    ),
    changes="The next controller takes the epoch after it, which every broker and partition state accepts.",
    tried_on=("1.1.1", "2.8.2", "3.9.2"),
)
DELETE_PREFERRED_REQUEST: Final = Remedy(
    name="delete-preferred-election-request",
    ways=by_shell(
        "Delete /admin/preferred_replica_election, and ask for the election again.",
        "delete /admin/preferred_replica_election",
    ),
    requires="/admin/preferred_replica_election names a partition without a state",
    changes="The next controller no longer fails at the request. Leaders stay where they are.",
    tried_on=("1.1.1", "3.9.2"),
)
