"""What the command says on standard error: its own sentences (`kontrast: …`) and the log, as text or as JSON.

The only place that prints sentences for the commands. What is said is decided where it is known. The rows that a
command is asked for it prints itself, to standard output; only what becomes of them without a reader is here.
"""

from __future__ import annotations

import logging
import os
import sys
from datetime import datetime, timezone
from typing import Final

import click
import msgspec

_OWN = logging.getLogger("kontrast.cli")

# What is let through of the client libraries' own logs; the parts say in their own words what these meet.
_LIBRARIES: Final = {
    "kafka": logging.CRITICAL,  # it calls each attempt that fails an error, several a second while brokers are away
    "kazoo": logging.ERROR,
    "kontrast.ingest.kazoo": logging.ERROR,
    "py4j": logging.CRITICAL,  # it logs the stack of what a callback raises, which also comes as the query's failure
    "uvicorn": logging.ERROR,
}


_COLOURS: Final = ((logging.ERROR, "red"), (logging.WARNING, "yellow"))


def configure(level: str = "info", *, as_json: bool = False) -> None:
    """Send sentences and log records of this level and above to standard error."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _StandardError)]:
        root.removeHandler(handler)
    root.addHandler(_StandardError(_JsonLine() if as_json else _TextLine()))
    root.setLevel(level.upper())
    _OWN.setLevel(logging.INFO)  # the command's own sentences are its answer, not its log
    for name, least in _LIBRARIES.items():
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else least)


def say(sentence: str) -> None:
    """Tell the person who started the command something."""
    _OWN.info(sentence)


def warn(sentence: str) -> None:
    """Tell the person who started the command what may be a mistake, in one sentence."""
    _OWN.warning(sentence)


def complain(sentence: str) -> None:
    """Tell the person who started the command what went wrong, in one sentence."""
    _OWN.error(sentence)


def discard_rows() -> None:
    """Drop what is still buffered for standard output: its reader has left, and the interpreter's end must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _StandardError(logging.Handler):
    """Writes to the standard error of the moment, in colour only on a terminal."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            click.echo(self.format(record), err=True)
        except OSError:
            self.handleError(record)


class _TextLine(logging.Formatter):
    """`kontrast: sentence`, or `TIME LEVEL logger: message`."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == _OWN.name:
            line = f"kontrast: {' '.join(record.getMessage().split())}"
            colour = next((colour for level, colour in _COLOURS if record.levelno >= level), None)
            return line if colour is None else click.style(line, fg=colour)
        line = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}"
        return line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"


class _JsonLine(logging.Formatter):
    """One JSON object: time, level, logger, message, and the exception if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info is not None:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
