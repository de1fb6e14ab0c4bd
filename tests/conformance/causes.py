"""Events that a real controller was handling at each move, from controller.log and state-change.log.

The lines that show the current event, and the comparison with the replica's causes, belong here. The controller has one
thread and both logs have its times. So a move belongs to the newest event that began before it.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from controller.contract.effect_rows import Status, Transition
from controller.contract.row import Row
from tests.conformance.controller_log import LINE, Move, read_move

NOTHING = "nothing"
FAILOVER = "ControllerFailover"
AUTOMATIC = "AutoPreferredReplicaLeaderElection"
ASKED_ELECTION = "ReplicaLeaderElection"
REASSIGNMENT = "PartitionReassignment"  # the log does not show whether the API or the znode asked for it
ALTER_PARTITION = "AlterPartitionReceived"

_EITHER_REASSIGNMENT = ("ApiPartitionReassignment", "ZkPartitionReassignment")

_TIMED = re.compile(r"\[(?P<time>[^\]]+)\] \w+ \[[^\]]*\],? (?P<text>.*)")

# Lines that begin an event of the controller, or end one (NOTHING), Kafka 1.1 to 3.9.
_BEGINNINGS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"Registering handlers", FAILOVER),
        (r"Starting the controller scheduler|Resigned", NOTHING),
        (r"Newly added brokers: ", "BrokerChange"),
        (r"Updated broker epochs cache: ", NOTHING),
        (r"New topics: ", "TopicChange"),
        (r"New partitions to be added ", "PartitionModifications"),
        (r"Delete topics listener fired for topics ", "TopicDeletion"),
        (r"Delete topic callback invoked ", "TopicDeletionStopReplicaResponseReceived"),
        (r"Shutting down broker \d+", "ControlledShutdown"),
        (r"Processing automatic preferred |Checking need to trigger auto", AUTOMATIC),
        (r"Leader imbalance ratio for broker \d+ is 0\.0 ", NOTHING),  # no election until the next broker
        (r"Leader imbalance ratio for broker ", AUTOMATIC),
        (r"Starting replica leader election .* triggered by (?!AutoTriggered)", ASKED_ELECTION),
        (r"Starting preferred replica leader election ", ASKED_ELECTION),
        (r"Handling log directory failure ", "LogDirEventNotification"),
        (r"Mark replicas .* as offline", "LeaderAndIsrResponseReceived"),
        (r"Updating ISRs for partitions: ", ALTER_PARTITION),
        (r"\d+/\d+ replicas have caught up .* Resuming", "PartitionReassignmentIsrChange"),
        (r"Updating assignment of partition |Handling reassignment of partition ", REASSIGNMENT),
    )
)
# Lines that belong to a reassignment, whichever event made the controller begin it.
_IN_REASSIGNMENT = re.compile(r"Leader -?\d+ for partition \S+ being reassigned|Updating leader epoch for partition ")
_CARRIES_REASSIGNMENT = {FAILOVER, REASSIGNMENT, ALTER_PARTITION, "BrokerChange", "PartitionReassignmentIsrChange"}


class Caused(NamedTuple):
    """A move and the kind of event that it belongs to."""

    move: Move
    kind: str
    time: str = ""


class CauseAgreement(NamedTuple):
    """How many causes were compared, how many were equal, and the pairs (real, derived) of others, with an example."""

    equal: int
    compared: int
    wrong: Counter[tuple[str, str]]
    examples: dict[tuple[str, str], str]

    def __str__(self) -> str:
        return f"{self.equal} equal of {self.compared} compared"


def read_causes(logs: Iterable[Path]) -> dict[str, list[Caused]]:
    """Return each subject's moves in order, with the current event. `logs` are the brokers' directories."""
    found = [item for directory in logs for item in _of_broker(directory)]
    causes: dict[str, list[Caused]] = {}
    for subject, caused in sorted(found, key=lambda item: (item[1].move.epoch, item[1].time)):
        causes.setdefault(subject, []).append(caused)
    return causes


def derived_causes(rows: Iterable[Row]) -> dict[str, list[Caused]]:
    """Return each subject's final moves in order, with the kind of event in their cause."""
    causes: dict[str, list[Caused]] = {}
    for row in rows:
        if isinstance(row, Transition) and row.status is Status.FINAL and row.subject in ("partition", "replica"):
            tp = f"{row.topic}-{row.partition}"
            subject = tp if row.subject == "partition" else f"{tp}@{row.broker}"
            move = Move(row.controller_epoch, row.from_state, row.to_state, row.leader, row.leader_epoch, row.isr)
            causes.setdefault(subject, []).append(Caused(move, row.cause.partition(":")[0]))
    return causes


def compare_causes(real: dict[str, list[Caused]], derived: dict[str, list[Caused]]) -> CauseAgreement:
    """Compare the causes of the moves that both accounts have in the same order."""
    equal, compared = 0, 0
    wrong: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    for subject in sorted(real.keys() & derived.keys()):
        for theirs, ours in _pairs(real[subject], derived[subject]):
            compared += 1
            if _same(theirs.kind, ours.kind):
                equal += 1
            else:
                wrong[theirs.kind, ours.kind] += 1
                examples.setdefault((theirs.kind, ours.kind), f"{theirs.time} {subject} {theirs.move}")
    return CauseAgreement(equal, compared, wrong, examples)


def _same(real: str, derived: str) -> bool:
    return derived in _EITHER_REASSIGNMENT if real == REASSIGNMENT else real == derived


def _of_broker(directory: Path) -> Iterator[tuple[str, Caused]]:
    """Yield the moves of one broker's terms. Among lines with the same time, the begin of an event comes first."""
    thread = _EventThread()
    lines = (_timed(directory / name, index) for index, name in enumerate(("controller.log", "state-change.log")))
    for time, _, line, text in heapq.merge(*lines, key=itemgetter(0, 1)):
        thread.read(time, text)
        match = LINE.match(line)
        moved = read_move(int(match["epoch"]), match["text"]) if match and match["epoch"] else None
        if moved:
            yield moved[0], Caused(moved[1], thread.handling(time), time)


class _EventThread:
    """The controller's event thread with its current event, according to its log."""

    def __init__(self) -> None:
        self._kind = NOTHING
        self._ended = ""  # when the event ended, if it has

    def handling(self, time: str) -> str:
        """Return the current event. An event that ended in this very millisecond still counts."""
        return NOTHING if self._ended and self._ended < time else self._kind

    def read(self, time: str, text: str) -> None:
        """Take a line into account."""
        going_on = NOTHING if self._ended else self._kind
        begun = next((begins for pattern, begins in _BEGINNINGS if pattern.match(text)), None)
        if _IN_REASSIGNMENT.match(text) and going_on not in _CARRIES_REASSIGNMENT:
            begun = REASSIGNMENT
        if begun == NOTHING:
            self._ended = time
        # A failover takes up its findings, and the automatic rebalance elects. Each is one event.
        elif begun and going_on != FAILOVER and (going_on, begun) != (AUTOMATIC, ASKED_ELECTION):
            self._kind, self._ended = begun, ""


def _timed(log: Path, index: int) -> Iterator[tuple[str, int, str, str]]:
    for line in log.read_text(errors="replace").splitlines():
        match = _TIMED.match(line)
        if match:
            yield match["time"], index, line, match["text"]


def _pairs(real: list[Caused], derived: list[Caused]) -> list[tuple[Caused, Caused]]:
    """Return the pairs of a longest common subsequence of the moves."""
    lengths = [[0] * (len(derived) + 1) for _ in range(len(real) + 1)]
    for i in reversed(range(len(real))):
        for j in reversed(range(len(derived))):
            same = real[i].move == derived[j].move
            lengths[i][j] = 1 + lengths[i + 1][j + 1] if same else max(lengths[i + 1][j], lengths[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(real) and j < len(derived):
        if real[i].move == derived[j].move:
            pairs.append((real[i], derived[j]))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
