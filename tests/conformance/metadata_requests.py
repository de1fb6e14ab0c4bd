"""UpdateMetadata requests of a controller's log beside the published ones.

Up to 2.4 the log has every partition's state in a request, from 2.6 on only the brokers and the number of partitions.
One AlterPartition of n partitions is one request of the controller, while each of its writes is a row here. So the
figure counts partitions in requests, which both accounts have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from controller.contract.effect_rows import UPDATE_METADATA, Request, Status
from controller.contract.ids import NO_LEADER
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import Row
from tests.conformance.agreement import Agreement
from tests.conformance.recording import Recording

_LINE = re.compile(
    r"\[[^\]]+\] \w+ \[?Controller (?:id=)?\d+ epoch[= ](?P<epoch>\d+)\]? "
    r"[Ss]ending UpdateMetadata request (?P<rest>.*)"
)
_STATE = re.compile(
    r".*?[lL]eader[=:](?P<leader>-?\d+),.*?to brokers \w*Set\((?P<brokers>[\d, ]*)\) for partition (?P<tp>\S+)"
)
_EPOCH = re.compile(r"[lL]eaderEpoch[=:](\d+)")
_ISR = re.compile(r"(?:isr=\[([\d, ]*)\]|ISR:([\d,]*),Leader)")
_COUNT = re.compile(r"to brokers \w*Set\((?P<brokers>[\d, ]*)\) for (?P<count>\d+) partitions")


_DURING_DELETE = -2  # Kafka's leader of a partition whose topic is being deleted


class Heard(NamedTuple):
    """One partition in requests to these brokers. From 2.6 on the log has no partition."""

    epoch: int
    brokers: tuple[int, ...]
    partition: str = ""
    leader: int = NO_LEADER
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()


def logged(recording: Recording) -> Counter[Heard]:
    """Return the partitions in the requests of all controllers, by their logs."""
    found: Counter[Heard] = Counter()
    for log in sorted(recording.directory.glob("logs*/state-change.log")):
        found.update(dict(_in_log(log)))
    return found


def _in_log(log: Path) -> Iterator[tuple[Heard, int]]:
    counts: Counter[Heard] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        if (match := _LINE.match(line)) is None:
            continue
        epoch, rest = int(match["epoch"]), match["rest"]
        if counted := _COUNT.search(rest):
            counts[Heard(epoch, _ids(counted["brokers"]))] += int(counted["count"])
        elif state := _STATE.match(rest):
            leader_epoch, isr = _EPOCH.search(rest), _ISR.search(rest)
            assert leader_epoch is not None, line
            assert isr is not None, line
            told = (int(state["leader"]), int(leader_epoch[1]), tuple(sorted(_ids(isr[1] or isr[2] or ""))))
            counts[Heard(epoch, _ids(state["brokers"]), _name(state["tp"]), *told)] += 1
    yield from counts.items()


def _name(text: str) -> str:
    return re.sub(r"^\[([^\],]+),(\d+)\]$", r"\1-\2", text)


def _ids(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in text.replace(" ", "").split(",") if part))


def published(rows: Iterable[Row], *, names_partitions: bool) -> Counter[Heard]:
    """Return the partitions in the published final requests."""
    found: Counter[Heard] = Counter()
    known: dict[str, Heard] = {}
    for row in rows:
        if isinstance(row, PartitionRow):
            name = f"{row.topic}-{row.partition}"
            leader, leader_epoch = (_DURING_DELETE, 0) if row.deleting else (row.leader, row.leader_epoch)
            known[name] = Heard(0, (), name, leader, leader_epoch, tuple(sorted(row.isr)))
            if row.removed or row.leader_epoch < 0:
                known.pop(name)
        elif isinstance(row, Request) and row.api == UPDATE_METADATA and row.status is Status.FINAL:
            receivers = tuple(sorted(row.brokers))
            told = list(known.values()) if row.all_partitions else list(_told(row))
            if names_partitions:
                found.update(each._replace(epoch=row.controller_epoch, brokers=receivers) for each in told)
            else:
                found[Heard(row.controller_epoch, receivers)] += len(told)
    return found


def _told(row: Request) -> Iterator[Heard]:
    for state in row.partition_states:
        assert state.leader is not None
        assert state.leader_epoch is not None
        assert state.isr is not None
        isr = tuple(sorted(state.isr))
        yield Heard(0, (), f"{state.topic}-{state.partition}", state.leader, state.leader_epoch, isr)


def metadata_agreement(recording: Recording, rows: Iterable[Row]) -> Agreement:
    """Return how many of the logged partitions in UpdateMetadata were published, and how many in vain."""
    real = logged(recording)
    ours = published(rows, names_partitions=any(each.partition for each in real))
    matched = sum(min(count, ours[heard]) for heard, count in real.items())
    return Agreement(matched, real.total(), ours.total())
