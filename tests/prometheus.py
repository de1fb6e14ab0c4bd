"""Queries a Prometheus over its HTTP API."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

_TIMEOUT_SECONDS = 30


class Series(NamedTuple):
    """One series of an answer, its labels, and points of seconds since 1970 and a value."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def value(self) -> float:
        """Return the newest value."""
        return self.points[-1][1]


class Prometheus:
    """A Prometheus at an address, for example `http://127.0.0.1:9090`."""

    def __init__(self, address: str) -> None:
        self.address = address

    def query(self, expression: str, at: float | None = None) -> list[Series]:
        """Return the expression's series at a time, or now."""
        when = {} if at is None else {"time": f"{at:.3f}"}
        answer = self.ask("query", query=expression, **when)
        return [Series(each["metric"], (_point(each["value"]),)) for each in answer["result"]]

    def query_range(self, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        """Return the expression's series over a time."""
        span = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_seconds:g}"}
        answer = self.ask("query_range", query=expression, **span)
        return [Series(each["metric"], tuple(map(_point, each["values"]))) for each in answer["result"]]

    def label_values(self, metric: str, label: str, start: float, end: float) -> list[str]:
        """Return the values of a label that a metric had, as Grafana asks for them."""
        span = {"start": f"{start:.3f}", "end": f"{end:.3f}"}
        values: list[str] = self.ask(f"label/{label}/values", **{"match[]": metric}, **span)
        return values

    def is_ready(self) -> bool:
        """Return whether it answers queries."""
        try:
            with urllib.request.urlopen(f"{self.address}/-/ready", timeout=_TIMEOUT_SECONDS):
                return True
        except OSError:
            return False

    def ask(self, path: str, **parameters: str) -> Any:  # noqa: ANN401 (JSON)
        """Return the data of an answer of the API."""
        question = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.address}/api/v1/{path}?{question}", timeout=_TIMEOUT_SECONDS) as answer:
            return json.load(answer)["data"]


def _point(pair: tuple[float, str]) -> tuple[float, float]:
    return pair[0], float(pair[1])
