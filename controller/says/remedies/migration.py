"""Remedies on the way to KRaft and back."""

from __future__ import annotations

from typing import Final

from controller.says.remedies.remedy import Remedy, Way, by_shell

DELETE_MIGRATION: Final = Remedy(
    name="delete-migration",
    ways=(
        Way(
            "Stop the controllers, delete /migration, and format the disks of all controllers. All three steps are "
            "necessary."
        ),
    ),
    changes="The next quorum copies ZooKeeper from the beginning.",
    loses="the KRaft controllers' metadata",
)
DELETE_MIGRATION_ALONE: Final = Remedy(
    name="delete-unreadable-migration",
    ways=(Way("Delete /migration."),),
    requires="no KRaft controller has copied ZooKeeper",
    changes="The migration driver of a quorum begins.",
)
DELETE_CLAIM: Final = Remedy(
    name="delete-kraft-claim",
    ways=by_shell("Stop all KRaft controllers, then delete /controller.", "delete /controller"),
    changes="A broker becomes controller.",
    tried_on=("3.9.2",),
)
RETURN_TO_ZOOKEEPER: Final = Remedy(
    name="return-to-zookeeper",
    ways=by_shell(
        "Stop all KRaft controllers, then delete /controller and /migration.", "delete /controller", "delete /migration"
    ),
    changes="A broker becomes controller, and KRaft's metadata is not used again.",
    loses="changes that KRaft has not written to ZooKeeper",
    tried_on=("3.9.2",),
)
