"""Conclusions from time that passes without a write, about writes that the controller owes or will never make.

`step` judges them before each record, while events are in flight.
"""

from __future__ import annotations

from controller.events import controlled_shutdown
from controller.inference import expected_writes, needless_writes, never_missed, owed_removals
from controller.transaction.transaction import Transaction


def judge(tx: Transaction) -> None:
    """Draw the conclusions that are due, those that explain more before those that give up."""
    owed_removals.judge(tx)
    never_missed.judge(tx)
    controlled_shutdown.give_up_on_unanswered(tx)
    expected_writes.give_up_on_overtaken(tx)
    needless_writes.judge(tx)
