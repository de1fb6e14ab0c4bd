"""Problems of a partition, as its row names them."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Problem(Enum):
    """Problem of a partition, the worst first. The first problem that applies counts, as `view/health.py` judges."""

    NO_LIVE_IN_SYNC_REPLICA = "no_live_in_sync_replica"  # offline until an in-sync replica returns
    ELECTION_DUE = "election_due"  # the leader is not live, the controller must elect another replica
    NOT_YET_CREATED = "not_yet_created"  # the controller must still write the first state
    NO_LIVE_REPLICA_AT_CREATION = "no_live_replica_at_creation"  # created while none of its brokers was live
    LEADERLESS = "leaderless"  # an in-sync replica is live, yet the controller has no reason to elect it
    STATE_UNREADABLE = "state_unreadable"  # nobody can read its state, so brokers may lead it or not
    UNDER_MIN_ISR = "under_min_isr"  # led, but fewer replicas are in sync than a write with acks=all needs
    UNDER_REPLICATED = "under_replicated"  # usable, but not every assigned replica is in sync

    __hash__ = object.__hash__  # members are singletons, so identity is enough, and much faster than the enum's own


UNUSABLE: Final = frozenset(Problem) - {
    Problem.STATE_UNREADABLE,
    Problem.UNDER_MIN_ISR,
    Problem.UNDER_REPLICATED,
}
UNUSABLE_WORDS: Final = frozenset(problem.value for problem in UNUSABLE)  # as rows have them
