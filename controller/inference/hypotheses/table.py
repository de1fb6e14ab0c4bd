"""Rules of inference, in the order in which they are tried.

If two rules would give the same written state, the likelier cause comes first. Failovers precede requests of brokers,
which precede requests of operators. If no recording shows a rule's writes, its docstring names its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from controller.events import controlled_shutdown, fenced_controller, topic_deletion, unfenced_controller
from controller.inference import led_meanwhile, read_by_load, read_together, topic_assignment
from controller.inference.hypotheses import creations, deletions, elections, failovers, losses
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


class Rule(NamedTuple):
    """Rule of inference, with the recordings of real clusters in which it explains writes."""

    name: str  # the rule's name in its counter
    propose: Callable[[Transaction, ObservedWrite], Iterator[Hypothesis]]
    seen_in: tuple[str, ...]
    assumes_controlled_shutdown: bool = False  # not tried where controlled.shutdown.enable is false


RULES: Final = (
    Rule("loaded-before-registration", creations.loaded_before_registration, ("fuzz39e",)),
    Rule(
        "created-without-broker",
        creations.created_without_broker,
        ("fuzz28f", "unseen11"),
        assumes_controlled_shutdown=True,
    ),
    Rule("never-poisoned", failovers.never_poisoned, ()),
    Rule("deletion-answered", deletions.deletion_answered, ("fuzz39c", "fuzz28h", "unseen39")),
    Rule("deletion-unanswered", deletions.deletion_unanswered, ("fuzz11a",)),
    Rule("completed-without-leader", losses.completed_without_leader, ("fuzz24b",), assumes_controlled_shutdown=True),
    Rule("elected-after-all", elections.elected_after_all, ("fuzz20b",)),
    Rule("preferred-election", elections.preferred_election, ("unseen39b", "fuzz22a", "fuzz27a")),
    Rule("log-dir-failed", losses.log_dir_failed, ("hard39",)),
    Rule(
        "shutdown-reached-late",
        losses.shutdown_reached_late,
        ("fuzz0102a", "fuzz011a"),
        assumes_controlled_shutdown=True,
    ),
    Rule(
        "shutdown-asked",
        losses.shutdown_asked,
        ("fuzz011a", "fuzz20f", "fuzz32a", "fuzz28d"),
        assumes_controlled_shutdown=True,
    ),
    Rule("preferred-election-in-vain", elections.preferred_election_in_vain, ()),
    Rule("reassigned-again", elections.reassigned_again, ("unseen11", "unseen39b")),
    Rule("creation-found-early", creations.creation_found_early, ()),
    Rule("failure-found-early", failovers.failure_found_early, ()),
    Rule("unclean-election", elections.unclean_election, ("fuzz39a", "fuzz28g", "fuzz32a")),
    Rule("deletion-found-early", deletions.deletion_found_early, ()),
    Rule("failover-found-early", failovers.failover_found_early, ()),
)


class OtherInference(NamedTuple):
    """Inference that is not tried on a written state, with the recordings of real clusters in which it is drawn."""

    name: str
    seen_in: tuple[str, ...]


# Events read at once, and failures read by the load, are looked for before the rules. The other inferences rest on
# time, a session's end, another controller or a topic's znode. Inferences without a recording were seen in none.
OTHER_INFERENCES: Final = (
    OtherInference(read_together.RULE, ("fuzz39a",)),
    OtherInference(read_by_load.RULE, ("fuzz11c",)),
    OtherInference(controlled_shutdown.ASKED_AGAIN, ("fuzz0102a", "fuzz28d")),
    OtherInference(controlled_shutdown.ASKED_BEFORE_SESSION_END, ("fuzz39a", "race39")),
    OtherInference(fenced_controller.RAN_TO_FENCED_WRITE, ("fuzz22a", "fuzz28c", "unseen39b")),
    OtherInference(unfenced_controller.RAN_UNFENCED, ("fuzz20d",)),
    OtherInference(topic_deletion.ANSWERED_IN_TIME, ("fuzz39c", "fuzz28a", "fuzz0102a")),
    OtherInference(topic_assignment.COMPLETED_UNREAD, ()),
    OtherInference(led_meanwhile.RULE, ()),
)
