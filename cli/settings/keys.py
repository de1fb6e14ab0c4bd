"""Settings of a part in their written form. Each field of its frozen dataclass is a key.

A key has spellings (TOML, flag, environment) and parses text as the field's type. `cli.settings.config` decides the
precedence, and the dataclass the permitted values.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec

from transport.address import Address, JournalAddress, parse_address

# Fields that cannot have the operator's name, because `from` is a Python keyword. `to` goes with it.
_WRITTEN_AS: Final = {"source": "from", "sink": "to"}

# Notation of an unset setting. TOML has no word for it.
NONE: Final = "none"

# An address of Kafka has commas itself.
_BETWEEN_ADDRESSES: Final = re.compile(r"\s*,\s*(?=journal:|kafka://)")

_TYPE_WORDS: Final[Mapping[object, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting with its spellings, its field, and the field's type and default."""

    name: str
    field: str
    hint: object
    default: object  # dataclasses.MISSING without a default
    reader: Callable[[Any], object] | None = None  # raises ValueError for a value that the part cannot read

    @property
    def required(self) -> bool:
        """Return whether the part cannot run without the setting."""
        return self.default is dataclasses.MISSING

    @property
    def flag(self) -> str:
        """Return the key on a command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def can_be_none(self) -> bool:
        """Return whether the setting may be switched off."""
        return types.NoneType in typing.get_args(self.hint)

    @property
    def is_switch(self) -> bool:
        """Return whether the key's only values are true and false."""
        return _without_none(self.hint) == (bool,)

    @property
    def is_table(self) -> bool:
        """Return whether the key holds names and values of its own."""
        return typing.get_origin(self.hint) is collections.abc.Mapping

    @property
    def is_address(self) -> bool:
        """Return whether the key names a stream."""
        return JournalAddress in typing.get_args(self.hint)

    @property
    def is_several(self) -> bool:
        """Return whether the key may be a list."""
        return any(typing.get_origin(hint) in (tuple, list, frozenset) for hint in _without_none(self.hint))

    @property
    def expected(self) -> str:
        """Return the values that may be written, in words."""
        words = [_words(hint) for hint in _without_none(self.hint)]
        return " or ".join([*words, repr(NONE)] if self.can_be_none else words)

    def from_toml(self, value: object) -> object:
        """Return the field's value for a TOML value. Raise ValueError with the expected form."""
        return self._checked(self._convert(_as_texts(value) if self.is_table else value, strict=True))

    def from_text(self, text: str) -> object:
        """Return the field's value for a flag or an environment variable. Raise ValueError with the expected form."""
        if self.is_table:
            return self._checked(read_pairs(text.split(",")))
        if self.is_address and self.is_several:
            return self._checked(self._convert(_BETWEEN_ADDRESSES.split(text), strict=False))
        if self.is_several:
            items = [item.strip() for item in text.split(",") if item.strip()]
            return self._checked(self._convert(items, strict=False))
        return self._checked(self._convert(text, strict=False))

    def _checked(self, value: object) -> object:
        if self.reader is not None and value is not None:
            self.reader(value)
        return value

    def _convert(self, value: object, *, strict: bool) -> object:
        if value == NONE and self.can_be_none:
            return None
        if value == "" and self.default != "":
            raise ValueError("must not be empty")
        if self.is_address and isinstance(value, str):
            return parse_address(value)
        if self.is_address and self.is_several and isinstance(value, list):
            addresses = tuple(parse_address(str(each)) for each in value)
            return addresses[0] if len(addresses) == 1 else addresses
        try:
            hint = str if self.is_address else self.hint
            converted = msgspec.convert(value, hint, strict=strict, dec_hook=_from_builtin)
        except msgspec.ValidationError:
            raise ValueError(f"must be {self.expected}, not {value!r}") from None
        if isinstance(converted, float) and not math.isfinite(converted):
            raise ValueError(f"must be a finite number, not {value!r}")
        return converted


def keys_of(config_type: type) -> dict[str, Key]:
    """Return the keys of a part's configuration by name, in the order of its fields."""
    hints = typing.get_type_hints(config_type)
    keys = {}
    for field in dataclasses.fields(config_type):
        if not field.metadata.get("is_key", True):
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        name = _WRITTEN_AS.get(field.name, field.name)
        reader = field.metadata.get("reader")
        keys[name] = Key(name=name, field=field.name, hint=hints[field.name], default=default, reader=reader)
    return keys


def read_pairs(items: Iterable[str]) -> dict[str, str]:
    """Return the pairs of KEY=VALUE texts. Raise ValueError."""
    pairs: dict[str, str] = {}
    for item in items:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not (name and equals):
            raise ValueError(f"must be KEY=VALUE, not {item!r}")
        if name in pairs:
            raise ValueError(f"{name} is given twice")
        pairs[name] = value
    return pairs


def _as_texts(table: object) -> object:
    if not isinstance(table, dict):
        return table
    for name, value in table.items():
        if isinstance(value, dict):
            raise ValueError(f'{name!r} is a table. Write names with dots in quotes, like "min.insync.replicas" = 2')
        if not isinstance(value, (str, int)):
            raise ValueError(f"{name} must be a text, a whole number, true or false, not {value!r}")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in table.items()}


def _from_builtin(hint: type, value: object) -> object:
    if hint is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise TypeError


def _without_none(hint: object) -> tuple[object, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(member for member in typing.get_args(hint) if member is not types.NoneType)
    return (hint,)


def _words(hint: object) -> str:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(str(member.value) for member in hint)
    if typing.get_origin(hint) is typing.Literal:
        return "one of " + ", ".join(map(str, typing.get_args(hint)))
    if typing.get_origin(hint) in (tuple, list, frozenset):
        return "a list of them" if typing.get_args(hint)[0] == Address else "a list"
    if typing.get_origin(hint) is collections.abc.Mapping:
        return "a table"
    if getattr(hint, "__module__", "") == JournalAddress.__module__:
        return "journal:DIRECTORY" if hint is JournalAddress else "kafka://HOST:PORT/TOPIC"
    return _TYPE_WORDS.get(getattr(hint, "__supertype__", hint), str(hint))
