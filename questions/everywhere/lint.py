"""The question for trouble that waits for a failover, a restart, or the next change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from controller.contract.alert_row import Severity
from controller.view.advice import advice_for
from questions.doubts import doubts
from questions.lint import checks, znode_checks
from questions.lint.cluster import STEP_FOLLOWS, LintCheck, linted
from questions.picture import WORST_FIRST, Picture
from questions.question import PlainAnswer, PlainQuestion
from wording.said import Said, line, marked
from wording.sentences import joined

_EXAMPLES: Final = 10
_NAMED: Final = 5

_MADE: Final = (*vars(checks).values(), *vars(znode_checks).values())
CHECKS: Final = tuple(each for each in _MADE if isinstance(each, LintCheck))


class LintFinding(msgspec.Struct, frozen=True):
    """Result of a check: the count of places, with the consequence and the fix."""

    check: str
    severity: Severity  # a page if no controller can load it or clients lose, a warning if the next change hurts
    count: int | None  # None if the source lacks the znodes
    examples: tuple[str, ...]
    will: str
    mend: str

    def said(self) -> Said:
        """Yield the places, the consequence and the fix."""
        more = f" and {self.count - _NAMED} more" if self.count and self.count > _NAMED else ""
        yield line(marked(self.severity.value), f"  {self.check}: {', '.join(self.examples[:_NAMED])}{more}")
        yield line(f"will: {self.will}", indent=6)
        yield line(f"do: {self.mend}", indent=6)


class LintFindings(PlainAnswer, frozen=True):
    """Findings of each check, worst first. Without a count, the source lacks the znodes of the check."""

    cluster: str
    findings: tuple[LintFinding, ...]
    doubts: tuple[str, ...] = ()  # why more may be wrong than was found, as behind an ACL

    @property
    def found(self) -> tuple[LintFinding, ...]:
        """Return the findings whose count is known."""
        return tuple(finding for finding in self.findings if finding.count is not None)

    @property
    def is_good(self) -> bool:
        """Return whether nothing that was found will cause trouble."""
        return all(finding.severity is Severity.INFO for finding in self.found)

    @property
    def gap(self) -> str:
        """Return the checks whose znodes the source lacks."""
        names = ", ".join(finding.check for finding in self.findings if finding.count is None)
        why = f"not checked, because the outputs lack the znodes: {names} (give --zookeeper or --zk-data)"
        return why if names else ""

    def said(self) -> Said:
        """Yield the findings whose count is known."""
        for finding in self.found:
            yield from finding.said()
        if not self.found:
            yield line(f"no check found trouble in {'what is known of ' if self.doubts else ''}{self.cluster}")


class Lint(PlainQuestion, frozen=True):
    """Find znodes that will cause trouble at a failover, a restart or the next change, with the fix of each.

    Each finding has its effect and its fix. `kontrast check` reports present trouble.
    """

    answer = LintFindings
    examples = ("--zookeeper zk1:2181/kafka", "--zk-data /var/lib/zookeeper --chroot /kafka --json")
    good = "no page and no warning, perhaps notes"
    bad = "a finding will cause trouble"

    def ask(self, picture: Picture) -> LintFindings:
        """Return all findings, worst first. Checks without data are unknown and last."""
        found = sorted(_findings(picture), key=lambda each: (each.count is None, WORST_FIRST[each.severity]))
        return LintFindings(picture.header.cluster, tuple(found), doubts(picture))


def _findings(picture: Picture) -> Iterator[LintFinding]:
    cluster = linted(picture)
    for check in CHECKS:
        mend = advice_for(check.advice, picture.header)
        if check.reads_znodes and picture.records is None:
            yield LintFinding(check.name, check.severity, None, (), check.will, mend)
        elif subjects := list(check.find(cluster)):
            examples = tuple(subjects[:_EXAMPLES])
            yield LintFinding(check.name, check.severity, len(subjects), examples, check.will, mend)


def told_by_check(picture: Picture) -> Iterator[str]:
    """Yield what is found that no alert tells, each with its places and fix. A picture without znodes has none."""
    cluster = linted(picture)
    told, names = {row.action for row in picture.alerts}, _named_by_alerts(picture)
    for check in CHECKS if picture.records is not None else ():
        mend = advice_for(check.advice, picture.header)
        if not check.is_in_check or mend in told:
            continue
        places = list(check.find(cluster))
        if check.advice is STEP_FOLLOWS:
            places, mend = [place for place in places if f" {place.partition(' ')[0]} " not in names], ""
        if places:
            yield f"{check.name}: {joined(places, most=_NAMED)}{mend and f' ({mend})'}"


def _named_by_alerts(picture: Picture) -> str:
    """Return the sentences and examples of the alerts, with a space around each path."""
    return " ".join(("", *(" ".join((row.cause, row.action, *row.examples, "")) for row in picture.alerts)))
