"""Extremes of a struct's fields, from its own definition, so that a new field is tried at once.

The choice of extreme values belongs here, as JSON has them. Each test decides on its subject.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

TEXTS = (
    "",
    " ",
    "\x00",
    "a\nb\r\n",
    'quo"te',
    "back\\slash\\n",
    '{x="y"} 1\n# HELP',
    "Gr\u00fc\u00dfe-\u65e5\u672c-\U0001f4a5",
    "\u2028\u202e\ufeff\x7f\x85",
    "\ud800",  # half of a pair, which is possible in JSON, but not in UTF-8
    "{{ .Labels }} <b>&amp;</b> $1",
    "NaN",
    "-1",
    "/brokers/topics/../..",
    "x" * 20_000,
)
NUMBERS = (
    0,
    1,
    -1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    2**64,
    10**400,
)
FRACTIONS = (0.5, -0.0, 1e308, -1e308, 5e-324)
MANY = 300


def extremes(kind: inspect.Type) -> list[Any]:  # noqa: C901 (a case for each type of msgspec)
    """Return possible values for a field of this type, most of them valid, as JSON has them."""
    match kind:
        case inspect.IntType():
            bounds = [bound for bound in (kind.ge, kind.gt, kind.le, kind.lt) if bound is not None]
            return [*NUMBERS, *(bound + by for bound in bounds for by in (-1, 0, 1)), 1.5, "1"]
        case inspect.Metadata():
            return extremes(kind.type)
        case inspect.StrType():
            return [*TEXTS, 1]
        case inspect.FloatType():
            return [*FRACTIONS, *NUMBERS]
        case inspect.BoolType():
            return [True, False, 1]
        case inspect.NoneType():
            return [None]
        case inspect.EnumType():
            return [*(member.value for member in kind.cls), "no such"]
        case inspect.LiteralType():
            return [*kind.values, -1]
        case inspect.UnionType():
            return [value for each in kind.types for value in extremes(each)]
        case inspect.VarTupleType() | inspect.ListType():
            items = extremes(kind.item_type)
            return [[], *([item] for item in items), [items[0]] * MANY, [items[0], items[0]]]
        case inspect.TupleType() | inspect.NamedTupleType():
            types = kind.item_types if isinstance(kind, inspect.TupleType) else [field.type for field in kind.fields]
            first = [extremes(each)[0] for each in types]
            changed = (
                [*first[:at], value, *first[at + 1 :]] for at, each in enumerate(types) for value in extremes(each)
            )
            return [first, [], *changed]
        case inspect.DictType():
            keys, values = extremes(kind.key_type), extremes(kind.value_type)
            good = "1" if isinstance(kind.key_type, inspect.IntType) else "a"
            return [{}, *({str(key): values[0]} for key in keys), *({good: value} for value in values)]
        case inspect.StructType():
            base = {field.encode_name: extremes(field.type)[0] for field in kind.fields}
            return [base, *(changed for _, changed in changes(kind.cls, base))]
    raise AssertionError(f"no extremes of {kind} are known")


def changes(struct: type[msgspec.Struct], base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the base with one field at one extreme, for every field and each of its extremes, and without the field."""
    for field in fields_of(struct):
        name = field.encode_name
        yield name, {key: value for key, value in base.items() if key != name}
        for value in extremes(field.type):
            yield name, {**base, name: value}


def any_change(struct: type[msgspec.Struct], base: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw the base with any of its fields at extremes, several at once."""
    fields = {field.encode_name: st.sampled_from(extremes(field.type)) for field in fields_of(struct)}
    return st.fixed_dictionaries({}, optional=fields).map(lambda changed: {**base, **changed})


def fields_of(struct: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    """Return all fields of the struct."""
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    assert {field.name for field in described.fields} == set(struct.__struct_fields__)
    return described.fields


def as_json(value: object) -> bytes:
    """Return the value as a stranger might write it, even if UTF-8 cannot express it."""
    return json.dumps(value).encode()
