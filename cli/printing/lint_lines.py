"""Trouble ahead, worst first, with its places, its effect and its fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType

from cli.printing.answers import line, severity_word
from questions.lint.table import LintFinding

_NAMED: Final = 5


def lint_lines(findings: Sequence[LintFinding]) -> Iterator[RenderableType]:
    """Show the findings whose count is known, on a screen."""
    for finding in findings:
        more = f" and {finding.count - _NAMED} more" if finding.count and finding.count > _NAMED else ""
        named = ", ".join(finding.examples[:_NAMED])
        yield line(severity_word(finding.severity.value), f"  {finding.check}: {named}{more}")
        yield line(f"will: {finding.will}", indent=6)
        yield line(f"do: {finding.mend}", indent=6)
