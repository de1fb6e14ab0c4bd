"""Sources of a question's cluster, which are ZooKeeper, its files, or Kontrast's own data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias

from questions.question import EVERYTHING_NOW, NotFoundError, Scope

if TYPE_CHECKING:
    from questions.picture import Picture

PROBE_PATIENCE_SECONDS: Final = 5.0  # monitoring systems kill a plugin that does not answer
UNNAMED: Final = "cluster"  # name of a cluster that has no name

Looked: TypeAlias = "Mapping[str, Picture | NotFoundError]"  # clusters by name, or why one was not read
Look: TypeAlias = "Callable[[], Looked]"


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

    def looking(self, stop: threading.Event) -> AbstractContextManager[Look]:
        """Return a function that returns the clusters of the source, and raises as `picture` does."""
        return nullcontext(lambda: {"": self.picture(EVERYTHING_NOW, stop)})
