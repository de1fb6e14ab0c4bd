"""The JSON interface, with each path's answer and parameters, and its OpenAPI document."""

from __future__ import annotations

import inspect
import re
from pathlib import Path as File
from typing import Any, Final, NamedTuple

import msgspec

from controller.contract.decoding import JsonDecoder
from questions.clients.known_groups import KnownGroups
from questions.explain.explanation import Explanation
from questions.explain.from_rows import BrokerAnswer, TopicAnswer
from questions.history import WINDOWS_SECONDS, History
from questions.lease import LONGEST_LEASE_SECONDS, SHORTEST_LEASE_SECONDS, Lease
from questions.moments import TIMES
from questions.overview.impact_map import Moment
from questions.overview.overview import Overview
from questions.restartable import Restartable
from questions.search import Found
from questions.topics import TopicList, TopicOrder
from questions.whatif.losses import WhatIf

API: Final = "/api/v1"
DOCUMENT: Final = f"{API}/openapi.json"
_CLUSTER: Final = "/clusters/{cluster}"
EXAMPLES: Final = File(__file__).with_name("examples.json")  # REWRITE=1 pytest tests/dashboards/test_interface.py
_SCHEMAS: Final = "#/components/schemas/"


class Refusal(msgspec.Struct, frozen=True):
    """Answer to a request that cannot be answered, with the reason in a sentence."""

    error: str


class Query(NamedTuple):
    """Query parameter of a path."""

    name: str
    says: str
    schema: dict[str, Any]
    repeats: bool = False


class Path(NamedTuple):
    """A path of the interface. The same path without `API` in front is a page."""

    path: str
    says: str
    gives: Any  # the type of the answer
    refuses: tuple[int, ...]  # HTTP statuses of its refusals
    queries: tuple[Query, ...] = ()
    method: str = "get"
    operation: str = ""  # by default the last part of the path


_REFUSALS: Final = {
    400: "The question cannot be understood",
    403: "A web page asks, or a request of another machine while serve has no login",
    404: "The cluster or the subject does not exist",
    503: "Kontrast does not know the answer now, or computes other pages and sets Retry-After to the seconds to wait",
}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer", "minimum": 0}
AT: Final = Query("at", f"Moment: {TIMES}. Default: the newest. The answer uses the nearest kept moment.", _TEXT)
_MAP: Final = Query(
    "map",
    "Moment of `map`: before the incident, now, first or second (after these brokers have started), or loss (of one "
    "more broker). Default: now.",
    {"type": "string", "enum": [moment.value for moment in Moment]},
)
_NAMED_IN_PATHS: Final = {
    "cluster": "The cluster's name, percent-encoded.",
    "topic": "The topic's name, percent-encoded.",
    "partition": "The partition's number.",
    "broker": "The broker's id.",
}

_LEASE_SECONDS: Final = {"type": "integer", "minimum": SHORTEST_LEASE_SECONDS, "maximum": LONGEST_LEASE_SECONDS}
_ACCEPT_TOPIC: Final = Query(
    "accept_topic", "Topics that may go offline or reject acks=all, for example scratch-*.", _TEXT, repeats=True
)
_ACCEPT_ABSENT: Final = Query(
    "accept_absent", "Brokers that need not come back, for example a wrong id in a reassignment.", _NUMBER, repeats=True
)

FLEET: Final = Path(
    "/clusters",
    "Every cluster on one screen, the worst first",
    tuple[Overview, ...],
    (),
    (Query("words", "Only clusters with this text in name, state, event, reason or effect, in any case.", _TEXT),),
)
CLUSTER: Final = Path(_CLUSTER, "A cluster on one screen", Overview, (400, 404), (AT, _MAP))
BROKERS: Final = Path(f"{_CLUSTER}/brokers", "The brokers by rack", Overview, (400, 404), (AT,))
WHAT_IF: Final = Path(f"{_CLUSTER}/whatif", "Brokers and racks to choose from", Overview, (404,))
TOPICS: Final = Path(
    f"{_CLUSTER}/topics",
    "Fifty of the cluster's topics, and the totals of all selected ones",
    TopicList,
    (400, 404, 503),
    (
        Query("words", "Only names that contain this text, in any case.", _TEXT),
        Query("lacking", "1 returns only topics with a problem, the most important first unless `sort` is set.", _TEXT),
        Query(
            "sort",
            "Order by the name or the highest of these counts, of equal counts the worst topic first. Default: topic.",
            {"type": "string", "enum": [order.value for order in TopicOrder]},
        ),
        Query("after", "Only topics after this one. Use `next` of the former answer.", _TEXT),
        AT,
    ),
)
TOPIC: Final = Path(
    f"{_CLUSTER}/topics/{{topic}}",
    "A topic explained, with a hundred of its partitions",
    TopicAnswer,
    (400, 404, 503),
    (Query("first", "Partitions from this number on. Use `next` of the former answer.", _NUMBER), AT),
)
PARTITION: Final = Path(
    f"{_CLUSTER}/topics/{{topic}}/{{partition}}", "A partition explained", Explanation, (400, 404, 503), (AT,)
)
BROKER: Final = Path(
    f"{_CLUSTER}/brokers/{{broker}}",
    "A broker explained, with the partitions it hosts that clients cannot use",
    BrokerAnswer,
    (400, 404, 503),
    (AT,),
)
CONTROLLER: Final = Path(
    f"{_CLUSTER}/controller",
    "The controller or its absence explained",
    Explanation,
    (400, 404, 503),
    (AT,),
)
TIMELINE: Final = Path(
    f"{_CLUSTER}/timeline",
    "The cluster at a kept moment, and the events around it",
    History,
    (400, 404, 503),
    (
        AT,
        Query("window", "Seconds of the time around the moment.", {"type": "integer", "enum": list(WINDOWS_SECONDS)}),
        Query("of", "Only events of this subject, for example orders-7, orders, broker 3 or controller.", _TEXT),
    ),
)
CONSEQUENCES: Final = Path(
    f"{_CLUSTER}/consequences",
    "Consequences of losing the named brokers or racks",
    WhatIf,
    (400,),
    (
        Query("broker", "A lost broker. Name at least one broker or rack.", _NUMBER, repeats=True),
        Query("rack", "A lost rack.", _TEXT, repeats=True),
        Query("controlled", "1 shuts them down cleanly, one after the other. Otherwise they crash at once.", _TEXT),
    ),
)
RESTARTABLE: Final = Path(
    f"{_CLUSTER}/restartable",
    "Whether a broker may be restarted now, with every reason against it",
    Restartable,
    (400, 404, 503),
    (
        Query("broker", "The broker.", _NUMBER),
        _ACCEPT_TOPIC,
        _ACCEPT_ABSENT,
        Query("holder", "Name whose own lease is no reason against the restart.", _TEXT),
    ),
)
GROUPS: Final = Path(
    f"{_CLUSTER}/groups",
    "Consumer groups and transactional ids as the brokers last described them",
    KnownGroups,
    (404, 503),
)
HOLD_LEASE: Final = Path(
    f"{_CLUSTER}/restart-lease",
    "Judge a broker's restart and take the cluster's only lease if the answer is yes. The holder's repeated request "
    "extends its lease",
    Restartable,
    (400, 403, 404, 503),
    (
        Query("broker", "The broker.", _NUMBER),
        Query("holder", "Name of the automation or person, up to 100 printable characters.", _TEXT),
        Query("seconds", "The lease expires after this time.", _LEASE_SECONDS),
        _ACCEPT_TOPIC,
        _ACCEPT_ABSENT,
    ),
    "post",
    "holdLease",
)
RELEASE_LEASE: Final = Path(
    f"{_CLUSTER}/restart-lease",
    "Release the lease of this holder for this broker",
    Lease,
    (400, 403, 404),
    (Query("broker", "The broker.", _NUMBER), Query("holder", "Name that took the lease.", _TEXT)),
    "delete",
    "releaseLease",
)
_WORDS: Final = Query("of", "A part of a name in any case, orders-7, broker 3, or key 4711 of orders.", _TEXT)
SEARCH: Final = Path(
    f"{_CLUSTER}/search", "Topics, partitions and brokers by a part of their name", Found, (404, 503), (_WORDS,)
)
SEARCH_ALL: Final = Path(
    "/search", "Clusters and topics by a part of their name", Found, (), (_WORDS,), operation="searchAll"
)
PATHS: Final = (
    *(FLEET, CLUSTER, TOPICS, TOPIC, PARTITION, BROKERS, BROKER, CONTROLLER, TIMELINE),
    *(CONSEQUENCES, RESTARTABLE, GROUPS, SEARCH, SEARCH_ALL),
)
OPERATIONS: Final = (*PATHS, HOLD_LEASE, RELEASE_LEASE)


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the interface."""
    types = [*(path.gives for path in OPERATIONS), Refusal]
    schemas, components = msgspec.json.schema_components(types, ref_template=_SCHEMAS + "{name}")
    for component in components.values():
        component["description"] = inspect.cleandoc(component.get("description", ""))
    paths: dict[str, dict[str, Any]] = {}
    examples = JsonDecoder(dict[str, Any]).decode(EXAMPLES.read_bytes())
    for path, schema in zip(OPERATIONS, schemas, strict=False):
        example = examples.get(operation_id(path), {"parameters": {}, "answer": None})
        paths.setdefault(API + path.path, {})[path.method] = _operation(path, schema, example)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kontrast",
            "version": "1",
            "summary": "The live page of `kontrast serve` as JSON, and its leases for restarts",
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


def operation_id(path: Path) -> str:
    """Return the name of a path's operation."""
    return path.operation or path.path.rpartition("/")[2].strip("{}")


def _operation(path: Path, schema: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """Describe an operation. The example is a real answer, with the first object of each list."""
    parameters = [*_names_in(path), *map(_parameter, path.queries)]
    asked = example["parameters"]
    return {
        "operationId": operation_id(path),
        "summary": path.says,
        "parameters": [
            {**each, "example": asked[each["name"]]} if each["name"] in asked else each for each in parameters
        ],
        "responses": {
            "200": {
                "description": "The answer",
                "content": {"application/json": {"schema": schema, "example": example["answer"]}},
            },
            # Any path can refuse because all threads are busy (503), or because it has no answer for a moment (400).
            **{str(status): _refused(_REFUSALS[status]) for status in sorted({*path.refuses, 400, 503})},
        },
    }


def _names_in(path: Path) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "description": _NAMED_IN_PATHS[name], "schema": _TEXT}
        for name in re.findall(r"\{(\w+)\}", path.path)
    ]


def _parameter(query: Query) -> dict[str, Any]:
    schema = {"type": "array", "items": query.schema} if query.repeats else query.schema
    return {"name": query.name, "in": "query", "description": query.says, "schema": schema}


def _refused(says: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}{Refusal.__name__}"}}}
    return {"description": says, "content": content}
