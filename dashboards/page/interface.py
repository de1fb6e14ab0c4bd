"""Paths of the page and of its JSON interface, each with its question, and the OpenAPI document."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from questions import everywhere
from questions.moments import TIMES
from questions.page.history import ShowHistory
from questions.page.pages import (
    ExplainController,
    ExplainPartition,
    LoseBrokers,
    ShowBroker,
    ShowBrokers,
    ShowCluster,
    ShowFleet,
    ShowGroups,
    ShowTopic,
)
from questions.page.search import Search, SearchAll
from questions.page.topics import ListTopics
from questions.question import Question, schema_of
from questions.whatif.may_restart import MayRestart


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


API: Final = "/api/v1"
DOCUMENT: Final = f"{API}/openapi.json"
_CLUSTER: Final = "/clusters/{cluster}"
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

FLEET: Final = PagePath("/clusters", ShowFleet, "fleet.html", refuses=())
CLUSTER: Final = PagePath(_CLUSTER, ShowCluster, "cluster.html", has_past=True)
BROKERS: Final = PagePath(f"{_CLUSTER}/brokers", ShowBrokers, "brokers.html", has_past=True)
WHAT_IF: Final = PagePath(f"{_CLUSTER}/whatif", ShowBrokers, "whatif.html")
TOPICS: Final = PagePath(f"{_CLUSTER}/topics", ListTopics, "topics.html", has_past=True)
TOPIC: Final = PagePath(f"{_CLUSTER}/topics/{{topic}}", ShowTopic, "topic.html", has_past=True)
PARTITION: Final = PagePath(
    f"{_CLUSTER}/topics/{{topic}}/{{partition}}", ExplainPartition, "partition.html", has_past=True
)
BROKER: Final = PagePath(f"{_CLUSTER}/brokers/{{broker}}", ShowBroker, "broker.html", has_past=True)
CONTROLLER: Final = PagePath(f"{_CLUSTER}/controller", ExplainController, "controller.html", has_past=True)
TIMELINE: Final = PagePath(f"{_CLUSTER}/timeline", ShowHistory, "timeline.html", has_past=True)
CONSEQUENCES: Final = PagePath(f"{_CLUSTER}/consequences", LoseBrokers, "consequences.html", refuses=())
RESTARTABLE: Final = PagePath(f"{_CLUSTER}/restartable", MayRestart)
GROUPS: Final = PagePath(f"{_CLUSTER}/groups", ShowGroups)
SEARCH: Final = PagePath(f"{_CLUSTER}/search", Search, "search.html")
SEARCH_ALL: Final = PagePath("/search", SearchAll, "search.html", refuses=(), operation="searchAll")
EVERYWHERE: Final = tuple(PagePath(f"{_CLUSTER}/{name}", everywhere.question(name)) for name in everywhere.names())
PATHS: Final = (
    *(FLEET, CLUSTER, TOPICS, TOPIC, PARTITION, BROKERS, BROKER, CONTROLLER, TIMELINE),
    *(CONSEQUENCES, RESTARTABLE, GROUPS, SEARCH, SEARCH_ALL, *EVERYWHERE),
)


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the interface."""
    types = [*(path.question.answer for path in PATHS), Refusal]
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


def operation_id(path: PagePath) -> str:
    """Return the name of a path's operation."""
    return path.operation or path.path.rpartition("/")[2].strip("{}")


def _operation(path: PagePath, schema: dict[str, Any]) -> dict[str, Any]:
    named, dated = [_NAME] * ("{cluster}" in path.path), [_AT] * path.has_past
    every = map(_parameter, (*named, *parameters(path), *dated))
    return {
        "operationId": operation_id(path),
        "summary": " ".join((path.question.__doc__ or "").partition("\n\n")[0].split()).removesuffix("."),
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
