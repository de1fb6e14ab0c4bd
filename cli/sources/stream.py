"""A cluster from Kontrast's own data, which is the changes by `kontrast watch` or the outputs of `kontrast stream`."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec

from cli.followed_outputs import Where, followed, lines_until_now
from cli.printing import standard_error
from cli.running import StoppedError
from controller.contract.outputs import BadRowError, decode_row
from controller.contract.row import Row
from dashboards.errors import ServeError
from ingest.files.data_directory import Until
from questions.memory import Memory
from questions.picture import Picture, Present
from questions.question import NotFoundError, Scope
from streaming.config import BrokersConfig
from transport.address import Address, JournalAddress
from wording.times import exact_moment

_STANDING: Final = ("job", "metadata", "alerts", "gauges")


@dataclass(frozen=True, slots=True)
class StreamSource:
    """The changes or outputs at an address, up to the moment `until`, by default the present.

    The cluster's name is optional if there is only one.
    """

    has_past: ClassVar[bool] = True
    where: Where
    cluster: str | None
    brokers: BrokersConfig
    until: Until | None = None

    @property
    def is_live(self) -> bool:
        """Return whether the source shows the present, so no moment was given."""
        return self.until is None

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return the cluster after the newest row or change, or at the wanted moment."""
        until = self.until or Until()
        beginnings = self._beginnings(until, stop)
        found = self._of_changes(beginnings, scope, until, stop) if beginnings else self._of_outputs(scope, stop)
        present = Present(time.time_ns() // 1_000_000, self.where.stale_after_ms) if self.is_live else None
        return msgspec.structs.replace(found, present=present)

    def _beginnings(self, until: Until, stop: threading.Event) -> dict[str, int | None]:
        """Return the beginning of each cluster's newest complete read until the moment, empty for outputs."""
        address = self.where.address
        if isinstance(address, JournalAddress) and (address.directory / "metadata").exists():
            return {}
        from cli.sources.changes import beginnings  # it loads the whole core, which outputs do not need

        return beginnings(self.where, until, stop)

    def _of_changes(
        self, beginnings: Mapping[str, int | None], scope: Scope, until: Until, stop: threading.Event
    ) -> Picture:
        from cli.sources.changes import picture_of_changes

        cluster = self._chosen(beginnings.keys())
        begin = beginnings[cluster]
        if begin is None:
            when = "yet. Wait for `kontrast watch`" if self.is_live else "before that moment"
            raise NotFoundError(f"{self.where.address} holds no complete read of cluster {cluster} {when}")
        first = 0 if scope.past else begin
        return picture_of_changes(self.where, cluster, self.brokers, scope.keeps, first, until, stop)

    def _of_outputs(self, scope: Scope, stop: threading.Event) -> Picture:
        with followed(self.where, _STANDING) as outputs:
            outputs.wait_until_read(stop)
            if stop.is_set():
                raise StoppedError
            memory = outputs.memory
            cluster = self._chosen([snapshot.cluster for snapshot in memory.clusters()])
            if cluster in outputs.newer():
                raise NotFoundError(f"a newer Kontrast wrote the rows of cluster {cluster}. Upgrade this one")
            at_ms = moment_in(memory, cluster, self.until, self.where.address)
            found, lacking = memory.cluster(cluster, at_ms, topics=None), outputs.lacking(cluster)
        if found is None or found.gauges is None or found.controller is None:
            raise NotFoundError(f"no complete read of cluster {cluster} has arrived yet (see `kontrast status`)")
        story = self._story(scope, cluster, stop)
        return msgspec.structs.replace(found.picture(ranks=self.brokers.topic_ranks), story=story, lacking=lacking)

    def _story(self, scope: Scope, cluster: str, stop: threading.Event) -> tuple[Row, ...] | None:
        """Return the rows that the question keeps, in order, if every output is readable."""
        if not scope.past:
            return None
        found: dict[tuple[int, int, int], Row] = {}  # by position, because a topic can have a batch twice
        for name in scope.past_outputs:
            try:
                rows = filter(scope.keeps, _rows(self.where, name, cluster, stop))
                found.update(((row.generation, row.seq, row.ordinal), row) for row in rows if not self._is_later(row))
            except ServeError as error:
                standard_error.warn(f"the causes are unknown, because {error}")
                return None
        return tuple(found[position] for position in sorted(found))

    def _is_later(self, row: Row) -> bool:
        return self.until is not None and self.until.is_passed(row.zxid, row.time_ms)

    def _chosen(self, clusters: Collection[str]) -> str:
        if self.cluster is not None:
            if self.cluster not in clusters:
                raise NotFoundError(
                    f"{self.where.address} has no rows of cluster {self.cluster}: it has {', '.join(sorted(clusters))}"
                )
            return self.cluster
        if not clusters:
            raise NotFoundError(f"{self.where.address} has no cluster yet (see `kontrast status`)")
        if len(clusters) != 1:
            raise NotFoundError(f"which cluster? Give --cluster with one of {', '.join(sorted(clusters))}")
        return next(iter(clusters))


def moment_in(memory: Memory, cluster: str, until: Until | None, address: Address) -> int | None:
    """Return the moment of `until` in kept rows, None for the present. Raise NotFoundError if it is not kept."""
    if until is None:
        return None
    if until.time_ms is None:
        raise NotFoundError(f"{address} holds outputs, which are kept by time. Give a time in place of a zxid")
    span = memory.kept(cluster)
    if span is not None and until.time_ms >= span.newest_ms:
        return None
    if span is None or until.time_ms < span.since_ms:
        begins = "" if span is None else f", at {exact_moment(span.since_ms)}"
        raise NotFoundError(f"what {address} keeps of cluster {cluster} begins after that moment{begins}")
    then = memory.cluster(cluster, until.time_ms)
    if then is None or not then.ready:
        raise NotFoundError(f"{address} has no complete read of cluster {cluster} before that moment")
    return until.time_ms


def _rows(where: Where, name: str, cluster: str, stop: threading.Event) -> Iterator[Row]:
    for line in lines_until_now(where, name, stop):
        try:
            row = decode_row(line)
        except BadRowError:
            continue
        if isinstance(row, Row) and row.cluster == cluster:
            yield row
