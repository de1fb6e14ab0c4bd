"""Difference between forwarders' wall clocks and the job's own, so that a wrong clock does not look like a late job.

A batch that took all records ends with a fresh record, so its time allows a comparison. A backlog, or the last records
of a forwarder that ended, do not.
"""

from __future__ import annotations

from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS


class ForwarderClocks:
    """The forwarders' clocks as far as they are known, by cluster."""

    def __init__(self) -> None:
        self._seen_ms: dict[str, int] = {}
        self._behind_ms: dict[str, int] = {}

    def compare(self, cluster: str, planned_ms: int, newest_ms: int) -> None:
        """Compare the clocks by a batch that was planned at this time and took all records up to this one.

        Two consecutive batches must agree, because one may contain the last records of an ended forwarder.
        """
        behind_ms, before_ms = planned_ms - newest_ms, self._seen_ms.get(cluster)
        self._seen_ms[cluster] = behind_ms
        if before_ms is not None and abs(behind_ms - before_ms) <= CLOCKS_AGREE_WITHIN_MS:
            self._behind_ms[cluster] = behind_ms if abs(behind_ms) > CLOCKS_AGREE_WITHIN_MS else 0

    def behind_ms(self, cluster: str) -> int:
        """Return how many ms the forwarder's clock is behind the job's, 0 if they agree or it is unknown."""
        return self._behind_ms.get(cluster, 0)
