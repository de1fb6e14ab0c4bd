"""Names of the rules of inference, as gauges and rows have them; `inference/hypotheses/table.py` has the rules."""

from __future__ import annotations

from typing import Final

# Rules that explain a written state.
INFERENCES_BY_WRITE: Final = (
    "loaded-before-registration",
    "created-without-broker",
    "never-poisoned",
    "deletion-answered",
    "deletion-unanswered",
    "completed-without-leader",
    "elected-after-all",
    "preferred-election",
    "log-dir-failed",
    "shutdown-reached-late",
    "shutdown-asked",
    "preferred-election-in-vain",
    "reassigned-again",
    "unclean-election",
    "deletion-found-early",
    "failover-found-early",
    "read-together",
    "read-by-load",
)

# All: time, a session's end, another controller or a topic's znode shows the others.
INFERENCES: Final = (
    *INFERENCES_BY_WRITE,
    "shutdown-asked-again",
    "shutdown-asked-before-session-end",
    "ran-to-fenced-write",
    "ran-unfenced",
    "deletion-answered-in-time",
    "reassignment-completed-unread",
    "never-missed",
)
