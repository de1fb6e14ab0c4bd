"""Requests of brokers without a znode or a record, for questions about a possible cluster."""

from __future__ import annotations

from controller.contract.ids import BrokerId, Zxid
from controller.contract.records import Record, RecordKind
from controller.events import controlled_shutdown
from controller.model.context import Context
from controller.model.published_rows import Shown
from controller.transaction.conclusion import Conclusion, Outcome
from controller.transaction.transaction import Transaction


def request_shutdown(context: Context, broker: BrokerId, *, shows_steps: bool = True) -> Outcome:
    """Let a broker send its ControlledShutdown request now, one millisecond after the last record.

    A caller can do without the rows of transitions and requests (`shows_steps`).
    """
    header = context.header
    request = Record(
        cluster=header.cluster,
        generation=header.position.generation,
        seq=header.position.seq + 1,
        kind=RecordKind.HEARTBEAT,
        observed_ms=header.wall_ms + 1,
        zxid=Zxid(header.zxid + 1),
    )
    tx = Transaction(context, request, Shown(steps=shows_steps))
    conclusion = Conclusion(tx)
    controlled_shutdown.ask(tx, broker)
    return conclusion.finish()
