"""Tools: each is a question with the types of its arguments and its answer. It never writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Final

import msgspec

from questions.check import Health
from questions.clients.groups import Impact
from questions.explain.explanation import Explanation
from questions.lint.table import LintFinding
from questions.report.report import Report
from questions.restartable import Restartable
from questions.timeline.timeline import Timeline
from questions.whatif.ranking import Loss
from questions.whatif.rolling import RollingOrder
from questions.whatif.scenario import Scenario

_TOPICS: Final = "Names of topics."
_MOMENT: Final = "A zxid such as 0x1f, a time such as 2024-05-01T03:12:00Z, or milliseconds since 1970."

_Texts = tuple[str, ...]
_Brokers = tuple[int, ...]


def _said(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class Question(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a tool, which become the arguments of the command of its name."""

    command: ClassVar[str]
    answer: ClassVar[Any]  # the type of the JSON that the command prints
    needs_past: ClassVar[bool] = False
    prints_lines: ClassVar[bool] = False  # one object a line
    timeout_seconds: ClassVar[float] = 120.0  # 200,000 partitions take some ten seconds

    cluster: Annotated[str | None, _said("Name of the cluster. Optional if there is only one.")] = None

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command."""
        yield "--json"
        yield from _options("cluster", self.cluster)


class Check(Question):
    """Check a cluster: its problems, worst first, with start, cause and next step."""

    command = "check"
    answer = Health


class Explain(Question):
    """Explain the state of a partition, topic, broker, consumer group or the controller, with the steps to it."""

    command = "explain"
    answer = Explanation

    subject: Annotated[
        str, _said("TOPIC-PARTITION such as orders-7, TOPIC, 'broker 3', 'group settlement', or 'controller'.")
    ]

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command."""
        yield from super().arguments()
        yield "--"
        yield from self.subject.split()


class ShowTimeline(Question):
    """List the events of a cluster in order, with their changes of leaders, ISRs and alerts."""

    command = "timeline"
    answer = Timeline
    needs_past = True

    topics: Annotated[_Texts, _said(_TOPICS)] = ()
    partitions: Annotated[_Texts, _said("Partitions such as orders-7.")] = ()
    brokers: Annotated[_Brokers, _said("Ids of brokers.")] = ()
    controller: Annotated[bool, _said("Only controllers, failovers and phases of a migration to KRaft.")] = False
    since: Annotated[str | None, _said(f"First moment. {_MOMENT}")] = None
    until: Annotated[str | None, _said(f"Last moment. {_MOMENT}")] = None

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command."""
        yield from super().arguments()
        yield from _options("topic", *self.topics)
        yield from _options("partition", *self.partitions)
        yield from _options("broker", *self.brokers)
        yield from ["--controller"] * self.controller
        yield from _options("since", self.since)
        yield from _options("until", self.until)


class ScenarioWithImpacts(Scenario, frozen=True, kw_only=True):
    """Steps with the consumer groups and transactional ids that each one stops, if they are known."""

    impacts: tuple[Impact, ...] = ()


class WhatIf(Question):
    """Simulate the loss of brokers or racks by the controller's own rules, and then the return of brokers."""

    command = "whatif"
    answer = ScenarioWithImpacts

    lose_brokers: Annotated[_Brokers, _said("Brokers that are lost at once.")] = ()
    lose_racks: Annotated[_Texts, _said("Racks whose brokers are lost at once.")] = ()
    controlled: Annotated[bool, _said("The brokers shut down cleanly. By default they crash.")] = False
    then_restore: Annotated[_Brokers, _said("Brokers that return afterwards and catch up.")] = ()

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command."""
        yield from super().arguments()
        yield from _options("lose-broker", *self.lose_brokers)
        yield from _options("lose-rack", *self.lose_racks)
        yield from ["--controlled"] * self.controlled
        yield from _options("restore", *self.then_restore)


class Ranking(msgspec.Struct, frozen=True):
    """Losses of each broker and rack, the worst first."""

    cluster: str
    losses: tuple[Loss, ...]


class WhatIfEach(Question):
    """Rank every broker and rack by the effect of its loss."""

    command = "whatif"
    answer = Ranking

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command."""
        yield from super().arguments()
        yield "--each"


class RollingOrderOfCluster(RollingOrder, frozen=True, kw_only=True):
    """Order of restarts of a cluster."""

    cluster: str


class WhatIfRolling(Question):
    """Propose an order of restarts without an effect on clients, and name the topics that prevent one."""

    command = "whatif"
    answer = RollingOrderOfCluster

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command."""
        yield from super().arguments()
        yield "--rolling"


class MayRestart(Question):
    """Judge whether a broker may be restarted now, with every reason against it."""

    command = "restartable"
    answer = Restartable

    broker: Annotated[int, _said("Id of the broker.")]
    accept_topics: Annotated[_Texts, _said("Patterns of topics that may go offline, such as scratch-*.")] = ()

    accept_absent: Annotated[_Brokers, _said("Ids of brokers that need not come back, such as wrong ids.")] = ()

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command."""
        yield from super().arguments()
        yield from _options("broker", self.broker)
        yield from _options("accept-topic", *self.accept_topics)
        yield from _options("accept-absent", *self.accept_absent)


class LintFindings(msgspec.Struct, frozen=True):
    """Findings of each check. Without a count, the source lacks the znodes of the check."""

    findings: tuple[LintFinding, ...]


class Lint(Question):
    """Find znodes that will cause trouble at a failover, a restart or the next change, with the fix of each."""

    command = "lint"
    answer = LintFindings
    prints_lines = True


class ShowReport(Question):
    """Report availability by topic and team, failovers, crashes of brokers and alerts over weeks."""

    command = "report"
    answer = Report
    needs_past = True
    timeout_seconds = 900.0  # a Spark job, which takes some ten seconds to start

    slo: Annotated[float | None, _said("Required share of partition-minutes writable with acks=all, like 99.95.")] = (
        None
    )
    since: Annotated[str | None, _said("Start: an age such as 30d, or a time.")] = None
    until: Annotated[str | None, _said("End: an age such as 1d, or a time.")] = None

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the command, which prints a document."""
        yield "--format=json"
        yield from _options("cluster", self.cluster)
        yield from _options("slo", self.slo)
        yield from _options("since", self.since)
        yield from _options("until", self.until)


TOOLS: Final[dict[str, type[Question]]] = {
    "check": Check,
    "explain": Explain,
    "timeline": ShowTimeline,
    "whatif": WhatIf,
    "whatif_each": WhatIfEach,
    "whatif_rolling": WhatIfRolling,
    "restartable": MayRestart,
    "lint": Lint,
    "report": ShowReport,
}


def schema_of(struct: Any) -> dict[str, Any]:  # noqa: ANN401 (whatever msgspec describes)
    """Return the JSON Schema of a struct, with the object itself at its root, as the protocol needs it."""
    schema = msgspec.json.schema(struct)
    definitions = schema["$defs"]
    root = definitions[schema["$ref"].rpartition("/")[2]]
    return {**root, "$defs": definitions}


def _options(name: str, *values: object) -> Iterable[str]:
    """Return an option with each value. A value that begins with a dash stays a value."""
    return (f"--{name}={value}" for value in values if value is not None)
