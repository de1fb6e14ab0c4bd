"""The overview board: is the cluster well, which partitions cannot be used and why, is Kontrast itself up to date.

Here belongs the choice of panels. How a panel is built is `panels`' business.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, table
from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.models import dashboard as models

from dashboards import catalogue
from dashboards.boards.panels import (
    CLUSTER_LEGEND,
    DATASOURCE,
    Limits,
    finished,
    graph,
    newest,
    number,
    of_clusters,
    query,
    rate,
    table_query,
)
from dashboards.catalogue import CLUSTER_LABEL

_NEUTRAL = Limits(below="blue")


def overview() -> models.Dashboard:
    """The board."""
    board = (
        dashboard.Dashboard("Kontrast: overview")
        .uid("kontrast-overview")
        .description("What ZooKeeper says of the cluster, and what the controller must do, as Kontrast derives it.")
        .tags(["kafka", "kontrast"])
        .readonly()
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(_other_boards())
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_clusters())
        .annotation(_controller_changes())
    )
    for section in (_health, _unusable_partitions, _history, _pipeline):
        board = section(board)
    return finished(board)


def _other_boards() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("All Kafka dashboards")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags(["kafka"])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )


def _clusters() -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(CLUSTER_LABEL)
        .label("Kafka cluster")
        .datasource(DATASOURCE)
        .query(f"label_values({catalogue.READY.name}, {CLUSTER_LABEL})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".+")
    )


def _controller_changes() -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name("Controller epoch changed")
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color("purple")
        .expr(f"changes({of_clusters(catalogue.CONTROLLER_EPOCH)}[$__rate_interval]) > 0")
    )


def _health(board: dashboard.Dashboard) -> dashboard.Dashboard:
    any_is_bad = Limits(red=1)
    age = f"time() - {newest(catalogue.HEARTBEAT)}"
    return (
        board.with_row(dashboard.Row("Health"))
        .with_panel(_controller().span(4))
        .with_panel(
            number(
                "Controller epoch",
                "Grows by one at each change of the controller.",
                newest(catalogue.CONTROLLER_EPOCH),
                unit="none",
                limits=_NEUTRAL,
            ).span(3)
        )
        .with_panel(number("Brokers", "Registered in ZooKeeper.", newest(catalogue.BROKERS), limits=_NEUTRAL).span(3))
        .with_panel(
            number(
                "Offline partitions",
                "As Kafka's OfflinePartitionsCount, but counted on while no controller is active.",
                newest(catalogue.OFFLINE),
                limits=any_is_bad,
            ).span(3)
        )
        .with_panel(
            number(
                "Leaderless partitions",
                "Without a live leader right now, whether an election is due or not.",
                newest(catalogue.LEADERLESS),
                limits=any_is_bad,
            ).span(3)
        )
        .with_panel(
            number(
                "Under-replicated partitions",
                "Their ISR lacks an assigned replica.",
                newest(catalogue.UNDER_REPLICATED),
                limits=Limits(orange=1),
            ).span(4)
        )
        .with_panel(
            number(
                "Heartbeat age",
                "Since the newest heartbeat that came through the whole pipeline. If it is old, so is all else here.",
                age,
                unit="s",
                limits=Limits(orange=15, red=60),
            ).span(4)
        )
    )


def _controller() -> stat.Panel:
    words = {"0": ("nobody", "red"), "1": ("active", "green")}
    mapping = models.ValueMap(
        options={value: models.ValueMappingResult(text=text, color=color) for value, (text, color) in words.items()}
    )
    return number(
        "Active controller",
        "The broker that holds /controller in ZooKeeper.",
        f"{newest(catalogue.CONTROLLER_ACTIVE)} == 0 or {newest(catalogue.CONTROLLER_INFO, 'broker')}",
        legend=f"{CLUSTER_LEGEND} {{{{broker}}}}",
        limits=_NEUTRAL,
    ).mappings([mapping])


def _unusable_partitions(board: dashboard.Dashboard) -> dashboard.Dashboard:
    since = f"min by ({CLUSTER_LABEL}, topic, partition, reason) ({of_clusters(catalogue.OFFLINE_SINCE)}) * 1000"
    columns = {CLUSTER_LABEL: "cluster", "topic": "topic", "partition": "partition", "reason": "reason"}
    organize = models.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {"Time": True},
            "indexByName": {name: index for index, name in enumerate((*columns, "Value"))},
            "renameByName": {**columns, "Value": "since"},
        },
    )
    return board.with_row(dashboard.Row("Partitions that cannot be used")).with_panel(
        table.Panel()
        .title("Offline partitions")
        .description(
            "Partitions that nobody can produce to or consume from, by name, with the reason and since when. "
            "The runbook of KontrastPartitionOffline says what each reason means."
        )
        .datasource(DATASOURCE)
        .unit("short")
        .no_value("none known")
        .with_target(table_query(since))
        .with_transformation(organize)
        .override_by_name("since", [models.DynamicConfigValue(id_val="unit", value="dateTimeAsIso")])
        .sort_by([TableSortByFieldState().display_name("since").desc(False)])
        .span(24)
        .height(8)
    )


def _history(board: dashboard.Dashboard) -> dashboard.Dashboard:
    troubles = graph("Partitions in trouble", "Offline, leaderless, under-replicated and under min ISR.")
    for ref_id, metric, word in (
        ("A", catalogue.OFFLINE, "offline"),
        ("B", catalogue.LEADERLESS, "leaderless"),
        ("C", catalogue.UNDER_REPLICATED, "under-replicated"),
        ("D", catalogue.UNDER_MIN_ISR, "under min ISR"),
    ):
        troubles.with_target(query(newest(metric), f"{CLUSTER_LEGEND} {word}", ref_id=ref_id))
    increase = f"increase({of_clusters(catalogue.CONTROLLER_CHANGES)}[$__rate_interval])"
    return (
        board.with_row(dashboard.Row("History"))
        .with_panel(
            graph("Partitions by state", "The controller's partition states, as its state machine has them.")
            .with_target(query(newest(catalogue.PARTITIONS, "state"), f"{CLUSTER_LEGEND} {{{{state}}}}"))
            .span(12)
        )
        .with_panel(troubles.span(12))
        .with_panel(
            graph("Leader elections", "Confirmed elections a second, by strategy.", unit="ops")
            .with_target(query(rate(catalogue.ELECTIONS, "strategy"), f"{CLUSTER_LEGEND} {{{{strategy}}}}"))
            .span(8)
        )
        .with_panel(
            graph("ISR changes", "Shrinks and expansions of ISRs a second.", unit="ops")
            .with_target(query(rate(catalogue.ISR_CHANGES, "operation"), f"{CLUSTER_LEGEND} {{{{operation}}}}"))
            .span(8)
        )
        .with_panel(
            graph("Controller changes", "How often another broker, or none, became controller.")
            .with_target(query(f"max by ({CLUSTER_LABEL}) ({increase})", CLUSTER_LEGEND))
            .span(8)
        )
    )


def _pipeline(board: dashboard.Dashboard) -> dashboard.Dashboard:
    lag = graph(
        "End-to-end lag", "From a change in ZooKeeper to the exporter: half and 99 of 100 rows are faster.", unit="s"
    )
    buckets = of_clusters(catalogue.END_TO_END_LAG, "_bucket")
    for ref_id, quantile in (("A", 0.5), ("B", 0.99)):
        lag.with_target(
            query(
                f"histogram_quantile({quantile}, sum by ({CLUSTER_LABEL}, le) (rate({buckets}[$__rate_interval])))",
                f"{CLUSTER_LEGEND} p{quantile * 100:g}",
                ref_id=ref_id,
            )
        )
    return (
        board.with_row(dashboard.Row("Kontrast itself"))
        .with_panel(lag.span(12))
        .with_panel(
            graph("Records", "Observations of ZooKeeper applied a second, by kind.", unit="ops")
            .with_target(query(rate(catalogue.RECORDS, "kind"), f"{CLUSTER_LEGEND} {{{{kind}}}}"))
            .span(12)
        )
    )
