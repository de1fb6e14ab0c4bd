"""Encoding of a context as bytes to be stored.

The bytes are a header and chunks of topics, each with the version of its form.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from controller.contract.decoding import MsgpackDecoder, UndecodableError
from controller.contract.ids import BrokerId
from controller.model.context import FOLLOWING, Context, Header
from controller.model.topics import Topic, Topics
from controller.restore import CHUNK_COUNT
from controller.rules.releases import Profile
from controller.rules.settings import GivenSettings
from controller.rules.timing import CLEAN_STOP_MS
from controller.rules.topic_ranks import TopicRanks
from controller.view.counting import count_gauges
from controller.view.invariants import check_chunk, check_queues
from controller.view.partition_issues import index_issues

STATE_VERSION: Final = 16

_VERSION = STATE_VERSION.to_bytes(2, "big")
_ENCODER = msgspec.msgpack.Encoder()
_HEADER_DECODER = MsgpackDecoder(Header)
_CHUNK_DECODER = MsgpackDecoder(dict[str, Topic])

_Part = TypeVar("_Part", Header, dict[str, Topic])


class StateVersionError(ValueError):
    """Stored state of a version that this Kontrast does not read, or that cannot be decoded."""


def new_context(  # noqa: PLR0913 (what `Header.configure` takes)
    cluster: str,
    settings: GivenSettings | None = None,
    profile: Profile | None = None,
    preferred_controllers: tuple[BrokerId, ...] = (),
    topic_ranks: TopicRanks = (),
    clean_stop_ms: int = CLEAN_STOP_MS,
    *,
    chunk_count: int = CHUNK_COUNT,
) -> Context:
    """Return the empty context of a cluster.

    The number of chunks is fixed for the life of its state, and changes no row.
    """
    header = Header(cluster, chunk_count)
    header.configure(settings or {}, profile, preferred_controllers, topic_ranks, clean_stop_ms)
    return Context(header, Topics.empty(chunk_count))


def reconfigured(
    context: Context,
    settings: GivenSettings,
    profile: Profile | None,
    preferred_controllers: tuple[BrokerId, ...] = (),
    topic_ranks: TopicRanks = (),
    clean_stop_ms: int = CLEAN_STOP_MS,
) -> Context:
    """Return the context under these settings and this profile, with gauges recounted if they differ.

    A profile of None follows the znodes.
    """
    header = context.header
    changed = header.copy()
    changed.configure(settings, profile, preferred_controllers, topic_ranks, clean_stop_ms)
    if changed == header:
        return context
    # In other phases no recount is needed, because the end of a complete read counts everything.
    if changed.phase is FOLLOWING and changed.counting_rules != header.counting_rules:
        changed.tally.gauges = count_gauges(context.topics, changed.counting_rules)
        changed.tally.issues, changed.tally.offline_by_topic = index_issues(context.topics, changed)
    return Context(changed, context.topics)


def encode_header(context: Context) -> bytes:
    """Return the header of the context as bytes."""
    return _VERSION + _ENCODER.encode(context.header)


def changed_chunks(before: Context, after: Context) -> dict[int, bytes]:
    """Return the bytes of the chunks that differ from those of `before`, by index."""
    changed = after.topics.changed_since(before.topics)
    return {index: _VERSION + _ENCODER.encode(after.topics.chunk(index)) for index in changed}


def restore_context(cluster: str, header: bytes, load_chunk: Callable[[int], bytes | None]) -> Context:
    """Return the context from its stored parts. A chunk is loaded when it is first used.

    Topics that events in flight affect are used at once. `load_chunk` returns None for a chunk that was never written.
    Raises StateVersionError and InvariantError, for a chunk at its first use.
    """
    decoded = restore_header(cluster, header)

    def load(index: int) -> dict[str, Topic]:
        encoded = load_chunk(index)
        chunk = {} if encoded is None else _decode(encoded, _CHUNK_DECODER)
        check_chunk(index, decoded.chunk_count, chunk)
        return chunk

    topics = Topics.load(decoded.chunk_count, load)
    check_queues(decoded, topics)
    return Context(decoded, topics)


def restore_header(cluster: str, header: bytes) -> Header:
    """Return the stored header without checks of its content. Raise StateVersionError."""
    decoded = _decode(header, _HEADER_DECODER)
    if decoded.cluster != cluster:
        raise StateVersionError(f"the stored state is of cluster {decoded.cluster!r}, not {cluster!r}")
    return decoded


def _decode(encoded: bytes, decoder: MsgpackDecoder[_Part]) -> _Part:
    version = int.from_bytes(encoded[:2], "big")
    if version != STATE_VERSION:
        raise StateVersionError(f"stored state has version {version}, this Kontrast reads {STATE_VERSION}")
    was_enabled = gc.isenabled()
    gc.disable()  # decoding makes many objects and no garbage. Without the collector it is three to four times as fast
    try:
        return decoder.decode(memoryview(encoded)[2:])
    except UndecodableError as error:
        raise StateVersionError(f"stored state cannot be read: {error}") from error
    finally:
        if was_enabled:
            gc.enable()
