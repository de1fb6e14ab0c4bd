"""`kontrast migration`: the way of a cluster from ZooKeeper to KRaft."""

from __future__ import annotations

from typing import Final

import click

from cli.lazy_group import LazyGroup, Section

_SECTIONS: Final = {
    "Commands": Section(
        "cli.migration",
        {
            "check": "Look in ZooKeeper for what would stop, kill or spoil a migration to KRaft.",
            "compare": "Compare what the KRaft quorum says with what ZooKeeper has.",
        },
    )
}


@click.group(cls=LazyGroup, sections=_SECTIONS, no_args_is_help=False)
def migration() -> None:
    """Check a cluster before and during its migration to KRaft.

    These commands write nothing.
    """
