"""Tools of the server. Each tool is a question, with the cluster to ask, and none writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec

from questions import everywhere
from questions.check import Check
from questions.explain.subject import Explain
from questions.may_restart import MayRestart
from questions.picture import Picture
from questions.question import Question, meaning, schema_of
from questions.report.report import Report
from questions.timeline.question import ShowTimeline
from questions.what_if import WhatIf, WhatIfEach, WhatIfRolling

_CLUSTER: Final = "cluster"


class ShowReport(Question, frozen=True):
    """Report availability by topic and team, failovers, crashes of brokers and alerts over weeks."""

    answer = Report
    needs_past = True
    timeout_seconds = 900.0  # a Spark job, which takes some ten seconds to start

    slo: Annotated[float | None, meaning("Required share of partition-minutes writable with acks=all, like 99.95.")] = (
        None
    )
    since: Annotated[str | None, meaning("Start: an age such as 30d, or a time.")] = None
    until: Annotated[str | None, meaning("End: an age such as 1d, or a time.")] = None

    def ask(self, picture: Picture) -> Report:
        """Fail, because the report reads weeks of rows and no picture."""
        raise NotImplementedError(f"the report of {picture.header.cluster} is a Spark job")

    def arguments(self, cluster: str | None) -> Iterator[str]:
        """Yield the arguments of `kontrast report`, so that a value with a leading dash is no flag."""
        yield "--format=json"
        for name, value in (("cluster", cluster), ("slo", self.slo), ("since", self.since), ("until", self.until)):
            if value is not None:
                yield f"--{name}={value}"


TOOLS: Final[Mapping[str, type[Question]]] = {
    "check": Check,
    "explain": Explain,
    "timeline": ShowTimeline,
    "whatif": WhatIf,
    "whatif_each": WhatIfEach,
    "whatif_rolling": WhatIfRolling,
    "restartable": MayRestart,
    "report": ShowReport,
    **{name.replace("-", "_"): everywhere.question(name) for name in everywhere.names()},
}


class Asked(msgspec.Struct, frozen=True):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]

    def read(self) -> tuple[Question, str | None]:
        """Return the question, and the name of the cluster if it is given. Raise msgspec.ValidationError."""
        own = {name: value for name, value in self.arguments.items() if name != _CLUSTER}
        return msgspec.convert(own, TOOLS[self.tool]), msgspec.convert(self.arguments.get(_CLUSTER), str | None)


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer in JSON's types with its warnings, or the sentence of a refusal. After `is_last` the worker ends."""

    content: Any = None
    warnings: str = ""
    refusal: str = ""
    is_last: bool = False


def input_schema(tool: type[Question]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    schema = schema_of(tool)
    cluster = {"type": "string", "description": "Name of the cluster. Optional if there is only one."}
    return {**schema, "properties": {**schema["properties"], _CLUSTER: cluster}}
