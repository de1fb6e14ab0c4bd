"""The committed boards, which must match the code, Grafana's own types, and the rules of Grafana's linter.

Its rules on `job` and `instance` variables do not apply, because a panel shows clusters from any exporter.
`test_board_answers` checks the answers of the queries.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import promql_parser
import pytest

from dashboards.catalogue.metric import CLUSTER_LABEL, MetricType
from dashboards.catalogue.table import CATALOGUE
from tests.dashboards.grafana_boards import GRAFANA, all_boards, read_board

SCHEMA = json.loads((Path(__file__).parent / "grafana_schema" / "board.schema.json").read_text(encoding="utf-8"))
FILES = sorted(path.name for path in GRAFANA.glob("*.json"))
FLEET = "kontrast-fleet.json"
METRICS = {
    name: metric
    for metric in CATALOGUE
    for name in (
        [f"{metric.name}_{part}" for part in ("bucket", "count", "sum")]
        if metric.type is MetricType.HISTOGRAM
        else [metric.name]
    )
}
TARGET_LABELS = {"job", "instance"}  # Prometheus's own

made_on_newer_pythons = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="the library that makes the boards needs Python 3.11"
)


def board(name: str) -> dict:
    return json.loads((GRAFANA / name).read_text(encoding="utf-8"))


def panels(name: str) -> list[dict]:
    return [panel for panel in board(name)["panels"] if panel["type"] != "row"]


def expressions(name: str) -> list[str]:
    read = read_board(GRAFANA / name)
    return [query.expression for _, query in read.queries()] + [*read.annotations.values()]


def selectors(expression: object) -> Iterator[promql_parser.VectorSelector]:
    """Yield every selector in a parsed expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    for attribute in ("expr", "lhs", "rhs", "vector_selector", "vs"):
        below = getattr(expression, attribute, None)
        if below is not None and below is not expression:
            yield from selectors(below)
    for argument in getattr(expression, "args", None) or ():
        yield from selectors(argument)


def problems_of(content: dict) -> list[str]:
    """Return the places where a board does not fit Grafana's types, in words."""
    import jsonschema  # which takes seconds, and every process of a run imports every test

    validator = jsonschema.Draft7Validator(SCHEMA)
    found = []
    for error in validator.iter_errors(content):
        deepest = jsonschema.exceptions.best_match([error])
        found.append(f"{'/'.join(map(str, error.absolute_path))}: {deepest.message[:300]}")
    return found


def test_there_are_the_boards_that_people_look_for():
    uids = {each.uid for each in all_boards()}
    assert uids == {"kontrast-fleet", "kontrast-cluster", "kontrast-pipeline"}


def test_nobody_has_to_read_more_than_45_panels():
    assert sum(len(panels(name)) for name in FILES) <= 45


@pytest.mark.parametrize("name", FILES)
def test_a_board_fits_grafanas_own_types(name):
    assert problems_of(board(name)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("panels", 1, "gridpos"), {}),
        (("panels", 1, "fieldConfig", "defaults", "unit"), 5),
        (("panels", 1, "options", "colour"), "red"),
        (("panels", 1, "type"), "staat"),
        (("templating", "list", 0, "refrehs"), 2),
        (("panels", 1, "targets", 0, "expression"), "up"),
        (("annotations", "list", 0, "iconColour"), "red"),
    ],
)
def test_grafanas_types_refuse_what_is_misspelt(path, value):
    content = board("kontrast-cluster.json")
    at = content
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    assert problems_of(content)


@pytest.mark.generated
@made_on_newer_pythons
def test_the_committed_json_is_what_the_code_makes():
    from lab.boards.__main__ import board_files

    made = board_files()
    assert sorted(made) == FILES
    for name in FILES:
        assert (GRAFANA / name).read_text(encoding="utf-8") == made[name], "run `python -m lab.boards`"


@pytest.mark.parametrize("name", FILES)
def test_every_query_parses_and_asks_for_what_is_exported(name):
    assert expressions(name)
    for expression in expressions(name):
        found = list(selectors(promql_parser.parse(expression.replace("$__rate_interval", "1m"))))
        assert len(found) == len(re.findall(r"\bkontrast_\w+", expression))
        for selector in found:
            matched = {matcher.name for matcher in selector.matchers.matchers}
            metric = METRICS[selector.name]
            assert matched <= set(metric.labels), expression
            is_of_chosen_clusters = CLUSTER_LABEL in metric.labels and name != FLEET
            assert (CLUSTER_LABEL in matched) is is_of_chosen_clusters, expression


@pytest.mark.parametrize("name", FILES)
def test_labels_that_a_query_groups_by_are_labels_of_its_metric(name):
    for expression in expressions(name):
        used = [METRICS[metric] for metric in re.findall(r"\bkontrast_\w+", expression)]
        labels = {"le", CLUSTER_LABEL, *TARGET_LABELS}.union(*(metric.labels for metric in used))
        for group in re.findall(r"\bby \(([^)]*)\)", expression):
            assert {label.strip() for label in group.split(",")} <= labels, expression


@pytest.mark.parametrize("name", FILES)
def test_labels_in_a_legend_are_labels_of_its_series(name):
    for panel, query in read_board(GRAFANA / name).queries():
        grouped = {
            label.strip() for group in re.findall(r"\bby \(([^)]*)\)", query.expression) for label in group.split(",")
        }
        shown = set(re.findall(r"{{(\w+)}}", query.legend))
        assert shown <= grouped, panel.title


@pytest.mark.parametrize("name", FILES)
def test_counters_are_shown_as_rates_over_the_right_interval(name):
    for panel, query in read_board(GRAFANA / name).queries():
        assert not re.search(r"\[\d", query.expression), "use $__rate_interval"
        for metric in re.findall(r"\bkontrast_\w+", query.expression):
            if METRICS[metric].type in (MetricType.COUNTER, MetricType.HISTOGRAM):
                assert re.search(rf"(rate|increase)\({metric}", query.expression), panel.title


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
    live_page, *boards = content["links"]
    assert (live_page["type"], live_page["url"]) == ("link", "${kontrast_url}/")
    assert [link["tags"] for link in boards] == [["kontrast"], ["kafka"]]
    for link in boards:
        assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
        assert set(link["tags"]) <= set(content["tags"])
    variables = {variable["name"]: variable for variable in content["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["kontrast_url"]["query"] == "label_values(kontrast_page_info, url)"
    titles = [panel["title"] for panel in content["panels"] if panel["type"] != "row"]
    assert len(titles) == len(set(titles))
    ids = [panel["id"] for panel in content["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", FILES)
def test_a_board_opens_with_one_cluster_and_the_fleets_shows_all(name):
    content = board(name)
    variables = {variable["name"]: variable for variable in content["templating"]["list"]}
    marked = [each["name"] for each in content["annotations"].get("list", ())]
    if name == FLEET:
        assert CLUSTER_LABEL not in variables
        assert marked == []
        return
    cluster = variables[CLUSTER_LABEL]
    assert cluster["refresh"] == 2
    assert cluster["includeAll"] is False
    query = re.fullmatch(r"label_values\((\w+), (\w+)\)", cluster["query"])
    assert query is not None
    assert query[2] in METRICS[query[1]].labels
    assert marked == ["Failovers", "Unclean elections"]


def pattern_of_pages(panel: dict, expression: str) -> str:
    """Return the pattern of a panel's links, for values of clusters and for others."""
    if CLUSTER_LABEL not in expression:
        return r"\$\{kontrast_url\}/"
    if panel["type"] != "table":
        label = r"\$\{__field\.labels\.%s:percentencode\}"
        broker = rf"/explain\?of=broker\+{label % 'broker'}"
        return rf"\$\{{kontrast_url\}}/clusters/{label % 'kafka_cluster'}({broker})?"
    field = r"\$\{__data\.fields\.%s:percentencode\}"
    subject = rf"(/topics/{field % 'topic'}/{field % 'partition'}|/explain\?of=(broker\+)?{field % '(subject|broker)'})"
    return rf"\$\{{kontrast_url\}}/clusters/{field % 'cluster'}{subject}?"


def leads_to(panel: dict) -> list[str]:
    """Return the links of a panel's queries or rows."""
    every = [{"id": "byRegexp", "options": ".*"}]
    if panel["type"] not in {"stat", "table"}:
        every = [{"id": "byFrameRefID", "options": target["refId"]} for target in panel["targets"]]
    found = {json.dumps(each["matcher"]): each["properties"] for each in panel["fieldConfig"]["overrides"]}
    properties = [each for matcher in every for each in found[json.dumps(matcher)] if each["id"] == "links"]
    return [link["url"] for each in properties for link in each["value"]]


@pytest.mark.parametrize("name", FILES)
def test_the_conventions_of_a_panel_hold(name):
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels(name):
        title = panel["title"]
        assert title
        assert panel["description"].endswith("."), title
        assert panel["fieldConfig"]["defaults"]["unit"], title
        assert panel["datasource"] == source, title
        assert panel["type"] in {"stat", "timeseries", "table", "state-timeline"}, title
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)), title
        for target in panel["targets"]:
            assert target["datasource"] == source, title
            # A number that is shown as the present one must not be an old one.
            assert target["instant"] is (panel["type"] in {"stat", "table"}), title
        # A table's columns make one row. Each query of a graph has series of its own.
        expressions = [target["expr"] for target in panel["targets"]]
        linked = [" ".join(expressions)] if panel["type"] in {"stat", "table"} else expressions
        for expression, url in zip(linked, leads_to(panel), strict=True):
            assert re.fullmatch(pattern_of_pages(panel, expression), url), title


@made_on_newer_pythons
@pytest.mark.parametrize("name", FILES)
def test_every_unit_is_one_of_grafanas(name):
    from grafana_foundation_sdk.models import units

    known = {value for key, value in vars(units).items() if not key.startswith("_") and isinstance(value, str)}
    assert len(known) > 200
    for panel in panels(name):
        overrides = panel["fieldConfig"]["overrides"]
        of_fields = [each["value"] for override in overrides for each in override["properties"] if each["id"] == "unit"]
        assert {panel["fieldConfig"]["defaults"]["unit"], *of_fields} <= known, panel["title"]


def test_the_fields_that_links_name_are_columns_of_their_table():
    """A row of each kind of table leads to its most specific page."""
    named = set()
    for panel in (panel for name in FILES for panel in panels(name) if panel["type"] == "table"):
        (url,) = leads_to(panel)
        (organized,) = (each["options"] for each in panel["transformations"] if each["id"] == "organize")
        for field in re.findall(r"__data\.fields\.(\w+):percentencode", url):
            assert field in organized["renameByName"].values(), panel["title"]
            named.add(field)
    assert named == {"cluster", "topic", "partition", "subject", "broker"}


def test_the_pages_that_links_lead_to_are_served(exporter, rows):
    cluster = "north/eu 1+2?&#ü"
    there_is = (rows.controller(1), rows.broker(3), rows.partition("orders"), rows.alert("x"), rows.gauges())
    exporter.write(*(msgspec.structs.replace(row, cluster=cluster) for row in there_is))
    exporter.page_with("/api/v1/clusters", '"unknown":null')
    values = {"cluster": cluster, "topic": "orders", "partition": "0", "subject": "broker 3", "broker": "3"}
    values[CLUSTER_LABEL] = cluster
    urls = {url for name in FILES for panel in panels(name) for url in leads_to(panel)}
    assert len(urls) == 7
    for url in urls:
        path = url.removeprefix("${kontrast_url}")
        path = re.sub(
            r"\$\{__(?:data\.fields|field\.labels)\.(\w+):percentencode\}",
            lambda field: quote(values[field[1]], safe=""),
            path,
        )
        assert exporter.get(path)[0] == 200, path


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
