"""`kontrast lint`: znodes that will cause trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from cli.printing import standard_error
from cli.printing.rows import row_options
from cli.printing.standard_output import print_answer
from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.sources.asking import ask_question
from cli.sources.options import source_of, source_options

if TYPE_CHECKING:
    from questions.lint.table import LintFindings
    from questions.picture import Picture


_EPILOG: Final = """\b
Examples:
  kontrast lint --zookeeper zk1:2181/kafka
  kontrast lint --zk-data /var/lib/zookeeper --chroot /kafka --json

\b
Exit codes:
  0  no page and no warning, perhaps notes
  1  a finding will cause trouble
  2  a flag, a setting or the address is wrong
  3  the source cannot be reached
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@source_options
@row_options("Print one JSON object per finding and line.")
def lint(*, as_json: bool, **flags: object) -> int:
    """Find znodes that will cause trouble at a failover, a restart, or the next change.

    Each finding has its effect and its fix. `kontrast check` reports present trouble.
    """
    from controller.contract.alert_row import Severity
    from questions.lint.table import Lint

    def show(answer: LintFindings, picture: Picture) -> ExitCode:
        found = [finding for finding in answer.findings if finding.count is not None]
        if as_json or found:
            print_answer(answer.findings, answer.said(), as_json=as_json)
        else:
            standard_error.say(f"no check found trouble in {picture.header.cluster}")
        if unknown := [finding.check for finding in answer.findings if finding.count is None]:
            names = ", ".join(unknown)
            standard_error.warn(
                f"not checked, because the outputs lack the znodes: {names} (give --zookeeper or --zk-data)"
            )
        return ExitCode.FAILED if any(each.severity is not Severity.INFO for each in found) else ExitCode.OK

    return ask_question(source_of(flags), Lint(), flags, show)
