"""Paths of the page and of its JSON interface, each with its question, and the OpenAPI document."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from questions import everywhere
from questions.moments import TIMES
from questions.question import Question, schema_of


class Parameter(NamedTuple):
    """A parameter of a path, from a field of its question. Several values have the singular name."""

    name: str
    field: str
    says: str
    schema: Mapping[str, Any]
    is_number: bool = False
    is_several: bool = False
    is_in_path: bool = False

    @property
    def refusal(self) -> str:
        """Return the refusal of a wrong value in a sentence."""
        if "enum" in self.schema:
            return f"{self.name} is one of {', '.join(map(str, self.schema['enum']))}."
        return f"{self.name} is {'not a number of a broker or partition' if self.is_number else 'missing'}."


@cache
def parameters(path: type[Question]) -> tuple[Parameter, ...]:
    """Return the parameters of a path except those of every question, which are the cluster and the moment."""
    return tuple(_of_field(path, field, schema) for field, schema in schema_of(path)["properties"].items())


def _of_field(path: type[Question], field: str, schema: Mapping[str, Any]) -> Parameter:
    one = schema.get("items", schema)
    is_number, is_several = one["type"] == "integer", schema["type"] == "array"
    bounds = {"minimum": 0} if is_number and "enum" not in one else {}
    shown = {"type": one["type"], **bounds, **({"enum": one["enum"]} if "enum" in one else {})}
    name = field.removesuffix("s") if is_several else field
    return Parameter(name, field, schema["description"], shown, is_number, is_several, f"{{{name}}}" in path.path)


API: Final = "/api/v1"
DOCUMENT: Final = f"{API}/openapi.json"
_SCHEMAS: Final = "#/components/schemas/"


class Refusal(msgspec.Struct, frozen=True):
    """Answer to a request that cannot be answered, with the reason in a sentence."""

    error: str


_REFUSALS: Final = {
    400: "The question cannot be understood",
    404: "The cluster or the subject does not exist",
    503: "Kontrast does not know the answer now, or computes other pages and sets Retry-After to the seconds to wait",
}
_TEXT: Final = {"type": "string"}
_NAME: Final = Parameter("cluster", "cluster", "The cluster's name, percent-encoded.", _TEXT, is_in_path=True)
_AT: Final = Parameter(
    "at", "at", f"Moment: {TIMES}. Default: the newest. The answer uses the nearest kept moment.", _TEXT
)

PATHS: Final = tuple(each for each in everywhere.every() if each.path)


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the interface."""
    types = [*(path.answer for path in PATHS), Refusal]
    schemas, components = msgspec.json.schema_components(types, ref_template=_SCHEMAS + "{name}")
    for component in components.values():
        component["description"] = inspect.cleandoc(component.get("description", ""))
    paths: dict[str, dict[str, Any]] = {}
    for path, schema in zip(PATHS, schemas, strict=False):
        paths[API + path.path] = {"get": _operation(path, schema)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kontrast",
            "version": "1",
            "summary": "The live page of `kontrast serve` as JSON",
            "description": "A newer Kontrast may add fields and paths. Times are milliseconds since 1970, in UTC.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"login": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"login": {"type": "http", "scheme": "basic"}},
        },
    }


def operation_id(path: type[Question]) -> str:
    """Return the name of a path's operation."""
    return path.operation or path.path.rpartition("/")[2].strip("{}")


def _operation(path: type[Question], schema: dict[str, Any]) -> dict[str, Any]:
    named, dated = [_NAME] * ("{cluster}" in path.path), [_AT] * path.has_past
    every = map(_parameter, (*named, *parameters(path), *dated))
    return {
        "operationId": operation_id(path),
        "summary": path.summary().removesuffix("."),
        "parameters": list(every),
        "responses": {
            "200": {
                "description": "The answer",
                "content": {"application/json": {"schema": schema}},
            },
            # Any path can refuse because all threads are busy (503), or because it has no answer for a moment (400).
            **{str(status): _refused(_REFUSALS[status]) for status in sorted({*path.refuses, 400, 503})},
        },
    }


def _parameter(each: Parameter) -> dict[str, Any]:
    schema = {"type": "array", "items": each.schema} if each.is_several else each.schema
    where = {"in": "path", "required": True} if each.is_in_path else {"in": "query"}
    return {"name": each.name, **where, "description": each.says, "schema": schema}


def _refused(says: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}{Refusal.__name__}"}}}
    return {"description": says, "content": content}
