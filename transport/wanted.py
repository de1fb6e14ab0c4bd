"""How a reader of a stream that lacks its beginning asks the stream's writer for a complete read.

Here belongs where the asking is left: a file in the journal's directory, or a Kafka topic beside the stream's. What a
writer makes of it is its own business.
"""

from __future__ import annotations

from pathlib import Path

from transport.address import KafkaAddress
from transport.segments import JournalError

_FILE = "snapshot-wanted"
_TOPIC_SUFFIX = ".snapshot-wanted"


def want_snapshot(directory: Path) -> None:
    """Ask the writer of a journal for a complete read; raises JournalError."""
    try:
        (directory / _FILE).touch()
    except OSError as error:
        raise JournalError(f"journal {directory}: a complete read cannot be asked for: {error.strerror}") from error


def snapshot_wanted_ns(directory: Path) -> int:
    """When a complete read was asked for last, in nanoseconds since 1970; 0 for never."""
    try:
        return (directory / _FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def wanted_topic(address: KafkaAddress) -> str:
    """The topic in which any message asks the writers of a stream for a complete read."""
    return address.topic + _TOPIC_SUFFIX
