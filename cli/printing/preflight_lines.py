"""Print the report of `kontrast migration check`, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Final

from cli.printing.standard_output import print_json as print_object, print_said
from migration.preflight.check import Check, Outcome, written
from migration.preflight.report import AS_OF, LAST_RELEASES, FailedCheck, Report
from wording.said import Said, cut, line

_SHOWN: Final = 5  # findings of a check in full
_NAMED: Final = 50  # named znodes of a finding, about half of a large fleet
_MEANINGS: Final = {"loses": "page", "kills": "page", "sticks": "page", "blocks": "warn", "rollback": "warn"}


def print_report(report: Report) -> None:
    """Print findings, worst first, then advice, impossible checks, the total, and the lifecycle, for people."""
    print_said(_lines(report))


def _lines(report: Report) -> Said:
    for found in report.found:
        yield from _found(found, found.check.outcome.value)
    for found in report.advice:
        yield from _found(found, "advice")
    for unchecked in report.unchecked:
        yield line(f"not checked: {unchecked.check.name} ({unchecked.check.what}): {cut(unchecked.reason)}")
    yield line(_sum(report))
    yield line(f"the end of ZooKeeper, as of {AS_OF}:")
    for last in LAST_RELEASES:
        yield line(last.sentence, indent=2)
        yield line(f"source: {' '.join(last.sources)}", indent=4)


def _found(found: FailedCheck, word: str) -> Said:
    check = found.check
    yield line((word, _MEANINGS.get(word, "")), f"  {check.name}: {check.what}")
    for finding in found.findings[:_SHOWN]:
        yield line(f"{cut(finding.znode)}: {cut(finding.detail)}", indent=2)
    if more := found.findings[_SHOWN:]:
        named = ", ".join(finding.znode for finding in more[:_NAMED])
        yield line(f"and {len(more)} more: {cut(named)}{', …' if len(more) > _NAMED else ''}", indent=2)
    yield line(f"means: {check.means}", indent=2)
    yield line(f"do: {check.mend}", indent=2)
    yield line(f"releases: {check.releases}. Source: {check.source}", indent=2)


def _sum(report: Report) -> str:
    counts: Counter[Outcome] = Counter()
    for found in report.found:
        counts[found.check.outcome] += len(found.findings)
    parts = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items())
    forbidden = sum(unchecked.is_withheld for unchecked in report.unchecked)
    what = (
        f"found: {parts}"
        if parts
        else "no problem was found in the znodes that were read"
        if forbidden
        else "no obstacle was found"
    )
    unchecked = f" ({len(report.unchecked)} checks not made, or not of all znodes)" if report.unchecked else ""
    return f"{what}{unchecked}, {_releases(report)}"


def _releases(report: Report) -> str:
    if report.oldest == report.newest:
        return f"for release {written(report.oldest)}"
    return f"for releases {written(report.oldest[:2])} to {written(report.newest[:2])}, by the znodes"


def print_json(report: Report) -> None:
    """Print one JSON object per line, for each finding, advice, impossible check and release, and the lifecycle."""
    for kind, of_kind in (("finding", report.found), ("advice", report.advice)):
        for found in of_kind:
            for finding in found.findings:
                _print_line(kind, found.check, znode=finding.znode, detail=finding.detail)
    for unchecked in report.unchecked:
        _print_line("not-checked", unchecked.check, reason=unchecked.reason, forbidden=unchecked.is_withheld)
    releases = {"oldest": written(report.oldest[:2]), "newest": written(report.newest[:2])}
    if report.oldest == report.newest:
        releases = dict.fromkeys(releases, written(report.oldest))
    print_object({"type": "releases", **releases})
    for last in LAST_RELEASES:
        print_object({"type": "lifecycle", "as_of": AS_OF, **last._asdict()})


def _print_line(kind: str, check: Check, **fields: object) -> None:
    fields_of_check = {
        "type": kind,
        "check": check.name,
        "outcome": check.outcome.value,
        "what": check.what,
        **fields,
        "means": check.means,
        "mend": check.mend,
        "releases": check.releases,
        "source": check.source,
    }
    print_object(fields_of_check)
