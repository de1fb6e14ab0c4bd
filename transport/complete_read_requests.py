"""Requests of readers for a complete read, in a file beside the journal or a topic beside the stream's."""

from __future__ import annotations

from pathlib import Path

from transport.address import KafkaAddress
from transport.segments import JournalError

_FILE = "snapshot-wanted"
_TOPIC_SUFFIX = ".snapshot-wanted"


def request_complete_read(directory: Path) -> None:
    """Ask the writer of a journal for a complete read. Raise JournalError."""
    try:
        (directory / _FILE).touch()
    except OSError as error:
        raise JournalError(f"journal {directory}: a complete read cannot be requested: {error.strerror}") from error


def complete_read_requested_ns(directory: Path) -> int:
    """Return when a complete read was requested last, in nanoseconds since 1970, or 0 for never."""
    try:
        return (directory / _FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def request_topic(address: KafkaAddress) -> str:
    """Return the topic in which any message asks the writers of a stream for a complete read."""
    return address.topic + _TOPIC_SUFFIX
