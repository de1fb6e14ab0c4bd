"""Ask a command's question to a source, once or until its answer is good, and print doubts about the answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from msgspec.structs import replace

from cli.printing import standard_error, standard_output
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import Settings
from cli.settings.parameters import DURATION
from cli.sources import PROBE_PATIENCE_SECONDS, Source
from dashboards.errors import ServeError
from ingest.errors import IngestError, StoppedError
from questions.question import EVERYTHING_NOW, NotFoundError, Question, Scope
from wording.sentences import did_you_mean

if TYPE_CHECKING:
    from cli.sources.options import Chosen
    from questions.clients.groups import Clients
    from questions.picture import Picture
    from wording.said import Said


# Time to close ZooKeeper or Kafka cleanly, which waits for one request at most. During reads of 30,000 partitions it
# took 0.1 s.
_FINISH_SECONDS: Final = 2.0
_PROBE: Final = "serve.probe"


_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Repetition:
    """How long and how often a question is repeated until `is_good`. Without patience it is asked once."""

    patience: timedelta | None = None
    every_seconds: float = 0.0
    is_good: Callable[[Any], bool] = bool
    in_a_line: Callable[[Any], str] = str

    def until(self, look: Callable[[threading.Event], _Answer], stop: threading.Event) -> _Answer:
        """Repeat until the answer is good or the patience is over. Return the last answer, or raise the last error.

        A line on standard error shows each new reason to wait. Raise StoppedError.
        """
        deadline = time.monotonic() + (self.patience or timedelta(0)).total_seconds()
        said = ""
        while time.monotonic() < deadline:
            before = said
            try:
                answer = look(stop)
            except (IngestError, ServeError) as error:
                said = f"asking again, because {error}"
            else:
                if self.is_good(answer):
                    return answer
                said = self.in_a_line(answer)
            if said != before:
                standard_error.say(said)
            if stop.wait(min(self.every_seconds, max(0.0, deadline - time.monotonic()))):
                raise StoppedError
        return look(stop)


ONCE: Final = Repetition()


def answer_of(source: Source, question: Question, settings: Settings, stop: threading.Event) -> tuple[Any, Picture]:
    """Ask the source's cluster, with its consumer groups if the question needs them. Return the picture, too.

    Raise the errors of `Source.picture`, and NotFoundError with names that are similar to the missing one.
    """

    def picture(scope: Scope) -> Picture:
        found = source.picture(scope, stop)
        return replace(found, clients=_clients(settings, found.header.cluster)) if question.asks_clients else found

    scope = question.scope()
    found = picture(scope)
    try:
        return question.ask(found), found
    except NotFoundError as error:
        everything = found if scope.topics is None else picture(EVERYTHING_NOW)
        raise NotFoundError(f"{error}{did_you_mean(question.similar(everything))}") from error


def ask_question(
    chosen: Chosen,
    question: Question,
    show: Callable[[Any, Picture], int],
    repeated: Repetition = ONCE,
    *,
    is_probe: bool = False,
    warns: bool = True,
) -> int:
    """Ask the question, show its answer, and warn of doubts. Return the exit code of `show`, or as a plugin ends."""
    source = chosen.source(patience_seconds=PROBE_PATIENCE_SECONDS if is_probe else None)
    if repeated.patience is not None:
        refuse_past(source)

    def look(stop: threading.Event) -> int:
        answer, picture = repeated.until(lambda stop: answer_of(source, question, chosen.settings, stop), stop)
        code = show(answer, picture)
        if picture.source and warns:
            standard_error.say(f"the answer is from {picture.source}")
        if warns:
            warn_of_doubts(picture)
        return code

    return ask_as_long_as(or_unknown(look) if is_probe else look)


def or_unknown(look: Callable[[threading.Event], int]) -> Callable[[threading.Event], int]:
    """Return the same function, which ends as a monitoring plugin for what cannot be asked."""
    from cli.printing.probe import ProbeState, plugin_line

    def looked(stop: threading.Event) -> int:
        try:
            return look(stop)
        except (NotFoundError, IngestError, ServeError) as error:
            standard_output.print_line(plugin_line(ProbeState.UNKNOWN, str(error)))
            return ProbeState.UNKNOWN

    return looked


def shown(answer: Any, said: Said, *, as_json: bool, is_known: bool = True, is_good: bool = True) -> ExitCode:  # noqa: ANN401 (of any question)
    """Print the answer as JSON or as its text, and return its exit code."""
    standard_output.print_answer([answer], said, as_json=as_json)
    if not is_known:
        return ExitCode.UNAVAILABLE
    return ExitCode.OK if is_good else ExitCode.FAILED


def warn_of_doubts(picture: Picture) -> None:
    """Print a sentence for each reason to doubt the picture."""
    from questions.doubts import doubts  # the core is not for --help, here and below

    for doubt in doubts(picture):
        standard_error.warn(doubt)


def ask_as_long_as(look: Callable[[threading.Event], int]) -> int:
    """Run the question until it is done or stopped. A missing subject is one sentence and exit code 2.

    A source that reads stops by itself after a signal. A computation is interrupted, because it has nothing to close.
    """

    def run(stop: threading.Event) -> int:
        try:
            code = look(stop)
            standard_output.flush()
        except NotFoundError as error:
            standard_error.complain(str(error))
            return ExitCode.USAGE
        return code

    return run_until_stopped({"question": run}, finish_within_seconds=_FINISH_SECONDS)


def _clients(settings: Settings, cluster: str) -> Clients:
    """Return the teams, and the consumer groups that `kontrast serve` keeps.

    Without their directory the groups are unknown, which is no error, because a question can do without them.
    """
    from questions.clients.groups import Clients
    from questions.clients.known_groups import NO_GROUPS

    given = {name: setting.value for name, setting in settings.sections[_PROBE].items()}
    directory = given.get("groups_directory")
    if not given.get("groups") or not isinstance(directory, Path):
        return Clients(NO_GROUPS, settings.teams)
    from dashboards.probe.kept_groups import kept_groups  # not for --help

    return Clients(kept_groups(directory, cluster), settings.teams)


def wait_options(until: str, every: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds --wait, whose help names the end `until`, and --every, whose help is `every`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--every",
            "every_seconds",
            type=click.FloatRange(min=0.5),
            default=5.0,
            show_default=True,
            metavar="SECONDS",
            help=every,
        )(command)
        says = f"Repeat until {until}, at most for this time, like 10m."
        return click.option("--wait", "patience", type=DURATION, metavar="TIME", help=says)(command)

    return add


def refuse_past(source: Source) -> None:
    """Raise UsageError for a source that shows the past, because its answer never changes."""
    if not source.is_live:
        raise click.UsageError("--wait needs a live source, which is --zookeeper, or --from without --until.")
