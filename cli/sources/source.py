"""Interface of a source of a cluster."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

if TYPE_CHECKING:
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
