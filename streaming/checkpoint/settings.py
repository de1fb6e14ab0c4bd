"""Settings of a job that are fixed under its checkpoint, and the changes after which the checkpoint begins again."""

from __future__ import annotations

from typing import Final

from controller.restore.stored_context import STATE_VERSION
from streaming.checkpoint.directory import STATE_FORMAT, Settings, number, require, stored_settings
from streaming.checkpoint.place import Place
from streaming.config import StreamConfig
from transport.address import Address, JournalAddress

SHUFFLE_PARTITIONS: Final = "shuffle partitions"
BEGINS_AGAIN: Final = "The job begins again at the newest complete read in the source"


def settings_of(config: StreamConfig) -> Settings:
    """Return the settings of a checkpoint that begins now."""
    return {
        STATE_FORMAT: STATE_VERSION,
        "chunk count": config.chunk_count,
        SHUFFLE_PARTITIONS: config.shuffle_partitions or 1,
        "source": _identity(config.source),
        "sink": _identity(config.sink),
    }


def why_begin_again(place: Place, config: StreamConfig, stored: Settings) -> str | None:
    """Return the reason for a rebuild, if there is one. Raise StreamError if other settings differ.

    The state cannot move to another number of shuffle partitions, and state of an older format cannot be read.
    """
    wanted, reason = {**settings_of(config)}, None
    partitions, version = stored.get(SHUFFLE_PARTITIONS), stored.get(STATE_FORMAT)
    if partitions != wanted.pop(SHUFFLE_PARTITIONS):
        reason = f"was started with {partitions} shuffle partitions, not {config.shuffle_partitions}"
    if isinstance(version, int) and version < STATE_VERSION:
        del wanted[STATE_FORMAT]
        reason = "has the state of an older Kontrast"
    require(place, stored, wanted)
    return reason


def check_stored(place: Place, config: StreamConfig) -> str:
    """Return whether the checkpoint can continue with these settings, without a change. Raise StreamError otherwise."""
    stored = stored_settings(place)
    if stored is None:
        return "a new one"
    reason = why_begin_again(place, config.with_shuffle_partitions(number(place, stored, SHUFFLE_PARTITIONS)), stored)
    return f"it {reason}. {BEGINS_AGAIN}" if reason else "the same as at its first start"


def _identity(address: Address) -> str:
    """Return the part of an address that is fixed under a checkpoint. Kafka's bootstrap servers may change."""
    if isinstance(address, JournalAddress):
        return f"journal:{address.directory.absolute()}"
    return f"kafka topic {address.topic}"
