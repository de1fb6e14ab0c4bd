"""Terms that were cut before a write, with their length, their controllers' work, and their rows.

Terms without a written state belong here. A replica of ZooKeeper cannot know their work, so they are listed separately
and excluded from the percentages. `large.py` still has their figures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from controller.contract.effect_rows import Transition
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from tests.conformance.controller_log import Account


class CutTerm(NamedTuple):
    """A term without a written state, with its length and the work of its controller and the replica."""

    epoch: int
    lasted_ms: int
    moved: int  # partitions that the controller moved, or of which it moved a replica
    derived: int  # how many of these the replica derived
    said: bool  # whether rows have both the controller's takeover and its resignation

    def __str__(self) -> str:
        said = "said" if self.said else "not said"
        return f"epoch {self.epoch}, {self.lasted_ms} ms, {self.moved} partitions, {self.derived} derived, {said}"


def cut_terms(records: Sequence[Record], rows: Sequence[Row], real: Account, ours: Account) -> list[CutTerm]:
    """Return the terms without a written state whose controller moved something, or had states to write by the rows."""
    wrote = {epoch for record in records if (epoch := _controller_epoch(record)) is not None}
    said, owing = _said(rows), _owing(rows)
    moved, derived = _partitions(real), _partitions(ours)
    return [
        CutTerm(epoch, lasted_ms, moved[epoch], derived[epoch], epoch in said)
        for epoch, lasted_ms in _terms(records)
        if epoch not in wrote and (moved[epoch] or epoch in owing)
    ]


def without(account: Account, terms: Sequence[CutTerm]) -> Account:
    """Return the account of all other terms."""
    epochs = {term.epoch for term in terms}
    moves = {name: [move for move in moves if move.epoch not in epochs] for name, moves in account.moves.items()}
    requests = Counter({told: count for told, count in account.requests.items() if told.epoch not in epochs})
    return Account(moves, requests)


def _terms(records: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """Yield each controller's epoch, and the time for which /controller was its own."""
    epoch, began_ms = 0, 0
    for record in records:
        ended = record.path == "/controller" and record.kind is RecordKind.DELETED
        if ended and epoch:
            yield epoch, record.observed_ms - began_ms
            epoch = 0
        elif record.path == "/controller_epoch" and record.data:
            epoch, began_ms = int(record.data), record.observed_ms


def _controller_epoch(record: Record) -> int | None:
    if not (record.data and record.author and record.path.endswith("/state")):
        return None
    epoch: int = json.loads(record.data)["controller_epoch"]
    return epoch


def _partitions(account: Account) -> Counter[int]:
    """Count the partitions with a move, or with a move of a replica, by epoch."""
    return Counter(
        epoch
        for _, epoch in {
            (name.partition("@")[0], move.epoch) for name, moves in account.moves.items() for move in moves
        }
    )


def _said(rows: Sequence[Row]) -> set[int]:
    """Return the epochs of the controllers whose takeover and resignation have rows."""
    said: dict[str, set[int]] = {"Active": set(), "Resigned": set()}
    for row in rows:
        if isinstance(row, Transition) and row.subject == "controller":
            said[row.to_state].add(row.controller_epoch)
    return said["Active"] & said["Resigned"]


def _owing(rows: Sequence[Row]) -> set[int]:
    """Return the epochs of the controllers that resigned, by the rows, before any of their due writes."""
    return {
        row.controller_epoch
        for row in rows
        if isinstance(row, Transition) and row.to_state == "Resigned" and "It wrote no partition's state" in row.cause
    }
