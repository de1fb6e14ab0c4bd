"""Print the result of `kontrast migration compare`, for people and as JSON."""

from __future__ import annotations

from typing import Any, Final

from cli.printing.standard_output import print_json as print_object, print_said
from migration.comparison.comparing import Comparison, ComparisonOutcome, SubjectResult
from migration.comparison.view import BothValues, Key
from migration.nodes.nodes import Mode, Node, Nodes
from wording.said import Said, cut, line

_SHOWN: Final = 20  # differences of a subject
_MEANINGS: Final = {
    ComparisonOutcome.DIFFERENT: "page",
    ComparisonOutcome.LAGGING: "warn",
    ComparisonOutcome.EQUAL: "ok",
}
_SENTENCES: Final = {
    ComparisonOutcome.EQUAL: "ZooKeeper equals the quorum",
    ComparisonOutcome.LAGGING: "ZooKeeper is behind the quorum. A rollback now would lose the missing records. If "
    "this lasts, restart the quorum's leader, which writes everything again",
    ComparisonOutcome.DIFFERENT: "ZooKeeper differs from the quorum, and the dual write does not mend it. A rollback "
    "now would bring ZooKeeper's values back. The quorum's next leader sets them to its own",
}


def print_comparison(nodes: Nodes, comparison: Comparison) -> None:
    """Print the nodes, each subject with its differences, and the total, for people."""
    print_said(_lines(nodes, comparison))


def _lines(nodes: Nodes, comparison: Comparison) -> Said:
    for node in nodes.nodes:
        yield line(f"{cut(node.name)}: {cut(node.mode.words if node.mode else node.reason)}")
    for result in comparison.subjects:
        yield from _subject(result)
    if comparison.verdict is not ComparisonOutcome.EQUAL and nodes.in_mode(Mode.CONTROLLER):
        yield line(
            "a controller lacks the migration's flag. If the migration is finalized, no process writes to ZooKeeper "
            "again, and there is no way back"
        )
    quorum = nodes.quorum
    leader = "" if quorum is None else f", leader {quorum.leader} of leader epoch {quorum.leader_epoch}"
    position = (
        f"/migration is at offset {comparison.offset}, the quorum's high watermark is "
        f"{comparison.high_watermark} (lag {comparison.lag}){leader}"
    )
    yield line(f"{_SENTENCES[comparison.verdict]} ({position})")


def _subject(result: SubjectResult) -> Said:
    word = (f"{result.verdict.value:<12}", _MEANINGS.get(result.verdict, ""))
    if result.verdict is ComparisonOutcome.NOT_COMPARED:
        yield line(word, f"  {result.subject.value}: {cut(result.reason)}")
        return
    count = f"{len(result.differences)} of {result.compared}" if result.differences else f"{result.compared}"
    yield line(word, f"  {result.subject.value}: {count}, by {cut(result.source)}")
    for key, difference in list(result.differences.items())[:_SHOWN]:
        yield line(f"{cut(str(key))}: {_sides(difference)}", indent=2)
    if len(result.differences) > _SHOWN:
        yield line(f"and {len(result.differences) - _SHOWN} more (--json names all)", indent=2)
    for group, reason in sorted(result.withheld.items()):
        yield line(f"not compared: {cut(group)}: {cut(reason)}", indent=2)


def _sides(difference: BothValues) -> str:
    zookeeper, quorum = ("nothing" if side is None else cut(side) or '""' for side in difference)
    return f"ZooKeeper has {zookeeper}, the quorum has {quorum}"


def print_json(nodes: Nodes, comparison: Comparison) -> None:
    """Print one JSON object per line, for each node, for each subject, and for the total."""
    for node in nodes.nodes:
        print_object(_node_row(node))
    for result in comparison.subjects:
        print_object(_subject_row(result))
    quorum = nodes.quorum
    print_object(
        {
            "type": "comparison",
            "verdict": comparison.verdict.value,
            "offset": comparison.offset,
            "high_watermark": comparison.high_watermark,
            "lag": comparison.lag,
            "leader": quorum.leader if quorum else None,
            "leader_epoch": quorum.leader_epoch if quorum else None,
            "voters": quorum.voters if quorum else None,
        }
    )


def _node_row(node: Node) -> dict[str, Any]:
    return {
        "type": "node",
        "address": node.address,
        "id": node.node_id,
        "mode": node.mode.value if node.mode else None,
        "reason": node.reason,
    }


def _subject_row(result: SubjectResult) -> dict[str, Any]:
    return {
        "type": "subject",
        "subject": result.subject.value,
        "verdict": result.verdict.value,
        "compared": result.compared,
        "source": result.source,
        "reason": result.reason,
        "differences": [_difference_row(key, one) for key, one in result.differences.items()],
        "not_compared": result.withheld,
    }


def _difference_row(key: Key, difference: BothValues) -> dict[str, Any]:
    return {"of": key.group, "name": key.name, "zookeeper": difference.zookeeper, "quorum": difference.quorum}
