"""Interface of a source of a cluster."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from controller.contract.ids import Zxid
from wording.times import exact_moment

if TYPE_CHECKING:
    from ingest.files.data_directory import Until
    from questions.diff.side import Side
    from questions.picture import Picture
    from questions.question import Scope

PROBE_PATIENCE_SECONDS: Final = 5.0  # monitoring systems kill a plugin that does not answer
UNNAMED: Final = "cluster"  # name of a cluster that has no name


class Source(Protocol):
    """A source of a cluster's picture."""

    has_past: ClassVar[bool]

    @property
    def is_live(self) -> bool:
        """Return whether the source shows the present."""

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return at least the part of the cluster in the scope.

        Raise NotFoundError, StoppedError, and IngestError or ServeError if the source cannot be read.
        """


class SourceWithPast(Source, Protocol):
    """A source that also knows a cluster at earlier moments."""

    def side_at(self, moment: Until, stop: threading.Event) -> Side:
        """Return the cluster at a moment as one side of a comparison, named by its last zxid and time.

        Raise as `picture` does.
        """


def moment_named(zxid: Zxid, time_ms: int) -> str:
    """Return the name of a side at a moment."""
    return f"{zxid:#x} ({exact_moment(time_ms)})"
