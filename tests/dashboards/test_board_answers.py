"""Every query of every board, asked of a real Prometheus with recorded incidents, with its true answer.

`board_answers.json` has whole answers of each query at some moments (cluster, and seconds after the beginning). They
come from Prometheus and were checked by hand against the recordings' steps. In `east` broker 3 was killed at 65 s, 2
and 1 at 153 and 165 s. So b-2 at 78 s and c-3 at 174 s have no in-sync replica. If Kafka has the same gauge, a test
compares the brokers' own values over the whole time instead of the table.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.dashboards.grafana_boards import Filling, Panel, Query, all_boards
from tests.dashboards.incident import BEGIN, CLUSTERS, END, PAGE_URL, RATE_INTERVAL, SCRAPE_SECONDS
from tests.prometheus import Prometheus, Series

ANSWERS = json.loads((Path(__file__).parent / "board_answers.json").read_text(encoding="utf-8"))
# Kafka's gauge KEY, summed over the brokers or by broker, equals the answer of these queries of the cluster's panels.
_CONTROLLER, _REPLICAS = "kafka_controller_kafkacontroller_", "kafka_server_replicamanager_"
_BY_BROKER = "Leaders and replicas by broker"
KAFKAS_OWN = {
    f"{_CONTROLLER}offlinepartitionscount": [("Offline", "A"), ("Partitions with issues", "A")],
    f"{_CONTROLLER}topicstodeletecount": [("Queued deletions", "A")],
    f"{_CONTROLLER}topicsineligibletodeletecount": [("Queued deletions", "B")],
    f"{_CONTROLLER}replicastodeletecount": [("Queued deletions", "C")],
    f"{_CONTROLLER}replicasineligibletodeletecount": [("Queued deletions", "D")],
    f"{_REPLICAS}leadercount": [("Leaders by broker", "A"), (_BY_BROKER, "B")],
    f"{_REPLICAS}partitioncount": [(_BY_BROKER, "C")],
    f"{_REPLICAS}underreplicatedpartitions": [("Partitions with issues", "C"), (_BY_BROKER, "D")],
    f"{_REPLICAS}underminisrpartitioncount": [("Under min ISR", "A"), (_BY_BROKER, "E")],
    f"{_REPLICAS}atminisrpartitioncount": [(_BY_BROKER, "F")],
}
CLUSTER = next(board for board in all_boards() if board.uid == "kontrast-cluster")
QUERIES = [
    pytest.param(board.uid, panel, query, id=f"{board.uid.removeprefix('kontrast-')}: {panel.title} {query.ref_id}")
    for board in all_boards()
    for panel, query in board.queries()
]


@pytest.fixture
def prometheus(incident_prometheus: Prometheus) -> Prometheus:
    return incident_prometheus


def named(query: Query, series: list[Series]) -> dict[str, float]:
    """Return the value of each series under its name in the panel. A table's row has its labels' values as name."""
    names = [
        query.name_of(each.labels).strip()
        if query.legend
        else " ".join(value for _, value in sorted(each.labels.items()))
        for each in series
    ]
    assert len(names) == len(set(names)), "two series have one name"
    # A quantile without observations is NaN, which no panel shows.
    return {name: each.value for name, each in zip(names, series, strict=True) if not math.isnan(each.value)}


def test_there_is_an_answer_for_every_query_and_none_for_a_panel_that_is_gone():
    asked = {(uid, panel.title, query.ref_id) for uid, panel, query in (param.values for param in QUERIES)}
    told = {
        (uid, title, ref_id) for uid, titles in ANSWERS.items() for title, refs in titles.items() for ref_id in refs
    }
    assert told == asked


@pytest.mark.parametrize(("uid", "panel", "query"), QUERIES)
def test_a_query_answers_what_was(uid: str, panel: Panel, query: Query, prometheus: Prometheus):
    moments = ANSWERS[uid][panel.title][query.ref_id]
    assert moments
    for moment, expected in moments.items():
        cluster, seconds = moment.split()
        filling = Filling(clusters=cluster, rate_interval=RATE_INTERVAL)
        got = named(query, prometheus.query(filling.concrete(query.expression), BEGIN + int(seconds)))
        assert got == pytest.approx(expected, rel=0, abs=1e-4), moment


def test_some_answer_of_every_query_is_more_than_zero():
    for titles in ANSWERS.values():
        for title, refs in titles.items():
            for ref_id, moments in refs.items():
                assert any(value for moment in moments.values() for value in moment.values()), f"{title} {ref_id}"


def test_no_panel_is_empty_on_an_ordinary_cluster(prometheus):
    """East's brokers are well at 58 s. Tables of problems have nothing to show then, and nothing else is missing."""
    filling = Filling(clusters="east", rate_interval=RATE_INTERVAL)
    panels = (panel for board in all_boards() for panel in board.panels if panel.queries)
    empty = {
        panel.title
        for panel in panels
        if not any(
            named(each, prometheus.query(filling.concrete(each.expression), BEGIN + 58)) for each in panel.queries
        )
    }
    assert empty == {"Offline partitions", "Partitions under min ISR"}


def test_the_variables_have_all_clusters_and_the_address_of_the_page(prometheus):
    for board in all_boards():
        queries = {each["name"]: each["query"] for each in board.variables if each["type"] == "query"}
        shows_every_cluster = board.uid == "kontrast-fleet"
        assert ("kafka_cluster" in queries) is not shows_every_cluster
        for name, values in (("kafka_cluster", sorted(CLUSTERS)), ("kontrast_url", [PAGE_URL])):
            if name not in queries:
                continue
            metric, label = queries.pop(name).removeprefix("label_values(").removesuffix(")").split(", ")
            assert prometheus.label_values(metric, label, BEGIN, END) == values
        assert not queries


def test_a_chosen_cluster_is_the_only_one(prometheus):
    filling = Filling(clusters="south", rate_interval=RATE_INTERVAL)
    for board in all_boards():
        for panel, query in board.queries():
            found = prometheus.query(filling.concrete(query.expression), BEGIN + 118)
            clusters = {series.labels.get("kafka_cluster", "south") for series in found}
            assert clusters <= ({"south"} if board.annotations else CLUSTERS.keys()), panel.title


def test_annotations_mark_every_failover_and_unclean_election(prometheus):
    """The controllers' logs show East's failovers, epochs 2 to 5. Its one unclean election is c-3's."""
    expected = {"Failovers": [97, 131, 148, 171], "Unclean elections": [178]}
    for name, expression in CLUSTER.annotations.items():
        expression = Filling(clusters="east", rate_interval=RATE_INTERVAL).concrete(expression)
        (series,) = prometheus.query_range(expression, BEGIN + 20, END, SCRAPE_SECONDS)
        times = [at - BEGIN for at, _ in series.points]
        starts = [at for at in times if at - SCRAPE_SECONDS not in times]
        assert starts == pytest.approx(expected[name], abs=2 * SCRAPE_SECONDS)


@pytest.mark.parametrize("gauge", KAFKAS_OWN)
def test_a_panel_agrees_with_the_brokers_whenever_nothing_happens(gauge, prometheus):
    """The brokers' values must match over the whole time, except within three scrapes of a change in ZooKeeper."""
    compared = above_zero = 0
    for cluster, shown in CLUSTERS.items():
        if not shown.jmx_is_scraped:
            continue
        asked = prometheus_range(prometheus, f'{gauge}{{kafka_cluster="{cluster}"}}')
        by_broker = {(series.labels["instance"], at): value for series in asked for at, value in series.points}
        said: dict[float, float] = {}
        for (_, at), value in by_broker.items():
            said[at] = said.get(at, 0) + value
        quiet = quiet_moments(prometheus, cluster, all_answer=gauge.startswith(_REPLICAS))
        for place in KAFKAS_OWN[gauge]:
            for series in prometheus_range(prometheus, expression_of(*place, cluster)):
                for at, value in series.points:
                    instance = f"broker-{series.labels.get('broker')}:7071"
                    real = by_broker.get((instance, at)) if "broker" in series.labels else said.get(at)
                    if at in quiet and real is not None:
                        assert value == real, f"{place} of {cluster} at {at - BEGIN} s"
                        compared += 1
                        above_zero += value > 0
    assert compared >= 30
    assert above_zero or gauge.endswith("todeletecount")  # ZooKeeper is not quiet while a topic is deleted


def prometheus_range(prometheus: Prometheus, expression: str) -> list[Series]:
    return prometheus.query_range(expression, BEGIN, END, SCRAPE_SECONDS)


def expression_of(title: str, ref_id: str, cluster: str) -> str:
    (query,) = (query for panel, query in CLUSTER.queries() if (panel.title, query.ref_id) == (title, ref_id))
    return Filling(clusters=cluster, rate_interval=RATE_INTERVAL).concrete(query.expression)


def quiet_moments(prometheus: Prometheus, cluster: str, *, all_answer: bool) -> set[float]:
    """Return times of a stable zxid with one active controller. `all_answer` also asks for an answer of all brokers."""
    of_cluster = f'{{kafka_cluster="{cluster}"}}'
    zxid, active, answering, registered = (
        dict(prometheus_range(prometheus, expression)[0].points)
        for expression in (
            f"kontrast_last_zxid_sequence{of_cluster}",
            f"sum({_CONTROLLER}activecontrollercount{of_cluster})",
            f"count({_CONTROLLER}activecontrollercount{of_cluster})",
            f"kontrast_brokers{of_cluster}",
        )
    )
    return {
        at
        for at in active
        if active[at] == 1
        and (answering[at] == registered[at] or not all_answer)
        and len({zxid.get(at + offset * SCRAPE_SECONDS, math.nan) for offset in (-1, 0, 1)}) == 1
    }


def test_kontrast_counts_on_while_no_controller_is_active(prometheus):
    """South, 148 s. /controller names broker 4, which is gone. Four partitions are offline, and JMX reports 0."""
    jmx = f'sum({_CONTROLLER}offlinepartitionscount{{kafka_cluster="south"}})'
    for expression, value in {expression_of("Offline", "A", "south"): 4, jmx: 0}.items():
        (series,) = prometheus.query(expression, BEGIN + 148)
        assert series.value == value
