"""Output of `kontrast watch` and `kontrast stream` for a real cluster, without Spark between them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from controller.contract.outputs import OUTPUTS, encode_row
from controller.contract.records import decode_record
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.config import IngestConfig
from ingest.forwarder import Forwarder
from transport.address import JournalAddress
from transport.journal import JournalWriter
from transport.journal_reading import read_journal

_CHUNKS = 8
_READ_BYTES = 1024 * 1024
_LOOK_SECONDS = 0.05
_END_SECONDS = 60


class LiveReplica:
    """Follows the cluster behind a ZooKeeper and writes the outputs to journals, as long as the `with` lasts."""

    def __init__(self, cluster: str, zookeeper: str, directory: Path) -> None:
        self.outputs = directory / "outputs"
        self._changes = directory / "changes"
        self._cluster = cluster
        config = IngestConfig(
            cluster=cluster, zookeeper=zookeeper, to=JournalAddress(self._changes), heartbeat_seconds=0.3
        )
        self._forwarder = Forwarder(config)
        self._stop = threading.Event()
        jobs = (self._forwarder.run, self._derive)
        self._threads = [threading.Thread(target=self._run, args=(job,), daemon=True) for job in jobs]
        self._failures: list[BaseException] = []

    def __enter__(self) -> LiveReplica:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_END_SECONDS)
            assert not thread.is_alive()
        assert not self._failures, self._failures

    def _run(self, job: Callable[[threading.Event], None]) -> None:
        try:
            job(self._stop)
        except BaseException as error:
            self._failures.append(error)

    def _derive(self, stop: threading.Event) -> None:
        context, offset = new_context(self._cluster, chunk_count=_CHUNKS), 0
        while not stop.wait(_LOOK_SECONDS):
            batch = read_journal(self._changes, offset, _READ_BYTES)
            offset = batch.next_offset
            outcome = steps(context, [decode_record(line) for line in batch.lines])
            context = outcome.context
            for output in OUTPUTS:
                lines = [encode_row(row) for row in outcome.effects if row.output == output]
                if lines:
                    with JournalWriter(self.outputs / output, batches=True) as journal:
                        journal.append_batch(journal.last_batch_id + 1, lines)
