"""The committed boards' panels, queries and annotations, and the values of their variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRAFANA = Path(__file__).parents[2] / "deploy" / "helm" / "kontrast" / "boards"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """The values of a board's variables."""

    clusters: str = ".+"  # a regular expression
    rate_interval: str = "1m"

    def concrete(self, expression: str) -> str:
        """Return the expression as Grafana would send it."""
        return expression.replace("$kafka_cluster", self.clusters).replace("$__rate_interval", self.rate_interval)


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel, with the board's variables."""

    ref_id: str
    expression: str
    legend: str

    def name_of(self, labels: Mapping[str, str]) -> str:
        """Return the legend of a series with these labels."""
        return re.sub(r"{{\s*(\w+)\s*}}", lambda match: labels.get(match[1], ""), self.legend)


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    title: str
    type: str
    queries: tuple[Query, ...]
    defaults: Mapping[str, Any]  # of all its fields


@dataclass(frozen=True, slots=True)
class Board:
    """A board of Grafana."""

    uid: str
    panels: tuple[Panel, ...]
    annotations: Mapping[str, str]  # expressions by name
    variables: tuple[Mapping[str, Any], ...]

    def queries(self) -> Iterator[tuple[Panel, Query]]:
        """Yield every query with its panel."""
        return ((panel, query) for panel in self.panels for query in panel.queries)


def read_board(path: Path) -> Board:
    """Return the board of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return Board(
        uid=content["uid"],
        panels=tuple(map(_panel, content["panels"])),
        annotations={each["name"]: each["expr"] for each in content["annotations"].get("list", ())},
        variables=tuple(content["templating"]["list"]),
    )


def all_boards() -> list[Board]:
    """Return Kontrast's boards."""
    return [read_board(path) for path in sorted(GRAFANA.glob("*.json"))]


def _panel(panel: Mapping[str, Any]) -> Panel:
    queries = (Query(each["refId"], each["expr"], each["legendFormat"]) for each in panel.get("targets", ()))
    defaults = panel.get("fieldConfig", {}).get("defaults", {})
    return Panel(panel["title"], panel["type"], tuple(queries), defaults)
