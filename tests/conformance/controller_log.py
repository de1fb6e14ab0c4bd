"""A real controller's own account, from its state-change log, as transitions and requests.

Reading the log lines of Kafka 0.10 to 3.9 belongs here. `agreement` compares them with the replica.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

# 1.0 omits the epoch at the end of a partition's deletion. The line before has it.
LINE = re.compile(r"\[(?P<time>[^\]]+)\] \w+ \[Controller id=(?P<id>\d+)(?: epoch=(?P<epoch>\d+))?\] (?P<text>.*)")
# Up to 0.11 the prefix is part of the sentence, and a partition is written [topic,number].
EARLY_LINE = re.compile(r"\[(?P<time>[^\]]+)\] \w+ Controller (?P<id>\d+) epoch (?P<epoch>\d+) (?P<text>.*)")
EARLY_PARTITION = re.compile(r"\[([^\],]+),(\d+)\]")
PARTITION_MOVE = re.compile(r"Changed partition (?P<tp>\S+) state from (?P<from>\w+) to (?P<to>\w+)")
PARTITION_WRITE = re.compile(
    r"Changed partition (?P<tp>\S+) from (?P<from>\w+) to (?P<to>\w+) with state LeaderAndIsr\("
    r"leader=(?P<leader>-?\d+), leaderEpoch=(?P<epoch>\d+), "
    r"(?:isr=List\((?P<isr>[^)]*)\)|isrWithBrokerEpoch=List\((?P<states>.*)\)), "
)
# Up to 1.0 the log omits the leader epoch and the ISR. The requests that follow show both.
PARTITION_LED = re.compile(
    r"Changed partition (?P<tp>\S+) from (?P<from>\w+) to (?P<to>\w+) with leader (?P<leader>-?\d+)"
)
REPLICA_MOVE = re.compile(
    r"Changed state of replica (?P<replica>\d+) for partition (?P<tp>\S+) from (?P<from>\w+) to (?P<to>\w+)"
)
LEADER_AND_ISR = re.compile(
    r"Sending become-(?:leader|follower) LeaderAndIsr request .*?\bleader=(?P<leader>-?\d+), "
    r"leaderEpoch=(?P<epoch>\d+), isr=\[?(?P<isr>[\d, ]*)\]?, "
    r"(?:partitionEpoch|zkVersion)=.*?isNew=(?P<new>true|false).*? "
    r"to broker (?P<broker>\d+) for partition (?P<tp>\S+)"
)
# Up to 0.11 the request itself does not show whether the replica is new.
EARLY_LEADER_AND_ISR = re.compile(
    r"Sending become-(?:leader|follower) LeaderAndIsr request \(Leader:(?P<leader>-?\d+),ISR:(?P<isr>[\d,]*),"
    r"LeaderEpoch:(?P<epoch>\d+),ControllerEpoch:\d+\) to broker (?P<broker>\d+) for partition (?P<tp>\S+)"
)
STOP_REPLICA = re.compile(
    r"Sending StopReplica request .*?deletePartition=(?P<delete>true|false).*? to broker (?P<broker>\d+) "
    r"for partition (?P<tp>\S+)"
)
# Up to 2.3 the controller's other log has these requests. Only the lines before show their term.
TOOK_OVER = re.compile(r"\[[^\]]+\] INFO \[Controller (?:id=)?\d+\]:? .*[Ii]ncremented (?:epoch )?to (?P<epoch>\d+)")
STOPPED_REPLICAS = re.compile(
    r"\[[^\]]+\] DEBUG .*[Tt]he stop replica request \(delete = (?P<delete>true|false)\) "
    r"sent to broker (?P<broker>\d+) is (?P<replicas>.*)"
)
REPLICA = re.compile(r"\[Topic=(?P<topic>[^,]+),Partition=(?P<partition>\d+),Replica=\d+\]")


class Move(NamedTuple):
    """One step of a partition or a replica. Only a written state sets the last three fields."""

    epoch: int
    from_state: str
    to_state: str
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None


class Told(NamedTuple):
    """One partition's entry in a request to one broker."""

    api: str
    epoch: int
    broker: int
    partition: str
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    flag: bool | None = False


class Account(NamedTuple):
    """One account, with each subject's moves in order, and all requests as a multiset."""

    moves: dict[str, list[Move]]
    requests: Counter[Told]


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.replace(" ", "").split(",") if part)


def _lines(logs: Iterable[Path]) -> Iterator[tuple[int, str, str]]:
    lines = []
    for log in logs:
        epoch = 0
        for order, line in enumerate(log.read_text(errors="replace").splitlines()):
            if match := LINE.match(line):
                epoch = int(match["epoch"] or epoch)
                lines.append((epoch, match["time"], order, match["text"]))
            elif match := EARLY_LINE.match(line):
                text = EARLY_PARTITION.sub(r"\1-\2", match["text"])
                lines.append((int(match["epoch"]), match["time"], order, text[:1].upper() + text[1:]))
    for epoch, time, _, text in sorted(lines, key=lambda line: line[:3]):
        yield epoch, time, text


def read_move(epoch: int, text: str) -> tuple[str, Move] | None:
    """Return the subject and its move, if the text of a line has one."""
    if match := PARTITION_WRITE.match(text):
        isr = match["isr"]
        members = _ids(isr) if isr is not None else tuple(map(int, re.findall(r"brokerId=(\d+)", match["states"])))
        return match["tp"], Move(epoch, match["from"], match["to"], int(match["leader"]), int(match["epoch"]), members)
    if match := PARTITION_LED.match(text):
        return match["tp"], Move(epoch, match["from"], match["to"], int(match["leader"]))
    if match := PARTITION_MOVE.match(text):
        return match["tp"], Move(epoch, match["from"], match["to"])
    if match := REPLICA_MOVE.match(text):
        return f"{match['tp']}@{match['replica']}", Move(epoch, match["from"], match["to"])
    return None


def _stopped_replicas(log: Path) -> Iterator[Told]:
    """Yield the StopReplica requests in a broker's controller log."""
    epoch = 0
    for line in log.read_text(errors="replace").splitlines():
        if match := TOOK_OVER.match(line):
            epoch = int(match["epoch"])
        elif match := STOPPED_REPLICAS.match(line):
            for replica in REPLICA.finditer(match["replicas"]):
                tp = f"{replica['topic']}-{replica['partition']}"
                yield Told("StopReplica", epoch, int(match["broker"]), tp, flag=match["delete"] == "true")


def read_account(brokers: Iterable[Path]) -> Account:
    """Read the account of all controllers of a recording, by epoch, then time.

    Each broker has its directory of logs.
    """
    directories = list(brokers)
    moves: dict[str, list[Move]] = {}
    requests: Counter[Told] = Counter()
    for epoch, _, text in _lines(directory / "state-change.log" for directory in directories):
        if moved := read_move(epoch, text):
            subject, move = moved
            moves.setdefault(subject, []).append(move)
        elif match := LEADER_AND_ISR.match(text):
            told = Told("LeaderAndIsr", epoch, int(match["broker"]), match["tp"], int(match["leader"]),
                        int(match["epoch"]), _ids(match["isr"]), match["new"] == "true")  # fmt: skip
            requests[told] += 1
        elif match := EARLY_LEADER_AND_ISR.match(text):
            told = Told("LeaderAndIsr", epoch, int(match["broker"]), match["tp"], int(match["leader"]),
                        int(match["epoch"]), _ids(match["isr"]), None)  # fmt: skip
            requests[told] += 1
        elif match := STOP_REPLICA.match(text):
            requests[Told("StopReplica", epoch, int(match["broker"]), match["tp"], flag=match["delete"] == "true")] += 1
    told_of = {told.epoch for told in requests if told.api == "StopReplica"}
    for directory in directories:
        requests.update(told for told in _stopped_replicas(directory / "controller.log") if told.epoch not in told_of)
    return Account(moves, requests)
