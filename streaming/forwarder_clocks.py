"""Measure how far forwarders' wall clocks are from the job's own, which would make a wrong clock look like a late job.

A batch that took all there was ends with a record that was made just before, so the two clocks can be compared. A
backlog, or the last records of a forwarder that ended, teach nothing.
"""

from __future__ import annotations

from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS


class ForwarderClocks:
    """The forwarders' clocks as far as they are known, by cluster."""

    def __init__(self) -> None:
        self._seen_ms: dict[str, int] = {}
        self._behind_ms: dict[str, int] = {}

    def compare(self, cluster: str, planned_ms: int, newest_ms: int) -> None:
        """Compare the clocks by a batch that, planned at this time, took all that there was up to this record.

        Two batches in turn must agree: one alone may hold what a forwarder wrote before it ended.
        """
        behind_ms, before_ms = planned_ms - newest_ms, self._seen_ms.get(cluster)
        self._seen_ms[cluster] = behind_ms
        if before_ms is not None and abs(behind_ms - before_ms) <= CLOCKS_AGREE_WITHIN_MS:
            self._behind_ms[cluster] = behind_ms if abs(behind_ms) > CLOCKS_AGREE_WITHIN_MS else 0

    def behind_ms(self, cluster: str) -> int:
        """The milliseconds that the forwarder's clock is behind the job's, 0 if they agree or nothing is known."""
        return self._behind_ms.get(cluster, 0)
