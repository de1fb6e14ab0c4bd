"""`kontrast migration`: the way of a cluster from ZooKeeper to KRaft."""

from __future__ import annotations

from typing import Final

import click

from cli.lazy_group import LazyGroup, Section

_SECTIONS: Final = {
    "Commands": Section(
        "cli.commands.ask.migration",
        {
            "check": "Find obstacles to a migration to KRaft in ZooKeeper.",
            "compare": "Compare the KRaft quorum with ZooKeeper.",
        },
    )
}


@click.group(cls=LazyGroup, sections=_SECTIONS, no_args_is_help=False)
def migration() -> None:
    """Check a cluster before and during its migration to KRaft.

    These commands write nothing.
    """
