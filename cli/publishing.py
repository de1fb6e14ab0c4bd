"""Publish a history into a stream, with its progress, for `kontrast replay --into`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cli.printing import standard_error
from ingest.files.history import History
from ingest.replay.publication import Publication
from wording.sentences import counted
from wording.times import exact_moment


def publish(history: History, publication: Publication, stop: threading.Event) -> bool:
    """Publish the history until its end or `stop`. Return False if it has no znode of a cluster."""
    with _progress(history, publication) as show:
        has_znodes = publication.run(history.records(), show)
    for note in history.files.notes:
        standard_error.say(note)
    if has_znodes:
        count, until = counted(publication.records, "record"), exact_moment(publication.as_of_ms)
        ends = "stopped. To go on, begin again with an empty stream" if stop.is_set() else "the past ends there"
        standard_error.say(f"{publication.to} has {count} of the past, up to {until}: {ends}")
    return has_znodes


@contextmanager
def _progress(history: History, publication: Publication) -> Iterator[Callable[[], None]]:
    """Yield the update of a bar with the published moment, which is drawn only if a person sees standard error."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=history.files.total_bytes)
        yield lambda: progress.update(
            task, completed=history.files.read_bytes, description=exact_moment(publication.as_of_ms)
        )
