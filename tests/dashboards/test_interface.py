"""The JSON interface against its OpenAPI document, for each path, each answer and each refusal."""

from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from controller.contract.effect_rows import Transition
from controller.restore.stored_context import new_context
from controller.step import steps
from dashboards.exporter.config import ServeConfig
from dashboards.page import interface
from dashboards.page.interface import API, DOCUMENT, PATHS, document
from dashboards.page.newest_pages import PageConfig
from dashboards.page.routes import LivePage
from outputs.reading import FOLLOWED_OUTPUTS, ReadingCounts
from outputs.transitions import Transitions
from questions.memory import Memory
from questions.question import Question
from questions.whatif.may_restart import MayRestart
from tests import recorded_moment
from tests.dashboards.test_restartable import cluster as healthy_cluster
from transport.address import JournalAddress

ROOT = Path(__file__).parents[2]
OUTPUTS = (Transition.output, *FOLLOWED_OUTPUTS)
LATER_MS = 5 * 60_000


@pytest.fixture(scope="module")
def exporter(recorded_files, tmp_path_factory, start_exporter):
    """Run an exporter of a recorded cluster in a bad moment."""
    directory = tmp_path_factory.mktemp("interface")
    records = list(recorded_moment.history(recorded_files, "north").records())
    rows = [row for row in steps(new_context("north", chunk_count=8), records).effects if row.output in OUTPUTS]
    config = ServeConfig(source=JournalAddress(directory / "outputs"), listen="127.0.0.1:0")
    (directory / "outputs").mkdir()
    with start_exporter(config) as running:
        running.write(*sorted(rows, key=lambda row: OUTPUTS.index(row.output)))
        running.page_with("/api/v1/clusters", '"unknown":null')
        yield running


def strict(schema):
    """Return the schema without room for unnamed fields in objects."""
    if isinstance(schema, dict):
        closed = {key: strict(value) for key, value in schema.items()}
        return {**closed, "additionalProperties": False} if "properties" in closed else closed
    return [strict(each) for each in schema] if isinstance(schema, list) else schema


STRICT = {**document(), "components": strict(copy.deepcopy(document()["components"]))}


def findings(path: str, status: int, body: bytes) -> list[str]:
    """Return the differences between an answer and the document."""
    answers = STRICT["paths"][API + path]["get"]["responses"]
    assert str(status) in answers, body
    schema = answers[str(status)]["content"]["application/json"]["schema"]
    from jsonschema import Draft202012Validator  # which takes seconds, and every process of a run imports every test

    validator = Draft202012Validator({**schema, "components": STRICT["components"]})
    return [error.message for error in validator.iter_errors(json.loads(body))]


def described(path: type[Question]) -> dict[str, Any]:
    return STRICT["paths"][API + path.path]["get"]


def named(path: str, **names: str) -> str:
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return API + path


def affected_partition(exporter) -> tuple[str, str]:
    line = json.loads(exporter.page(f"{API}/clusters/north"))["map"]["lines"][0]
    return line["topic"], str(line["causes"][0]["partitions"][0])


SAY_THAT_NOTHING_IS_KNOWN = {"clusters", "cluster", "brokers", "consequences", "searchAll"}
ASKED = {
    "map": ["before", "first", "second", "loss"],
    "words": ["T"],
    "lacking": ["1"],
    "sort": ["topic", "under_min_isr"],
    "after": ["t1"],
    "first": ["1"],
    "at": [str(recorded_moment.MOMENT_MS), str(recorded_moment.MOMENT_MS - LATER_MS), "2001-01-01"],
    "window": ["900", "604800"],
    "kind": ["alerts"],
    "of": ["broker 1", "controller"],
    "broker": ["1", "2"],
    "rack": ["none"],
    "controlled": ["1"],
    "accept_topic": ["t*"],
    "accept_absent": ["1"],
}


def test_each_answer_of_a_recorded_cluster_is_as_the_document_says(exporter):
    seen: set[tuple[str, int]] = set()
    expected: set[tuple[str, int]] = set()
    topic, partition = affected_partition(exporter)
    present = {"cluster": "north", "topic": topic, "partition": partition, "broker": "1"}
    absent = {"cluster": "south", "topic": "none", "partition": "x", "broker": "x"}
    nonsense = {
        "map": "later",
        "sort": "size",
        "first": "x",
        "at": "soon",
        "window": "7",
        "kind": "x",
        "of": "broker x",
        "broker": "x",
        "rack": "none",
    }
    for path in PATHS:
        at = named(path.path, **present)
        queries = [each["name"] for each in described(path)["parameters"] if each["in"] == "query"]
        asked = [{}, *({query: value} for query in queries for value in ASKED[query])]
        asked += [{query: nonsense[query]} for query in queries if query in nonsense]
        refuses = (*path.refuses, 400) if path.has_past or "broker" in queries else path.refuses
        expected |= {(path.path, status) for status in (200, *refuses)}
        for address in (*(f"{at}?{urlencode(query)}" for query in asked), f"{named(path.path, **absent)}?broker=1"):
            status, headers, body = exporter.get(address)
            assert headers["content-type"] == "application/json"
            assert findings(path.path, status, body) == [], address
            seen.add((path.path, status))
    assert expected <= seen


def test_a_refusal_is_as_the_document_says_where_nothing_is_known(tmp_path, start_exporter, rows):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as empty:
        empty.write(rows.broker(1), rows.gauges(ready=False))
        empty.page_with("/api/v1/clusters", "no complete read of the cluster")
        for path in PATHS:
            address = named(path.path, cluster="north", topic="t", partition="0", broker="1")
            status, _, body = empty.get(f"{address}?broker=1")
            assert findings(path.path, status, body) == [], address
            assert status == (200 if interface.operation_id(path) in SAY_THAT_NOTHING_IS_KNOWN else 503)


def test_every_path_that_is_served_is_in_the_document():
    memory = Memory()
    transitions = Transitions([JournalAddress(Path("none"))], 1, memory)
    live = LivePage(memory, ReadingCounts(), transitions, PageConfig(), threading.Event(), str)
    served = {route.path for route in live.routes() if getattr(route, "path", "").startswith(API)}
    assert served - {DOCUMENT} == set(document()["paths"])


def test_an_answer_that_has_another_form_is_found():
    body = json.dumps([{"cluster": "north", "news": 1}]).encode()
    assert findings("/clusters", 200, body) != []


def test_the_document_is_served(exporter):
    assert json.loads(exporter.page(DOCUMENT)) == json.loads(json.dumps(document()))


def test_what_the_document_refers_to_is_in_it():
    from jsonschema import Draft202012Validator

    text = json.dumps(document())
    for name in set(part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]):
        assert name in document()["components"]["schemas"]
    for schema in document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    operations = [each["operationId"] for path in document()["paths"].values() for each in path.values()]
    assert len(set(operations)) == len(operations)


def test_the_answer_about_a_restart_is_as_the_document_says(tmp_path, start_exporter, rows):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as well:
        well.write(*healthy_cluster(rows))
        well.metrics_with(r"^kontrast_ready\{.*\} 1")
        for broker in ("1", "2"):
            address = named(MayRestart.path, cluster="north")
            status, _, body = well.get(f"{address}?broker={broker}&accept_topic=scratch-*")
            assert (status, findings(MayRestart.path, status, body)) == (200, [])
