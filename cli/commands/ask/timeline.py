"""Print the events of a cluster in order, or write a page with a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.commands.question_command import question_of, question_options
from cli.printing.standard_output import write_file
from cli.running import ExitCode
from cli.settings.config import ConfigError
from cli.settings.options import GroupedCommand
from cli.sources.asking import ask_question, shown
from cli.sources.options import Chosen, source_options
from questions.doubts import doubts
from questions.timeline.timeline import ShowTimeline, Timeline

if TYPE_CHECKING:
    from questions.picture import Picture


_EPILOG = """\b
Examples:
  kontrast timeline --zk-data /var/lib/zookeeper --chroot /kafka
  kontrast timeline --partition orders-7 --from journal:/var/lib/kontrast/changes
  kontrast timeline --controller --since 14:00 --from journal:/var/lib/kontrast/outputs
  kontrast timeline --since 2024-05-01T03:00:00Z --until 2024-05-01T04:00:00Z --zk-data copy --html postmortem.html

\b
Marks:
  inferred  explains a write that no znode announced
  expected  follows by the controller's own rules, without an observed write

\b
Exit codes:
  0  done, perhaps without events
  2  a flag or a setting is wrong, or the named subject does not exist
  3  the source cannot be reached
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@source_options
@question_options(ShowTimeline, leave_out=("until",))
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write one self-contained page with a picture and a table into this file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def timeline(*, html_file: Path | None, as_json: bool, chosen: Chosen, **flags: Any) -> int:  # noqa: ANN401 (click's own)
    """Print each event of the controller with its changes, in order.

    Uses Kafka's words, with zxid and time. Includes each change of ISRs and replicas, and alerts that page or warn.
    Transitions of replicas are only in `kontrast replay`. --until ends it, also in a stream.
    """
    if html_file is not None and as_json:
        raise click.UsageError("--html and --json exclude each other.")
    # A stream is read to its end, because its past may begin only after --until. The window ends the timeline instead.
    read = chosen if chosen.directories else replace(chosen, until=None).of_outputs()
    if not read.source().has_past:
        raise ConfigError(
            "a timeline needs a past. Give --zk-data or --from. ZooKeeper itself has only the last write of each "
            "znode, which `kontrast explain` shows"
        )
    question = question_of(ShowTimeline, flags, until=None if chosen.until is None else chosen.until.text)

    def show(found: Timeline, picture: Picture) -> ExitCode:
        if html_file is None:
            return shown(found, found.said(names_controllers=question.controller), as_json=as_json)
        from dashboards.drawn_timeline.picture import page_of

        write_file(html_file, page_of(found, doubts(picture)), "--html")
        return ExitCode.OK

    return ask_question(read, question, show)
