"""Decoding of bytes that others wrote, such as znodes, records, rows, stored state, and answers from a network.

Only this module knows in how many ways decoding can fail. The meaning of the bytes is the callers' business.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Generic, Protocol, TypeVar

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
    """Decoder of one form. Make it once, because its first use costs much more than the next."""

    _made: Callable[[type], _Decodes[_Data, Any]]

    def __init__(self, content: type[_Content]) -> None:
        self._content = content

    @cached_property
    def _decoder(self) -> _Decodes[_Data, _Content]:
        return type(self)._made(self._content)

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

    _made = msgspec.json.Decoder


class MsgpackDecoder(_Decoder[bytes | memoryview, _Content]):
    """Decoder of MessagePack of one form."""

    _made = msgspec.msgpack.Decoder
