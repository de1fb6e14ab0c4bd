"""The committed boards are what the code makes, keep the conventions, and ask only for what is exported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import promql_parser
import pytest

from dashboards.catalogue import CATALOGUE, CLUSTER_LABEL, MetricType

DIRECTORY = Path(__file__).parents[2] / "dashboards" / "grafana"
FILES = sorted(path.name for path in DIRECTORY.glob("*.json"))
METRICS = {
    name: metric
    for metric in CATALOGUE
    for name in (
        [f"{metric.name}_{part}" for part in ("bucket", "count", "sum")]
        if metric.type is MetricType.HISTOGRAM
        else [metric.name]
    )
}


def board(name: str) -> dict:
    return json.loads((DIRECTORY / name).read_text(encoding="utf-8"))


def panels(name: str) -> list[dict]:
    return [panel for panel in board(name)["panels"] if panel["type"] != "row"]


def expressions(name: str) -> list[str]:
    asked = [target["expr"] for panel in panels(name) for target in panel["targets"]]
    return asked + [annotation["expr"] for annotation in board(name)["annotations"]["list"]]


def selectors(expression: object) -> Iterator[promql_parser.VectorSelector]:
    """Every selector in a parsed expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    for attribute in ("expr", "lhs", "rhs", "vector_selector", "vs"):
        below = getattr(expression, attribute, None)
        if below is not None and below is not expression:
            yield from selectors(below)
    for argument in getattr(expression, "args", None) or ():
        yield from selectors(argument)


def test_there_is_an_overview():
    assert "kontrast-overview.json" in FILES


def test_the_committed_json_is_what_the_code_makes():
    pytest.importorskip("grafana_foundation_sdk", reason="the boards are made with Python 3.11 or newer")
    from dashboards.boards.__main__ import BOARDS, board_json

    assert sorted(BOARDS) == FILES
    for name in FILES:
        text = (DIRECTORY / name).read_text(encoding="utf-8")
        assert text == board_json(name), "run `python -m dashboards.boards`"


@pytest.mark.parametrize("name", FILES)
def test_every_query_parses_and_uses_the_catalogue_only(name):
    assert expressions(name)
    for expression in expressions(name):
        parsed = promql_parser.parse(expression.replace("$__rate_interval", "1m"))
        found = list(selectors(parsed))
        assert len(found) == expression.count("kontrast_") > 0, expression
        for selector in found:
            metric = METRICS[selector.name]
            matched = {matcher.name for matcher in selector.matchers.matchers}
            assert matched <= set(metric.labels), expression
            assert CLUSTER_LABEL in matched, expression


@pytest.mark.parametrize("name", FILES)
def test_labels_that_a_query_groups_by_are_labels_of_its_metric(name):
    for expression in expressions(name):
        used = [METRICS[metric] for metric in re.findall(r"\bkontrast_\w+", expression)]
        labels = {"le"}.union(*(metric.labels for metric in used))
        for group in re.findall(r"\bby \(([^)]*)\)", expression):
            assert {label.strip() for label in group.split(",")} <= labels, expression


@pytest.mark.parametrize("name", FILES)
def test_counters_are_shown_as_rates_over_the_right_interval(name):
    for expression in expressions(name):
        assert not re.search(r"\[\d", expression), "use $__rate_interval"
        for metric in re.findall(r"\bkontrast_\w+", expression):
            if METRICS[metric].type in (MetricType.COUNTER, MetricType.HISTOGRAM):
                assert re.search(rf"(rate|increase)\({metric}", expression), expression


@pytest.mark.parametrize("name", FILES)
def test_the_conventions_of_a_board_hold(name):
    content = board(name)
    assert content["uid"] == name.removesuffix(".json")
    assert len(content["uid"]) <= 40
    assert 39 <= content["schemaVersion"] <= 42
    assert content["editable"] is False
    assert content["timezone"] == "browser"
    assert "kafka" in content["tags"]
    assert content["graphTooltip"] == 1
    (link,) = content["links"]
    assert (link["type"], link["tags"], link["includeVars"], link["keepTime"]) == ("dashboards", ["kafka"], True, True)
    variables = {variable["name"]: variable for variable in content["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    cluster = variables[CLUSTER_LABEL]
    assert cluster["refresh"] == 2
    query = re.fullmatch(r"label_values\((\w+), (\w+)\)", cluster["query"])
    assert query is not None
    assert query[2] in METRICS[query[1]].labels
    ids = [panel["id"] for panel in content["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", FILES)
def test_the_conventions_of_a_panel_hold(name):
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels(name):
        title = panel["title"]
        assert title
        assert panel["description"].endswith("."), title
        assert panel["fieldConfig"]["defaults"]["unit"], title
        assert panel["datasource"] == source, title
        assert panel["type"] in {"stat", "timeseries", "table"}, title
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)), title
        for target in panel["targets"]:
            assert target["datasource"] == source, title
            # A number that is shown as the present one must not be an old one.
            assert target["instant"] is (panel["type"] != "timeseries"), title


@pytest.mark.parametrize("name", FILES)
def test_panels_do_not_overlap(name):
    taken: set[tuple[int, int]] = set()
    for panel in board(name)["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert all(x < 24 for x, _ in cells)
        assert not cells & taken, panel["title"]
        taken |= cells
