"""Explain the state of a partition, topic, broker or controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from cli.commands.question_command import question_of
from cli.running import ExitCode
from cli.settings.options import GroupedCommand
from cli.sources.asking import ask_question, shown
from cli.sources.options import Chosen, source_options
from questions.doubts import blindness

if TYPE_CHECKING:
    from questions.explain.explanation import Explanation
    from questions.picture import Picture
    from questions.question import Question

_KEY_FORMATS: Final = ("utf8", "hex", "long", "uuid")  # the values of questions.explain.key.KeyFormat
_EPILOG: Final = """\b
Examples:
  kontrast explain orders-7 --zookeeper zk1:2181/kafka
  kontrast explain broker 3 --zk-data /var/lib/zookeeper --until 2024-05-01T03:12:00Z
  kontrast explain group settlement --config kontrast.toml
  kontrast explain controller --from journal:/var/lib/kontrast/changes
  kontrast explain orders --key customer-4711 --zookeeper zk1:2181/kafka

\b
Marks of statements that ZooKeeper does not contain:
  expected  follows from ZooKeeper by the controller's own rules
  inferred  explains a write that no znode announced
  assumed   rests on the brokers' files (set them with --broker-config)

\b
Exit codes:
  0  the subject is well. With --key, a producer with acks=all can write
  1  it is not well, or cannot write
  2  a flag or a setting is wrong, or SUBJECT does not exist
  3  the state is not known now, because the source cannot be reached or its data is old
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@click.argument("subject", nargs=-1, required=True)
@source_options
@click.option(
    "--topic", "is_topic", is_flag=True, help="SUBJECT is a topic, even if its name looks like a partition's."
)
@click.option(
    "--key", metavar="KEY", help="Find the partition of a producer's key, and show whether it accepts writes."
)
@click.option(
    "--key-format",
    type=click.Choice(_KEY_FORMATS),
    default="utf8",
    show_default=True,
    help="Notation of the key, and the producer's serializer (text, bytes, long or UUID).",
)
@click.option("--decommission", is_flag=True, help="Show the steps to remove the broker for good.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(  # noqa: PLR0913 (one parameter an option)
    *,
    subject: tuple[str, ...],
    is_topic: bool,
    key: str | None,
    key_format: str,
    decommission: bool,
    as_json: bool,
    chosen: Chosen,
) -> int:
    """Explain SUBJECT, which is TOPIC-PARTITION, TOPIC, broker N, group NAME, or controller.

    Shows its state and its start, the steps that led to it, the controller's due writes, and the remedy. Files and
    streams have these steps with time and zxid. One read of ZooKeeper has only the last write of each znode.
    """
    from questions.explain.key import ExplainKey, KeyAnswer, KeyFormat
    from questions.explain.subject import Explain  # not for --help

    question: Question
    if key is None:
        question = question_of(Explain, {}, subject=" ".join(subject), is_topic=is_topic, decommission=decommission)
    elif len(subject) != 1:
        raise click.UsageError("--key needs one topic.")
    else:
        question = question_of(ExplainKey, {}, topic=subject[0], key=key, key_format=KeyFormat(key_format))

    def show(found: KeyAnswer | Explanation, picture: Picture) -> ExitCode:
        is_good = found.takes_acks_all if isinstance(found, KeyAnswer) else found.is_well
        is_known = blindness(picture) is None
        return shown(found, found.said(), as_json=as_json, is_known=is_known, is_good=is_good)

    return ask_question(chosen, question, show)
