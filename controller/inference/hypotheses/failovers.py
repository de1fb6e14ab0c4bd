"""Failovers that went otherwise than assumed, of a controller believed to be poisoned, or found during its load."""

from __future__ import annotations

from collections.abc import Iterator

from controller.events import topic_deletion
from controller.events.controller_failover import start_machines
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.model.event import EventKind
from controller.transaction.transaction import Transaction


def never_poisoned(tx: Transaction, _: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the controller failed over as any other controller does.

    It explains a controller believed to be poisoned (KAFKA-12315) that changes replica states, which disproves the
    belief. The end of a term among removals from the ISR shows a poisoned process. Two other cases look the same.
    One is a process that restarted while its broker's znode stayed, the other a term that ended there by chance. No
    recording has either case.
    """
    if tx.header.is_poisoned:
        yield _run_unpoisoned


def _run_unpoisoned(tx: Transaction) -> None:
    header = tx.header
    header.former.forget_poisoned(header.controller)
    _fail_over(tx, f"broker {header.controller} is not the process that was poisoned")


def failover_found_early(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the found controller loads the cluster now. The read lacked a broker that the state names.

    A read cannot show how far a failover is, so it counts as done (Kafka 3.9 `KafkaController.onControllerFailover`).
    Later writes show that it was not. A soak's first read had this moment.
    """
    header, before = tx.header, write.before
    if header.term.began_ms or before is None:
        return
    seen = header.brokers.keys() | header.departures.last.keys()
    if not seen.issuperset((before.leader, *before.isr)):
        yield lambda trial: _fail_over(trial, f"broker {header.controller} took over before the complete read")


def _fail_over(tx: Transaction, cause: str) -> None:
    tx.events.begin(EventKind.CONTROLLER_FAILOVER, cause)
    start_machines(tx, list(tx.state.topics))
    topic_deletion.resume_all(tx)
