"""Decoding of bytes that others wrote: znodes, records, rows, stored state, answers from a network.

The only place that knows in how many ways that can fail. What the bytes mean is their owners' business.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

_Content = TypeVar("_Content", covariant=True)
_Data = TypeVar("_Data", contravariant=True)

_TOO_DEEP = "nested too deeply"


class UndecodableError(ValueError):
    """Bytes that do not have the expected form, in half a sentence."""


class _Decodes(Protocol[_Data, _Content]):
    def decode(self, data: _Data, /) -> _Content: ...


class _Decoder(Generic[_Data, _Content]):
    """A decoder of one form; made once, as that costs more than decoding."""

    __slots__ = ("_decoder",)
    _decoder: _Decodes[_Data, _Content]

    def decode(self, data: _Data) -> _Content:
        """The content; raises UndecodableError."""
        try:
            return self._decoder.decode(data)
        except RecursionError as error:
            raise UndecodableError(_TOO_DEEP) from error
        except ValueError as error:
            raise UndecodableError(str(error)) from error


class JsonDecoder(_Decoder[bytes | str, _Content]):
    """Decodes JSON of one form."""

    __slots__ = ()

    def __init__(self, content: type[_Content]) -> None:
        self._decoder = msgspec.json.Decoder(content)


class MsgpackDecoder(_Decoder[bytes | memoryview, _Content]):
    """Decodes MessagePack of one form."""

    __slots__ = ()

    def __init__(self, content: type[_Content]) -> None:
        self._decoder = msgspec.msgpack.Decoder(content)
