"""Decoding of bytes that others wrote: znodes, records, rows, stored state, answers from a network.

The only place that knows in how many ways that can fail. What the bytes mean is their owners' business.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

_Content = TypeVar("_Content")

_TOO_DEEP = "nested too deeply"


class UndecodableError(ValueError):
    """Bytes that do not have the expected form, in half a sentence."""


class JsonDecoder(Generic[_Content]):
    """Decodes JSON of one form; made once, as that costs more than decoding."""

    __slots__ = ("_decoder",)

    def __init__(self, content: type[_Content]) -> None:
        self._decoder: msgspec.json.Decoder[_Content] = msgspec.json.Decoder(content)

    def decode(self, data: bytes | str) -> _Content:
        """The content; raises UndecodableError."""
        try:
            return self._decoder.decode(data)
        except RecursionError as error:
            raise UndecodableError(_TOO_DEEP) from error
        except ValueError as error:
            raise UndecodableError(str(error)) from error


class MsgpackDecoder(Generic[_Content]):
    """Decodes MessagePack of one form."""

    __slots__ = ("_decoder",)

    def __init__(self, content: type[_Content]) -> None:
        self._decoder: msgspec.msgpack.Decoder[_Content] = msgspec.msgpack.Decoder(content)

    def decode(self, data: bytes | memoryview) -> _Content:
        """The content; raises UndecodableError."""
        try:
            return self._decoder.decode(data)
        except RecursionError as error:
            raise UndecodableError(_TOO_DEEP) from error
        except ValueError as error:
            raise UndecodableError(str(error)) from error
