"""Requirements of a question on its source, and the request of a command."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from cli.printing import standard_error, standard_output
from cli.running import ExitCode, run_until_stopped
from controller.contract.ids import Zxid
from questions.doubts import doubts
from questions.gathering import keep_nothing
from wording.times import exact_moment

if TYPE_CHECKING:
    from controller.contract.row import Row
    from ingest.files.data_directory import Until
    from questions.diff.side import Side
    from questions.picture import Picture

PROBE_PATIENCE_SECONDS: Final = 5.0  # monitoring systems kill a plugin that does not answer
UNNAMED: Final = "cluster"  # name of a nameless cluster

# To close ZooKeeper or Kafka in order. Among reads of 30,000 partitions that took 0.1 s. With any cluster it waits for
# one request at most.
_FINISH_SECONDS: Final = 2.0


class NotFoundError(Exception):
    """A missing subject, in one sentence."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a cluster that a question needs, its topics (None is all) and the past rows that it `keeps`.

    If the past is in outputs, it is in `past_outputs`.
    """

    topics: frozenset[str] | None = None
    past: bool = False
    keeps: Callable[[Row], bool] = keep_nothing
    past_outputs: tuple[str, ...] = ("transitions",)


EVERYTHING_NOW: Final = Scope()


class Source(Protocol):
    """A source of a cluster's picture."""

    has_past: ClassVar[bool]

    @property
    def is_live(self) -> bool:
        """Return whether it should have the present."""

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return at least the part of the cluster in the scope.

        Raise NotFoundError, StoppedError, and the error of the part that cannot read it.
        """


class SourceWithPast(Source, Protocol):
    """A source that knows a cluster at earlier moments."""

    def side_at(self, moment: Until, stop: threading.Event) -> Side:
        """Return the cluster at a moment as one side of a comparison, named by its last zxid and time.

        Raise as `picture` does.
        """


def ask(source: Source, scope: Scope, answer: Callable[[Picture], int]) -> int:
    """Answer a question with one picture and print doubts. Return the exit code.

    An answer may raise NotFoundError.
    """

    def look(stop: threading.Event) -> int:
        picture = source.picture(scope, stop)
        code = answer(picture)
        for doubt in doubts(picture):
            standard_error.warn(doubt)
        return code

    return ask_as_long_as(look)


def moment_named(zxid: Zxid, time_ms: int) -> str:
    """Return the name of a side at a moment."""
    return f"{zxid:#x} ({exact_moment(time_ms)})"


def ask_as_long_as(look: Callable[[threading.Event], int]) -> int:
    """Run the question until it is done or stopped. A missing subject is one sentence and exit code 2.

    A reader stops by itself. A computation is interrupted, because it has no resource to close.
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
