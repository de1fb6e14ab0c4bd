"""Print `reference/migration-checks.md` from `migration.preflight.report`. `make docs` runs it."""

from __future__ import annotations

import sys
import textwrap

from migration.preflight.check import Check, Hazard, nothing
from migration.preflight.report import AS_OF, CHECKS, LAST_RELEASES

_WIDTH = 120

_HEAD = """# Obstacles to a migration to KRaft

Look up a problem that [`kontrast migration check`](cli.md#migration-check) found. The order is that of the command,
worst first, and the command adds the source in Kafka. Each problem concerns all releases unless it names some.

"""


def checks_page() -> str:
    """Return the page."""
    outcomes = "\n".join(_wrapped(f"**{outcome.value}**: {outcome.meaning}", "- ") for outcome in Hazard)
    return "\n".join([f"{_HEAD}{outcomes}\n", *map(_entry, CHECKS), _lifecycle()]).rstrip() + "\n"


def _lifecycle() -> str:
    rows = [
        f"| {last.product} | {last.release} | {last.path} | {', '.join(f'<{source}>' for source in last.sources)} |"
        for last in LAST_RELEASES
    ]
    head = f"## Last releases with ZooKeeper\n\nThe command ends with these facts. The sources were read in {AS_OF}.\n"
    return "\n".join(
        [head, "| product | last release | supported path | sources |", "| --- | --- | --- | --- |", *rows]
    )


def _entry(check: Check) -> str:
    outcome = f"**{check.outcome.value}**{', as advice, which does not count as found' if check.advises else ''}"
    releases = "" if check.releases == "all" else f", {check.releases}"
    parts = "\n".join(
        _wrapped(fact, "- ") for fact in (f"Shown by {_shown_by(check)} {check.means}", f"Do: {check.mend}")
    )
    return f"## {check.name}\n\n{check.what[0].upper()}{check.what[1:]} ({outcome}{releases}).\n\n{parts}\n"


def _shown_by(check: Check) -> str:
    unseen = ": it is always named as not checked" if check.find is nothing else ""
    return f"{check.shown_by}{unseen}."


def _wrapped(text: str, bullet: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=bullet, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(checks_page())
