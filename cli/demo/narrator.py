"""The demo's story, with colours and a spinner on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape as escaped_markup

from transport.printable import printable


class Narrator:
    """Narrator of the events on standard output."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._chapter = 0

    def chapter(self, title: str) -> None:
        """Open a chapter."""
        self._chapter += 1
        self._console.print(f"\n[bold]{self._chapter}. {_escaped(title)}[/bold]")

    def say(self, sentence: str) -> None:
        """Print a line of a chapter."""
        self._console.print(f"   {_escaped(sentence)}")

    def fail(self, sentence: str) -> None:
        """Print the reason of an early end."""
        self._console.print(f"\n[bold red]The demo failed:[/bold red] {_escaped(sentence)}")

    def stays_up(self, page_address: str, directory: Path) -> None:
        """Print that everything continues until Ctrl-C, and how to break it."""
        self._console.print(
            f"\n[bold]The cluster and Kontrast stay up.[/bold] Page: {page_address}   Ctrl-C ends everything.\n"
            f"Kill a broker in another terminal: {_escaped(f'kill -9 $(cat {directory}/broker-2.pid)')}"
        )

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Show that the demo waits for something, and in the end how long that took."""
        started = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(_escaped(what)):
                yield
            done = f"{_escaped(what)} "
        else:
            self.say(f"{what} ...")
            yield
            done = ""
        self._console.print(f"   [green]ok[/green] {done}[dim]({time.monotonic() - started:.1f} s)[/dim]")


def _escaped(sentence: str) -> str:
    """Return the sentence without markup, control and direction characters."""
    return escaped_markup(printable(sentence))
