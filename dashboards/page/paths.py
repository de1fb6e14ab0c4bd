"""Paths with their questions, whose fields are the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from questions.question import Question, schema_of


class PagePath(NamedTuple):
    """A path of the interface and its question. If it has a template, the same path without `API` is a page."""

    path: str
    question: type[Question]
    template: str = ""
    has_past: bool = False  # the parameter `at` is allowed
    refuses: tuple[int, ...] = (404,)  # HTTP statuses of its refusals, beside those that any path has
    operation: str = ""  # by default the last part of the path


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
def parameters(path: PagePath) -> tuple[Parameter, ...]:
    """Return the parameters of a path except those of every question, which are the cluster and the moment."""
    return tuple(_of_field(path, field, schema) for field, schema in schema_of(path.question)["properties"].items())


def _of_field(path: PagePath, field: str, schema: Mapping[str, Any]) -> Parameter:
    one = schema.get("items", schema)
    is_number, is_several = one["type"] == "integer", schema["type"] == "array"
    bounds = {"minimum": 0} if is_number and "enum" not in one else {}
    shown = {"type": one["type"], **bounds, **({"enum": one["enum"]} if "enum" in one else {})}
    name = field.removesuffix("s") if is_several else field
    return Parameter(name, field, schema["description"], shown, is_number, is_several, f"{{{name}}}" in path.path)
