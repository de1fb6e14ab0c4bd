"""Decoding of bytes that others wrote, such as znodes, records, rows, stored state, and answers from a network.

Only this module knows in how many ways decoding can fail. The meaning of the bytes is the callers' business.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

import msgspec

_Content = TypeVar("_Content", covariant=True)
_Data = TypeVar("_Data", contravariant=True)

UNDECODABLE: Final = (RecursionError, ValueError)
BareJsonDecoder: Final = msgspec.json.Decoder
"""Decoder of JSON that raises UNDECODABLE, for complete reads, of whose states the decoders below cost a tenth."""

_TOO_DEEP = "nested too deeply"


class UndecodableError(ValueError):
    """Bytes that do not have the expected form. The text is half a sentence, which callers continue."""


class _Decodes(Protocol[_Data, _Content]):
    def decode(self, data: _Data, /) -> _Content: ...


class _Decoder(Generic[_Data, _Content]):
    """Decoder of one form. Make it once, because that costs more than decoding."""

    __slots__ = ("_decoder",)
    _decoder: _Decodes[_Data, _Content]

    def decode(self, data: _Data) -> _Content:
        """Return the content of the bytes. Raise UndecodableError."""
        try:
            return self._decoder.decode(data)
        except RecursionError as error:
            raise UndecodableError(_TOO_DEEP) from error
        except ValueError as error:
            raise UndecodableError(str(error)) from error


class JsonDecoder(_Decoder[bytes | str, _Content]):
    """Decoder of JSON of one form."""

    __slots__ = ()

    def __init__(self, content: type[_Content]) -> None:
        self._decoder = msgspec.json.Decoder(content)


class MsgpackDecoder(_Decoder[bytes | memoryview, _Content]):
    """Decoder of MessagePack of one form."""

    __slots__ = ()

    def __init__(self, content: type[_Content]) -> None:
        self._decoder = msgspec.msgpack.Decoder(content)
