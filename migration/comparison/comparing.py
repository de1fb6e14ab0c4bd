"""Compare both sides until only differences remain that the dual write cannot repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from migration.comparison.view import BothValues, CopiedKey, CopiedSubject, Expected, QuorumView, differences
from migration.comparison.zookeeper_view import forbidden_subjects, zookeeper_values
from migration.nodes.nodes import Mode, Node, Nodes, Quorum
from migration.preflight.tree import BROKER_CONFIGS, TOPIC_CONFIGS, Tree
from wording.said import Said, cut, line

if TYPE_CHECKING:
    from migration.comparison.quorum_view import QuorumReader

# A healthy dual write sets a new offset every half second. Of 908 measured gaps 99 % were below 0.6 s, and the longest
# was 3.8 s, after the quorum's leader was killed. So ten seconds without a new offset mean a fault.
PATIENCE_SECONDS: Final = 10.0
_ROUNDS: Final = 3


class ComparisonOutcome(Enum):
    """The outcome of a comparison, of one subject or of the whole."""

    EQUAL = "equal"
    LAGGING = "lagging"  # values differ, but ZooKeeper may not have been written yet
    DIFFERENT = "different"  # values differ, though ZooKeeper has reached the quorum's earlier position
    NOT_COMPARED = "not compared"


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


class ZooKeeperSide(Protocol):
    """The required reads of ZooKeeper."""

    def read(self) -> Tree:
        """Return the present znodes that a migration copies."""

    def wait_for(self, offset: int, seconds: float) -> int:
        """Return the offset in /migration, as soon as it has reached `offset` or the time is over."""


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """One subject with its compared parts, the answering node and the differences."""

    subject: CopiedSubject
    verdict: ComparisonOutcome
    compared: int = 0
    source: str = ""
    reason: str = ""
    differences: Mapping[CopiedKey, BothValues] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)

    def said(self) -> Said:
        """Yield the verdict, the first differences, and what was not compared."""
        word = (f"{self.verdict.value:<12}", _MEANINGS.get(self.verdict, ""))
        if self.verdict is ComparisonOutcome.NOT_COMPARED:
            yield line(word, f"  {self.subject.value}: {cut(self.reason)}")
            return
        count = f"{len(self.differences)} of {self.compared}" if self.differences else f"{self.compared}"
        yield line(word, f"  {self.subject.value}: {count}, by {cut(self.source)}")
        for key, difference in list(self.differences.items())[:_SHOWN]:
            zookeeper, quorum = ("nothing" if side is None else cut(side) or '""' for side in difference)
            yield line(f"{cut(str(key))}: ZooKeeper has {zookeeper}, the quorum has {quorum}", indent=2)
        if len(self.differences) > _SHOWN:
            yield line(f"and {len(self.differences) - _SHOWN} more (--json names all)", indent=2)
        for group, reason in sorted(self.withheld.items()):
            yield line(f"not compared: {cut(group)}: {cut(reason)}", indent=2)

    def object(self) -> dict[str, object]:
        """Return the object of --json."""
        differences = [
            {"of": key.group, "name": key.name, "zookeeper": one.zookeeper, "quorum": one.quorum}
            for key, one in self.differences.items()
        ]
        return {
            "type": "subject",
            "subject": self.subject.value,
            "verdict": self.verdict.value,
            "compared": self.compared,
            "source": self.source,
            "reason": self.reason,
            "differences": differences,
            "not_compared": self.withheld,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a comparison. ZooKeeper is at `offset` in the quorum's log, which ends at `high_watermark`."""

    offset: int
    high_watermark: int
    subjects: tuple[SubjectResult, ...]

    @property
    def lag(self) -> int:
        """Return the number of records in the quorum's log that ZooKeeper lacks."""
        return max(0, self.high_watermark - 1 - self.offset)

    @property
    def verdict(self) -> ComparisonOutcome:
        """Return the worst verdict of all subjects, or lagging if only the offset lags."""
        verdicts = {result.verdict for result in self.subjects}
        if self.lag:
            verdicts.add(ComparisonOutcome.LAGGING)
        worst_first = (ComparisonOutcome.DIFFERENT, ComparisonOutcome.LAGGING)
        return next((verdict for verdict in worst_first if verdict in verdicts), ComparisonOutcome.EQUAL)

    def said(self, nodes: Nodes) -> Said:
        """Yield the nodes, each subject with its differences, and the total."""
        for node in nodes.nodes:
            yield line(f"{cut(node.name)}: {cut(node.mode.words if node.mode else node.reason)}")
        for result in self.subjects:
            yield from result.said()
        if self.verdict is not ComparisonOutcome.EQUAL and nodes.in_mode(Mode.CONTROLLER):
            yield line(
                "a controller lacks the migration's flag. If the migration is finalized, no process writes to "
                "ZooKeeper again, and there is no way back"
            )
        quorum = nodes.quorum
        leader = "" if quorum is None else f", leader {quorum.leader} of leader epoch {quorum.leader_epoch}"
        position = (
            f"/migration is at offset {self.offset}, the quorum's high watermark is "
            f"{self.high_watermark} (lag {self.lag}){leader}"
        )
        yield line(f"{_SENTENCES[self.verdict]} ({position})")

    def objects(self, nodes: Nodes) -> Iterator[dict[str, object]]:
        """Yield an object for each node, for each subject, and for the total."""
        for node in nodes.nodes:
            yield {
                "type": "node",
                "address": node.address,
                "id": node.node_id,
                "mode": node.mode.value if node.mode else None,
                "reason": node.reason,
            }
        yield from (result.object() for result in self.subjects)
        quorum = nodes.quorum
        yield {
            "type": "comparison",
            "verdict": self.verdict.value,
            "offset": self.offset,
            "high_watermark": self.high_watermark,
            "lag": self.lag,
            "leader": quorum.leader if quorum else None,
            "leader_epoch": quorum.leader_epoch if quorum else None,
            "voters": quorum.voters if quorum else None,
        }


def compare(zookeeper: ZooKeeperSide, quorum: QuorumReader, patience_seconds: float = PATIENCE_SECONDS) -> Comparison:
    """Compare in rounds. Raise NodeError if no node reports the quorum's position.

    Both sides change during the reads. So a difference counts only if the quorum already had its value before an offset
    that ZooKeeper has reached since and the answering node has fetched, but the values still differ.
    """
    earlier: Mapping[CopiedKey, BothValues] = {}
    wanted = -1
    for _ in range(_ROUNDS):
        tree = zookeeper.read()
        said = quorum.read(_expected(tree))
        said.reasons.update(forbidden_subjects(tree))
        for subject in said.reasons:
            said.sources.pop(subject, None)
        values = zookeeper_values(tree, said.plain)
        found = differences(values, said)
        position = quorum.position()
        lasting = {
            key: one
            for key, one in found.items()
            if key in earlier
            and earlier[key].quorum == one.quorum
            and _has_fetched(said.sources[key.subject], position, wanted)
        }
        wanted = position.high_watermark - 1
        offset = zookeeper.wait_for(wanted, patience_seconds)
        if offset < wanted or lasting.keys() == found.keys():
            break
        earlier = found
    subjects = tuple(_result(subject, values, said, found, lasting) for subject in CopiedSubject)
    return Comparison(offset, wanted + 1, subjects)


def _has_fetched(node: Node, position: Quorum, offset: int) -> bool:
    """Return whether the node has fetched this record. A broker without contact to the quorum gives old answers."""
    return node.node_id is None or position.log_ends.get(node.node_id, offset + 1) > offset


def _expected(tree: Tree) -> Expected:
    return Expected(
        topics=frozenset(tree.topics),
        partitions=sum(len(topic.partitions) for topic in tree.topics.values() if topic is not None),
        configured_topics=frozenset(tree.children(TOPIC_CONFIGS)),
        configured_brokers=frozenset(tree.children(BROKER_CONFIGS)),
    )


def _result(
    subject: CopiedSubject,
    values: Mapping[CopiedKey, str],
    said: QuorumView,
    found: Mapping[CopiedKey, BothValues],
    lasting: Mapping[CopiedKey, BothValues],
) -> SubjectResult:
    if subject not in said.sources:
        return SubjectResult(subject, ComparisonOutcome.NOT_COMPARED, reason=said.reasons.get(subject, ""))
    source = said.sources[subject]
    different = {key: one for key, one in lasting.items() if key.subject is subject}
    open_ones = {key: one for key, one in found.items() if key.subject is subject}
    verdict = (
        ComparisonOutcome.DIFFERENT
        if different
        else ComparisonOutcome.LAGGING
        if open_ones
        else ComparisonOutcome.EQUAL
    )
    keys = {key for key in values.keys() | said.values.keys() if key.subject is subject and said.is_known(key)}
    return SubjectResult(
        subject,
        verdict,
        compared=len(keys),
        source=f"{source.name} ({source.mode.words})" if source.mode else source.name,
        differences=dict(sorted((different or open_ones).items(), key=lambda item: str(item[0]))),
        withheld={group: why for (about, group), why in said.withheld.items() if about is subject},
    )
