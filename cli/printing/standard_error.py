"""Print sentences (`kontrast: …`) and the log to standard error, as text or as JSON.

Answers go to standard output, by `standard_output`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Final

import click
import msgspec

from transport.printable import Complaints, printable, printable_json
from transport.secret import without_secrets

_LONGEST_LINE: Final = 8_000  # kafka-python quotes megabytes of undecodable data
_MOST_KNOWN: Final = 1_000

_OWN = logging.getLogger("kontrast.cli")

# Loggers of the client libraries, each with its least level, because Kontrast reports failures in its own words.
_LIBRARIES: Final = {
    "httpx": (("httpx",), logging.WARNING),  # it logs each request, so each delivery of an alert
    "kafka": (("kafka",), logging.CRITICAL),  # its failed attempts are errors, several a second without brokers
    "kazoo": (("kazoo", "kontrast.ingest.kazoo"), logging.ERROR),
    "py4j": (("py4j",), logging.CRITICAL),  # its stack of a callback's error comes again with the query's failure
    "uvicorn": (("uvicorn",), logging.ERROR),
}
LIBRARIES: Final = tuple(_LIBRARIES)

_COLOURS: Final = ((logging.ERROR, "red"), (logging.WARNING, "yellow"))


def configure(level: str = "info", *, as_json: bool = False, libraries: Collection[str] = ()) -> None:
    """Send sentences and log records of this level and above to standard error.

    Libraries log at debug only if they are named, because they log their settings and each message.
    """
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _StandardError)]:
        root.removeHandler(handler)
    root.addHandler(_StandardError(_JsonLine() if as_json else _TextLine()))
    root.setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    logging.getLogger("kontrast").setLevel(level.upper())
    _OWN.setLevel(logging.INFO)  # the command's own sentences are no log, so the level does not hide them
    for library, (names, least) in _LIBRARIES.items():
        for name in names:
            quiet = logging.INFO if level == "debug" else least
            logging.getLogger(name).setLevel(logging.DEBUG if library in libraries else quiet)
    root.removeFilter(_is_not_of_py4j)
    if "py4j" not in libraries:
        root.addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether py4j did not log the record, because it logs a lost connection by the root logger."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def pass_on(line: str) -> None:
    """Print a line of a child process, which already has its level and time."""
    click.echo(line, err=True)


def say(sentence: str) -> None:
    """Print a message for the user of the command."""
    _OWN.info(sentence)


def warn(sentence: str) -> None:
    """Print a warning of a likely mistake, in one sentence."""
    _OWN.warning(sentence)


def complain(sentence: str) -> None:
    """Print an error in one sentence."""
    _OWN.error(sentence)


@contextmanager
def progress(*, in_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yield the update of a bar of znodes or bytes, which is drawn only if a person sees standard error."""
    if not sys.stderr.isatty():
        yield lambda _count, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    counts = (DownloadColumn(),) if in_bytes else (MofNCompleteColumn(), "znodes")
    columns = ("read", BarColumn(), *counts, TimeElapsedColumn())
    # Answers go to standard output, so rich must not redirect it.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("read", total=None)
        yield lambda count, total: bar.update(task, completed=count, total=total)


class _OnceAMinute(logging.Filter):
    """Limit a library's repeated message to once a minute. Kontrast's own messages have no limit."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[str, str], Complaints] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.name.partition(".")[0] == "kontrast":
            return True
        said = record.name, str(record.msg)
        if said not in self._known and len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        count = self._known.setdefault(said, Complaints()).due()
        if count > 1:
            record.msg, record.args = f"{record.getMessage()} ({count} times)", ()
        return count > 0


class _StandardError(logging.Handler):
    """Writer to the current standard error, in colour only on a terminal."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.addFilter(_OnceAMinute())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            click.echo(self.format(record), err=True)
        except OSError:
            self.handleError(record)


class _TextLine(logging.Formatter):
    """`kontrast: sentence`, or `TIME LEVEL logger: message`."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == _OWN.name:
            line = f"kontrast: {_harmless(' '.join(record.getMessage().split()))}"
            colour = next((colour for level, colour in _COLOURS if record.levelno >= level), None)
            return line if colour is None else click.style(line, fg=colour)
        line = f"{_time(record)} {record.levelname} {record.name}: {_harmless(record.getMessage())}"
        if record.exc_info is None:
            return line
        return "\n".join([line, *map(_harmless, self.formatException(record.exc_info).split("\n"))])


class _JsonLine(logging.Formatter):
    """One JSON object with time, level, logger, message, and the exception if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _cut(record.getMessage()),
        }
        if record.exc_info is not None:
            line["exception"] = without_secrets(self.formatException(record.exc_info))
        return printable_json(msgspec.json.encode(line)).decode()


def _harmless(text: str) -> str:
    """Return the text as one line without control characters and secrets, whatever it quotes."""
    return printable(without_secrets(text), _LONGEST_LINE)


def _cut(text: str) -> str:
    text = without_secrets(text).encode(errors="backslashreplace").decode()  # file names may not be UTF-8
    return text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + "…"


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
