"""Alerts on divergences, which are partition states in ZooKeeper that differ from the prediction."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kind import MINUTE_MS, AlertKind
from controller.contract.alert_row import Severity
from controller.contract.remedies.remedy import Advice

DIFFERENT_LEADER: Final = AlertKind(
    name="DifferentLeader",
    severity=Severity.WARN,
    meaning="A partition got another leader than the controller's rules give it.",
    advice=Advice(
        "Compare the two values in the evidence. The state may have been edited, or the controller knew more."
    ),
    several="{count} partitions got another leader than the controller's rules give{names}",
    lasts_ms=10 * MINUTE_MS,
    divergence="different_leader",
)
UNEXPECTED_ISR: Final = AlertKind(
    name="UnexpectedIsr",
    severity=Severity.INFO,
    meaning="A partition got the predicted leader, but another ISR than the controller's rules give it.",
    advice=Advice("Compare the two values in the evidence."),
    several="{count} partitions got another ISR than the controller's rules give{names}",
    lasts_ms=10 * MINUTE_MS,
    divergence="unexpected_isr",
)
UNEXPLAINED_WRITE: Final = AlertKind(
    name="UnexplainedWrite",
    severity=Severity.INFO,
    meaning="A partition's state was written, but no rule of the controller explains the write.",
    advice=Advice("Compare the two values in the evidence. The state may have been edited."),
    several="{count} partitions were written{names}, but no rule of the controller explains the writes",
    lasts_ms=10 * MINUTE_MS,
    divergence="unexplained_write",
)
ILLEGAL_STATE: Final = AlertKind(
    name="IllegalState",
    severity=Severity.WARN,
    meaning="A partition has a state in ZooKeeper that no controller writes.",
    advice=Advice("Find out who wrote the state. The next controller would load it unchanged."),
    several="{count} partitions have a state that no controller writes{names}. Find out who wrote it",
    lasts_ms=10 * MINUTE_MS,
    divergence="illegal_state",
)
ORPHAN_STATE: Final = AlertKind(
    name="OrphanState",
    severity=Severity.INFO,
    meaning="A partition has a state but is not in its topic's assignment.",
    advice=Advice("Look at the topic's znode. The topic may have been edited, or be half deleted."),
    several="{count} partitions have a state but are not in their topics' assignments{names}: the topics may be half "
    "deleted, or were edited",
    lasts_ms=10 * MINUTE_MS,
    divergence="orphan_state",
)
WRITE_NEVER_CAME: Final = AlertKind(
    name="WriteNeverCame",
    severity=Severity.INFO,
    meaning="The controller never made a predicted write, but finished later events.",
    advice=Advice("Compare with the controller's log. Kontrast may have predicted the write without a reason."),
    several="the controller never wrote the states of {count} partitions{names} but finished later events",
    lasts_ms=10 * MINUTE_MS,
    divergence="write_never_came",
)
