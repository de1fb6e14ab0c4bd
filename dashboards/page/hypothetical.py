"""Losses and restarts of brokers, played on a cluster that is made on demand and kept until its rows change."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from controller.contract.metadata_rows import PartitionRow
from controller.view.types import Context
from dashboards.following.view import View
from dashboards.page.answers import Answers
from questions.picture import Origin, Picture
from questions.restartable import Restartable, restartable
from questions.whatif.consequences import PartitionChange
from questions.whatif.hypothetical_cluster import NoControllerError
from questions.whatif.scenario import Change, Scenario, Step, UnknownBrokersError, play

_NAMED: Final = 50


class Losses(msgspec.Struct, frozen=True):
    """Brokers that are lost at once: by a crash, or by controlled shutdowns one after the other."""

    brokers: tuple[int, ...]
    controlled: bool = False


class WhatIf(msgspec.Struct, frozen=True):
    """Answer to a what-if: the scenario, or why there is none."""

    scenario: Scenario | None
    refused: str | None = None


class Named(NamedTuple):
    """Some of many partitions, and how many there are."""

    total: int
    first: tuple[PartitionChange, ...]


def first_of(changes: tuple[PartitionChange, ...]) -> Named:
    """As many as a page names."""
    return Named(len(changes), changes[:_NAMED])


class Hypothetical:
    """Plays losses on clusters, for one thread; the newest cluster is kept."""

    def __init__(self, view: View, answers: Answers) -> None:
        self._view = view
        self._answers = answers
        self._kept: tuple[tuple[str, int], Context] | None = None  # one: 200,000 partitions are some hundred MB

    def play(self, cluster: str, losses: Losses) -> WhatIf:
        """Play the losses on the cluster as it is now."""
        unknown = self._answers.why_unknown(cluster)
        context = None if unknown is not None else self._context(cluster)
        if context is None:
            return WhatIf(None, unknown)
        change = Change.SHUT_DOWN if losses.controlled else Change.CRASH
        try:
            return WhatIf(play(context, [Step(change, losses.brokers)]))
        except (UnknownBrokersError, NoControllerError) as error:
            return WhatIf(None, str(error))

    def restartable(
        self, cluster: str, broker: int, now_ms: int, accepted_topics: Collection[str]
    ) -> Restartable | None:
        """Judge a broker's restart, None for a cluster without rows; raises UnknownBrokersError."""
        found, context = self._view.cluster(cluster), self._context(cluster)
        if found is None or found.heartbeat_ms is None or context is None:
            return None
        picture = Picture(
            origin=Origin.HISTORY, context=context, as_of_ms=found.heartbeat_ms, is_replayed=found.is_replayed
        )
        return restartable(picture, broker, now_ms, accepted_topics=accepted_topics)

    def _context(self, cluster: str) -> Context | None:
        version = (cluster, self._view.changes(cluster, PartitionRow.output))
        if self._kept is None or self._kept[0] != version:
            self._kept = None  # never two at once
            context = self._answers.whole_context(cluster)
            if context is None:
                return None
            self._kept = (version, context)
        return self._kept[1]
