"""Paths of the page and of its JSON interface, the OpenAPI document, and requests as the questions of the paths."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from dashboards.page.newest_pages import PageConfig, PageState
from questions import everywhere
from questions.explain.explanation import Explanation
from questions.explain.subject import NUMBER
from questions.moments import TIMES, read_moment
from questions.page.history import History, recent_lanes
from questions.page.known_clusters import KnownCluster, KnownClusters
from questions.page.overview import Overview
from questions.page.pages import BrokerAnswer, TopicAnswer
from questions.page.search import subject_of
from questions.question import NotFoundError, Question, UnknownClusterError, schema_of
from questions.timeline.timeline import Timeline


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

_FIELD: Final = re.compile(r"field `(\w+)`|at `\$\.(\w+)")  # in messages of msgspec
_REFUSING: Final = (NotFoundError, UnknownClusterError)

Answer = msgspec.Struct | tuple[msgspec.Struct, ...]

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
            **{str(status): _described(_REFUSALS[status]) for status in sorted({*path.refuses, 400, 503})},
        },
    }


def _parameter(each: Parameter) -> dict[str, Any]:
    schema = {"type": "array", "items": each.schema} if each.is_several else each.schema
    where = {"in": "path", "required": True} if each.is_in_path else {"in": "query"}
    return {"name": each.name, **where, "description": each.says, "schema": schema}


def _described(says: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}{Refusal.__name__}"}}}
    return {"description": says, "content": content}


class Resources:
    """Asks the question of each path about the followed clusters, or refuses the request."""

    def __init__(self, clusters: KnownClusters, config: PageConfig) -> None:
        self.clusters = clusters
        self._config = config
        self._judged: tuple[object, Overview] | None = None

    def now(self, request: Request) -> KnownCluster:
        """Return the present cluster of the path, which may not exist."""
        return KnownCluster(self.clusters, named(request, "cluster") if "cluster" in request.path_params else "")

    def then(self, request: Request, path: type[Question]) -> KnownCluster:
        """Return the cluster of the path at the nearest kept moment to the requested one."""
        cluster, asked = self.now(request), request.query_params.get("at")
        if asked is None or (path.has_past and not asked.strip()):
            return cluster
        if not path.has_past:
            raise HTTPException(400, "This answer has only the present. Leave out at, or ask the timeline.")
        try:
            return self.clusters.at(cluster.name, _moment_ms(asked.strip()))
        except _REFUSING as error:
            raise _refused(error, cluster, path) from error

    def answer(self, request: Request, path: type[Question], cluster: KnownCluster) -> Answer:
        """Ask the question of the path."""
        question = _question(request, path)
        try:
            answer: Answer = question.on_page(cluster)
        except _REFUSING as error:
            raise _refused(error, cluster, path) from error
        return answer

    def shown_cluster(self, cluster: KnownCluster, answer: Answer | str, state: PageState) -> Overview | None:
        """Return the cluster whose state the bar or the icon of the page shows, which is the worst one of all.

        The newest judgement is kept, because viewers of many pages of a cluster request them at the same moment.
        """
        shown = answer.overview if isinstance(answer, History) else answer
        if isinstance(shown, tuple):
            return next((each for each in shown if isinstance(each, Overview)), None)
        if isinstance(shown, Overview):
            return shown
        if not cluster.memory.knows(cluster.name):
            return None
        key, kept = (cluster.name, cluster.at_ms, state), self._judged
        if kept is None or kept[0] != key:
            kept = self._judged = key, cluster.judged()
        return kept[1]


def named(request: Request, part: str) -> str:
    """Return a name from the path."""
    return unquote(request.path_params[part])


def _question(request: Request, path: type[Question]) -> Question:
    """Decode the request. Refuse a wrong value in a sentence about its parameter."""
    values: dict[str, object] = {}
    for each in parameters(path):
        said = [unquote(request.path_params[each.name])] if each.is_in_path else request.query_params.getlist(each.name)
        if each.is_number and not all(map(NUMBER.fullmatch, said)):
            raise HTTPException(400, each.refusal)
        if said and (said[-1] or "enum" not in each.schema):  # a form sends a choice that is open as an empty text
            values[each.field] = said if each.is_several else said[-1]
    try:
        return msgspec.convert(values, path, strict=False)
    except msgspec.ValidationError as error:
        field, refusals = _FIELD.search(str(error)), {each.field: each.refusal for each in parameters(path)}
        raise HTTPException(400, f"{error}." if field is None else refusals[field[1] or field[2]]) from error


def recent(cluster: KnownCluster, answer: Answer | str) -> Timeline | None:
    """Return the last minutes of the subject that the page explains, if anything was wrong."""
    explained = answer.explanation if isinstance(answer, TopicAnswer | BrokerAnswer) else answer
    subject = subject_of(explained.subject) if isinstance(explained, Explanation) else None
    return None if subject is None else recent_lanes(cluster, subject)


def _refused(error: Exception, cluster: KnownCluster, path: type[Question]) -> HTTPException:
    """Return the refusal of a question with its status of HTTP."""
    if isinstance(error, NotFoundError):
        return HTTPException(404, _ended(str(error))) if 404 in path.refuses else HTTPException(400, str(error))
    refusal = f"Cluster {cluster.name}: {error}"
    if cluster.memory.knows(cluster.name):
        return HTTPException(503, _ended(refusal))
    return HTTPException(404, _ended(refusal + cluster.clusters.similar(cluster.name)))


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


def _moment_ms(said: str) -> int:
    """Return the requested time in milliseconds since 1970."""
    try:
        at_ms = read_moment(said).time_ms
    except ValueError:
        at_ms = None
    if at_ms is None:
        raise HTTPException(400, f"at is no moment. Write {TIMES}.")
    return at_ms
