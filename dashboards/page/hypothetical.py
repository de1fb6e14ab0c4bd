"""Losses and restarts of brokers, played on a cluster that is kept until its rows change."""

from __future__ import annotations

from collections.abc import Collection

from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import PartitionRow
from controller.view.types import Context
from dashboards.page.answers import Answers
from questions.memory import Memory
from questions.picture import Origin, Picture
from questions.restartable import Restartable, restartable
from questions.whatif.losses import Losses, WhatIf, play_losses


class Hypothetical:
    """Simulator of losses on clusters, for one thread. It keeps the newest cluster."""

    def __init__(self, memory: Memory, answers: Answers) -> None:
        self._memory = memory
        self._answers = answers
        self._kept: tuple[tuple[str, int], Context] | None = None  # one, because 200,000 partitions are some hundred MB

    def play(self, cluster: str, losses: Losses) -> WhatIf:
        """Play the losses on the cluster as it is now."""
        doubts = self._answers.doubts(cluster)
        unknown = self._answers.why_unknown(cluster)
        context = None if unknown is not None else self._context(cluster)
        if context is None:
            return WhatIf(doubts, None, unknown)
        return play_losses(context, losses, doubts, self._answers.clients(cluster))

    def restartable(
        self, cluster: str, broker: BrokerId, accepted_topics: Collection[str], accepted_absent: Collection[BrokerId]
    ) -> Restartable | None:
        """Judge a broker's restart, if the cluster has rows. Raise UnknownBrokersError."""
        found, context = self._memory.cluster(cluster), self._context(cluster)
        if found is None or found.heartbeat_ms is None or context is None:
            return None
        picture = Picture(
            origin=Origin.HISTORY,
            context=context,
            alerts=found.open_alerts,
            as_of_ms=found.heartbeat_ms,
            is_replayed=found.is_replayed,
            present=self._answers.present(found),
        )
        return restartable(picture, broker, accepted_topics=accepted_topics, accepted_absent=accepted_absent)

    def _context(self, cluster: str) -> Context | None:
        version = (cluster, self._memory.version(cluster, PartitionRow.output))
        if self._kept is None or self._kept[0] != version:
            self._kept = None  # never two at once
            context = self._answers.whole_context(cluster)
            if context is None:
                return None
            self._kept = (version, context)
        return self._kept[1]
