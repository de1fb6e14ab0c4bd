"""Tools of the server. Each tool is a question, with the cluster to ask, and none writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from questions import everywhere
from questions.question import Question, schema_of

_CLUSTER: Final = "cluster"

TOOLS: Final[Mapping[str, type[Question]]] = {each.tool: each for each in everywhere.every() if each.tool}


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]

    def read(self) -> tuple[Question, str | None]:
        """Return the question, and the name of the cluster if it is given. Raise msgspec.ValidationError."""
        own = {name: value for name, value in self.arguments.items() if name != _CLUSTER}
        return msgspec.convert(own, TOOLS[self.tool]), msgspec.convert(self.arguments.get(_CLUSTER), str | None)


WORKER_BYTES: Final = 8 * 1024**3
"""Bytes of memory that no worker can exceed."""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer in JSON's types with its warnings, or the sentence of a refusal. After `is_last` the worker ends."""

    content: Any = None
    warnings: str = ""
    refusal: str = ""
    is_last: bool = False


def input_schema(tool: type[Question]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    schema = schema_of(tool)
    cluster = {"type": "string", "description": "Name of the cluster. Optional if there is only one."}
    return {**schema, "properties": {**schema["properties"], _CLUSTER: cluster}}
