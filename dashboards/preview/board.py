"""A board's JSON with the place and queries of its panels, and the board's variables filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRAFANA = Path(__file__).parent.parent / "grafana"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """The values of a board's variables."""

    clusters: str = ".+"  # a regular expression
    rate_interval: str = "1m"

    def concrete(self, expression: str) -> str:
        """Return the expression as Grafana would send it."""
        return expression.replace("$kafka_cluster", self.clusters).replace("$__rate_interval", self.rate_interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query of a panel."""

    ref_id: str
    expression: str  # with the board's variables
    legend: str
    instant: bool

    def name_of(self, labels: Mapping[str, str]) -> str:
        """Return the legend of a series with these labels."""
        return re.sub(r"{{\s*(\w+)\s*}}", lambda match: labels.get(match[1], ""), self.legend)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel. `json` has the parts that are not read here."""

    title: str
    type: str
    x: int
    y: int
    width: int
    height: int
    unit: str
    queries: tuple[Query, ...]
    json: Mapping[str, Any]

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Return the defaults of all its fields."""
        defaults: Mapping[str, Any] = self.json.get("fieldConfig", {}).get("defaults", {})
        return defaults

    def words(self) -> dict[str, tuple[str, str]]:
        """Return the text and colour that replace a value."""
        return {
            value: (result["text"], result["color"])
            for mapping in self.defaults.get("mappings", ())
            for value, result in mapping["options"].items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A query whose moments are marked in every graph."""

    name: str
    color: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board of Grafana."""

    uid: str
    title: str
    panels: tuple[Panel, ...]
    annotations: tuple[Annotation, ...]
    variables: tuple[Mapping[str, Any], ...]

    def queries(self) -> Iterator[tuple[Panel, Query]]:
        """Yield every query with its panel."""
        for panel in self.panels:
            for query in panel.queries:
                yield panel, query


def read_board(path: Path) -> Board:
    """Return the board of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return Board(
        uid=content["uid"],
        title=content["title"],
        panels=tuple(_panel(panel) for panel in content["panels"]),
        annotations=tuple(
            Annotation(name=each["name"], color=each["iconColor"], expression=each["expr"])
            for each in content["annotations"]["list"]
        ),
        variables=tuple(content["templating"]["list"]),
    )


def all_boards() -> list[Board]:
    """Return Kontrast's boards."""
    return [read_board(path) for path in sorted(GRAFANA.glob("*.json"))]


def _panel(panel: Mapping[str, Any]) -> Panel:
    place = panel["gridPos"]
    return Panel(
        title=panel["title"],
        type=panel["type"],
        x=place["x"],
        y=place["y"],
        width=place["w"],
        height=place["h"],
        unit=panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "short"),
        queries=tuple(
            Query(
                ref_id=target["refId"],
                expression=target["expr"],
                legend=target["legendFormat"],
                instant=target["instant"],
            )
            for target in panel.get("targets", ())
        ),
        json=panel,
    )
