"""Ask a command's question to a source, with the known consumer groups, and print doubts about the answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from cli.printing import standard_error, standard_output
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import Settings, read_settings
from cli.sources.source import Source
from questions.question import EVERYTHING_NOW, NotFoundError, Question, Scope
from wording.sentences import did_you_mean

if TYPE_CHECKING:
    from questions.clients.known_groups import KnownGroups
    from questions.picture import Picture

# Time to close ZooKeeper or Kafka cleanly, which waits for one request at most. During reads of 30,000 partitions it
# took 0.1 s.
_FINISH_SECONDS: Final = 2.0
_PROBE: Final = "serve.probe"


class Answered(NamedTuple):
    """The answer to a question, and the picture that the answer is from."""

    answer: Any
    picture: Picture


def answer_of(source: Source, question: Question, flags: Mapping[str, Any], stop: threading.Event) -> Answered:
    """Ask the source's cluster, with its consumer groups if the question needs them.

    Raise the errors of `Source.picture`, and NotFoundError with names that are similar to the missing one.
    """
    scope = question.scope()
    picture = _picture(source, question, scope, flags, stop)
    try:
        return Answered(question.ask(picture), picture)
    except NotFoundError as error:
        everything = picture if scope.topics is None else _picture(source, question, EVERYTHING_NOW, flags, stop)
        raise NotFoundError(f"{error}{did_you_mean(question.similar(everything))}") from error


def _picture(
    source: Source, question: Question, scope: Scope, flags: Mapping[str, Any], stop: threading.Event
) -> Picture:
    picture = source.picture(scope, stop)
    if not question.asks_clients:
        return picture
    return _with_clients(picture, flags)


def ask(source: Source, scope: Scope, answer: Callable[[Picture], int]) -> int:
    """Answer with one picture and print doubts. Return the exit code. An answer may raise NotFoundError."""

    def look(stop: threading.Event) -> int:
        picture = source.picture(scope, stop)
        code = answer(picture)
        warn_of_doubts(picture)
        return code

    return ask_as_long_as(look)


def ask_question(
    source: Source, question: Question, flags: Mapping[str, Any], show: Callable[[Any, Picture], int]
) -> int:
    """Ask the question, show its answer, and print doubts. Return the exit code of `show`."""

    def look(stop: threading.Event) -> int:
        found = answer_of(source, question, flags, stop)
        code = show(*found)
        warn_of_doubts(found.picture)
        return code

    return ask_as_long_as(look)


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


def _with_clients(picture: Picture, flags: Mapping[str, Any]) -> Picture:
    """Return the picture with the teams, and with the consumer groups that `kontrast serve` keeps. Raise ConfigError.

    Without their directory the groups are unknown, which is no error, because a question can do without them.
    """
    from questions.clients.groups import Clients

    settings = read_settings(flags["config_file"], os.environ)
    return replace(picture, clients=Clients(_known(settings, picture.header.cluster), settings.teams))


def _known(settings: Settings, cluster: str) -> KnownGroups:
    from questions.clients.known_groups import NO_GROUPS

    layer = settings.sections[_PROBE]
    if "groups" not in layer or not layer["groups"].value:
        return NO_GROUPS
    directory = layer["groups_directory"].value if "groups_directory" in layer else None
    if not isinstance(directory, Path):
        return NO_GROUPS
    from dashboards.probe.kept_groups import kept_groups  # not for --help

    return kept_groups(directory, cluster)
