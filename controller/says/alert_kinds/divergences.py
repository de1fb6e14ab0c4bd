"""Alerts on divergences, which are partition states in ZooKeeper that differ from the prediction."""

from __future__ import annotations

from enum import Enum
from typing import Final

from controller.says.alert_kinds.kind import MINUTE_MS, info, warn
from controller.says.remedies.remedy import Advice

DIFFERENT_LEADER: Final = warn(
    name="DifferentLeader",
    headline="an unexpected leader was elected",
    step="read the controller's log",
    advice=Advice(
        "Compare the two values in the evidence. The state may have been edited, or the controller knew more."
    ),
    several="{count} partitions got another leader than the controller's rules give{names}",
    lasts_ms=10 * MINUTE_MS,
    divergence="different_leader",
)


class Disagreement(Enum):
    """Kind of a disagreement, under which `kontrast_divergences_total` counts it. It is the subject of its alert."""

    UNEXPECTED_ISR = "unexpected_isr"  # the predicted leader, but another ISR
    UNEXPLAINED_WRITE = "unexplained_write"  # no rule of the controller explains the write
    WRITE_NEVER_CAME = "write_never_came"  # the controller left out a predicted write, but finished later events
    ORPHAN_STATE = "orphan_state"  # a state of a partition that its topic's assignment lacks
    ILLEGAL_STATE = "illegal_state"  # a state that no controller writes


CONTROLLER_DISAGREES: Final = info(
    name="ControllerDisagrees",
    headline="partition states differ from the rules",
    advice=Advice("Compare the values in the evidence with the controller's log. The runbook explains each kind."),
    several_of={
        Disagreement.UNEXPECTED_ISR.value: "{count} partitions got another ISR than the controller's rules give{names}",
        Disagreement.UNEXPLAINED_WRITE.value: "{count} partitions were written{names}, but no rule of the controller "
        "explains the writes",
        Disagreement.WRITE_NEVER_CAME.value: "the controller never wrote the states of {count} partitions{names} but "
        "finished later events",
        Disagreement.ORPHAN_STATE.value: "{count} partitions have a state but are not in their topics' "
        "assignments{names}: the topics may be half deleted, or were edited",
        Disagreement.ILLEGAL_STATE.value: "{count} partitions have a state that no controller writes{names}. Find out "
        "who wrote it",
    },
    lasts_ms=10 * MINUTE_MS,
)
