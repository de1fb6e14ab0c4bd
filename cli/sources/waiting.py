"""Repeat a question until its answer is good, with the options for the repetition."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import click

from cli.printing import standard_error
from cli.running import StoppedError
from cli.settings.parameters import Duration
from cli.sources.source import Source
from dashboards.errors import ServeError
from ingest.errors import IngestError

_Answer = TypeVar("_Answer")


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
        return click.option("--wait", "patience", type=Duration(), metavar="TIME", help=says)(command)

    return add


def refuse_past(source: Source) -> None:
    """Raise UsageError for a source that shows the past, because its answer never changes."""
    if not source.is_live:
        raise click.UsageError("--wait needs a live source, which is --zookeeper, or --from without --until.")


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long and how often a question is repeated. Without patience it is asked once."""

    patience: timedelta | None
    every_seconds: float

    def until(
        self,
        is_good: Callable[[_Answer], bool],
        look: Callable[[threading.Event], _Answer],
        in_a_line: Callable[[_Answer], str],
        stop: threading.Event,
    ) -> _Answer:
        """Repeat until the answer is good or the patience is over. Return the last answer, or raise the last error.

        A line on standard error shows each new reason to wait. Raise StoppedError.
        """
        deadline = time.monotonic() + (self.patience or timedelta(0)).total_seconds()
        shown = ""
        while True:
            is_last = time.monotonic() >= deadline
            try:
                answer = look(stop)
            except (IngestError, ServeError) as error:
                if is_last:
                    raise
                said = f"asking again, because {error}"
            else:
                if is_last or is_good(answer):
                    return answer
                said = in_a_line(answer)
            if said != shown:
                standard_error.say(said)
                shown = said
            if stop.wait(min(self.every_seconds, max(0.0, deadline - time.monotonic()))):
                raise StoppedError
