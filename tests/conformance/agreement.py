"""Agreement between two accounts of the same history.

The counting belongs here, with longest common subsequences of moves for each subject, and multisets of requests.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.row import Row
from tests.conformance.controller_log import Account, Move, Told


class Agreement(NamedTuple):
    """How many items are in both accounts, in the real one, and in the derived one."""

    matched: int
    real: int
    derived: int

    @property
    def share(self) -> float:
        return self.matched / max(self.real, self.derived, 1)

    def __str__(self) -> str:
        return f"{self.matched} / {self.real} / {self.derived}  {100 * self.share:.1f} %"


class Parted(NamedTuple):
    """Moves and requests that only the controller's account has, and those that only the replica's has."""

    real_moves: int = 0
    derived_moves: int = 0
    real_requests: int = 0
    derived_requests: int = 0


def account_of(rows: list[Row]) -> Account:
    """Return the replica's account, with its final transitions by epoch, then in order, and its requests."""
    account = Account({}, Counter())
    for subject, transitions in final_transitions(rows).items():
        account.moves[subject] = [
            Move(row.controller_epoch, row.from_state, row.to_state, row.leader, row.leader_epoch, row.isr)
            for row in transitions
        ]
    for row in rows:
        if isinstance(row, Request) and row.status is Status.FINAL and row.api != "UpdateMetadata":
            account.requests.update(partition_states(row))
    return account


def final_transitions(rows: list[Row]) -> dict[str, list[Transition]]:
    """Return the final transitions of each partition and replica, by epoch, then in order."""
    found: defaultdict[str, list[Transition]] = defaultdict(list)
    for row in rows:
        if isinstance(row, Transition) and row.status is Status.FINAL and row.subject in ("partition", "replica"):
            tp = f"{row.topic}-{row.partition}"
            found[tp if row.subject == "partition" else f"{tp}@{row.broker}"].append(row)
    for transitions in found.values():
        transitions.sort(key=lambda row: row.controller_epoch)  # a deposed controller may go on while the next one acts
    return found


def partition_states(row: Request) -> Iterator[Told]:
    """Yield the part of a request for each partition, as far as a real controller's log shows it."""
    (broker,) = row.brokers
    for state in row.partition_states:
        who = (row.api, row.controller_epoch, broker, f"{state.topic}-{state.partition}")
        if row.api == "StopReplica":
            yield Told(*who, flag=row.delete_partitions or state.delete_partition)
        else:
            yield Told(*who, state.leader, state.leader_epoch, state.isr, state.is_new)


def as_far_as_told(ours: Account, real: Account) -> Account:
    """Reduce our account to the fields of this real one. The logs of old releases have fewer."""
    told = [move for moves in real.moves.values() for move in moves]
    if not any(move.leader_epoch is not None for move in told):
        moves = {
            name: [move._replace(leader_epoch=None, isr=None) for move in moves] for name, moves in ours.moves.items()
        }
        ours = ours._replace(moves=moves)
    if any(each.flag is None for each in real.requests):
        requests: Counter[Told] = Counter()
        for each, count in ours.requests.items():
            requests[each._replace(flag=None) if each.api == "LeaderAndIsr" else each] += count
        ours = ours._replace(requests=requests)
    return ours


def common(real: list[Move], derived: list[Move]) -> int:
    """Return the length of the longest common subsequence."""
    if real == derived:
        return len(real)
    row = [0] * (len(derived) + 1)
    for move in real:
        before = row
        row = [0]
        for index, other in enumerate(derived):
            row.append(before[index] + 1 if move == other else max(row[-1], before[index + 1]))
    return row[-1]


def moves_agreement(real: Account, derived: Account) -> Agreement:
    """Return the agreement on moves of partitions and replicas, summed over subjects."""
    subjects = {*real.moves, *derived.moves}
    matched = sum(common(real.moves.get(name, []), derived.moves.get(name, [])) for name in subjects)
    return Agreement(matched, sum(map(len, real.moves.values())), sum(map(len, derived.moves.values())))


def requests_agreement(real: Account, derived: Account) -> Agreement:
    """Return the agreement on entries of requests, as multisets."""
    matched = sum(min(count, derived.requests[told]) for told, count in real.requests.items())
    return Agreement(matched, real.requests.total(), derived.requests.total())


def parted_by_epoch(real: Account, derived: Account) -> dict[int, Parted]:
    """Return the differences between the accounts, by the controller's epoch."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for name in {*real.moves, *derived.moves}:
        theirs, ours = real.moves.get(name, []), derived.moves.get(name, [])
        if theirs == ours:
            continue
        for tag, start, end, our_start, our_end in SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
            if tag != "equal":
                for move in theirs[start:end]:
                    counts[move.epoch]["real_moves"] += 1
                for move in ours[our_start:our_end]:
                    counts[move.epoch]["derived_moves"] += 1
    for told, count in (real.requests - derived.requests).items():
        counts[told.epoch]["real_requests"] += count
    for told, count in (derived.requests - real.requests).items():
        counts[told.epoch]["derived_requests"] += count
    return {epoch: Parted(**parts) for epoch, parts in counts.items()}


def differences(real: Account, derived: Account) -> list[str]:
    """Return the differences between the accounts, subject by subject, for a person to read."""
    lines = []
    for name in sorted({*real.moves, *derived.moves}):
        ours, theirs = derived.moves.get(name, []), real.moves.get(name, [])
        matcher = SequenceMatcher(None, theirs, ours, autojunk=False)
        for tag, start, end, our_start, our_end in matcher.get_opcodes():
            if tag != "equal":
                lines += [f"{name} real    {move}" for move in theirs[start:end]]
                lines += [f"{name} derived {move}" for move in ours[our_start:our_end]]
    return lines
