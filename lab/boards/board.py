"""Frame of every board, with variables, links, annotations and its JSON form."""

from __future__ import annotations

import json
from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from controller.rules.election import Strategy
from dashboards.catalogue import cluster_metrics, pipeline_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from lab.boards.panels import DATASOURCE, KONTRAST_URL, LIVE_PAGE
from lab.boards.queries import increase, of_clusters

_UNCLEAN = f'strategy="Unclean{Strategy.OFFLINE.value}"'
_EPOCHS = of_clusters(cluster_metrics.CONTROLLER_EPOCH)


def new_board(uid: str, title: str, description: str, *variables: Builder[models.VariableModel]) -> dashboard.Dashboard:
    """Return a board without panels, which shows every cluster unless a variable chooses some."""
    board = (
        dashboard.Dashboard(f"Kontrast: {title}")
        .uid(f"kontrast-{uid}")
        .description(description)
        .tags(["kafka", "kontrast"])
        .readonly()
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(_live_page())
        .link(_boards("Kontrast", "kontrast", in_menu=False))
        .link(_boards("All Kafka dashboards", "kafka", in_menu=True))
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for variable in (*variables, _kontrast_url()):
        board.with_variable(variable)
    return board


def board_of_clusters(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """Return a board without panels, which shows the chosen clusters and marks their failovers.

    Without a choice Grafana shows the first cluster, because the variable has no entry for all.
    """
    return (
        new_board(uid, title, description, _clusters())
        .annotation(
            _annotation(
                "Failovers",
                "purple",
                f"max by ({CLUSTER_LABEL}) (changes({_EPOCHS}[$__rate_interval])) > 0",
                "{{kafka_cluster}}: the controller epoch changed",
            )
        )
        .annotation(
            _annotation(
                "Unclean elections",
                "red",
                f"{increase(cluster_metrics.ELECTIONS, matchers=(_UNCLEAN,))} > 0",
                "{{kafka_cluster}}: unclean election of a leader, records may be lost",
            )
        )
    )


def section(board: dashboard.Dashboard, title: str, *panels: Builder[models.Panel]) -> dashboard.Dashboard:
    """Add a row of this title with these panels to the board."""
    board.with_row(dashboard.Row(title))
    for panel in panels:
        board.with_panel(panel)
    return board


def board_json(built: models.Dashboard) -> str:
    """Return the text of the board's file."""
    for number_of_panel, panel in enumerate(built.panels or [], start=1):
        panel.id_val = number_of_panel
    # The SDK would put the links into a menu that only the newest Grafana has.
    for link in built.links or []:
        link.placement = None
    built.annotations.list_val = built.annotations.list_val or []
    for annotation in built.annotations.list_val:
        annotation.placement = None
    content = json.loads(json.dumps(built, cls=JSONEncoder))
    _drop_what_grafana_does_not_know(content)
    return json.dumps(content, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def _drop_what_grafana_does_not_know(content: dict[str, Any]) -> None:
    """Drop keys of the SDK that Grafana's own types do not have."""
    for variable in content["templating"]["list"]:
        for key in ("auto", "auto_count", "auto_min"):
            variable.pop(key, None)
    for panel in content["panels"]:
        panel.get("options", {}).pop("footer", None)


def _boards(title: str, tag: str, *, in_menu: bool) -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink(title)
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([tag])
        .as_dropdown(in_menu)
        .include_vars(True)
        .keep_time(True)
    )


def _live_page() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Live page")
        .type(models.DashboardLinkType.LINK)
        .url(LIVE_PAGE)
        .icon("external link")
        .tooltip("The live page of kontrast serve, with the health of clusters")
        .target_blank(True)
    )


def _clusters() -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(CLUSTER_LABEL)
        .label("Kafka cluster")
        .datasource(DATASOURCE)
        .query(f"label_values({pipeline_metrics.READY.name}, {CLUSTER_LABEL})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
    )


def _kontrast_url() -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(KONTRAST_URL)
        .label("Address of kontrast serve")
        .description("Address for links to the live page, as kontrast serve exports it.")
        .datasource(DATASOURCE)
        .query(f"label_values({pipeline_metrics.PAGE_INFO.name}, url)")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def _annotation(name: str, color: str, expression: str, text: str) -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color(color)
        .expr(expression)
        .title_format(name)
        .text_format(text)
    )
