"""A cluster from Kontrast's own data, which is the changes by `kontrast watch` or the outputs of `kontrast stream`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final

import msgspec

from cli.followed_outputs import Followed, Where, followed, lines_until_now
from cli.printing import standard_error
from cli.sources import Look, Looked, Source
from controller.contract.outputs import BadRowError, decode_row
from controller.contract.row import Row
from dashboards.errors import ServeError
from ingest.errors import StoppedError
from ingest.files.data_directory import Until
from questions.memory import Memory
from questions.page.known_clusters import now_ms, present_of
from questions.picture import Picture, Present
from questions.question import EVERYTHING_NOW, NotFoundError, Scope
from streaming.config import BrokersConfig
from transport.address import Address, JournalAddress
from wording.times import exact_moment

_STANDING: Final = ("job", "metadata", "alerts", "gauges")


@dataclass(frozen=True, slots=True)
class StreamSource(Source):
    """The changes or outputs at an address, up to the moment `until`, by default the present.

    The cluster's name is optional if there is only one. `configured` has the brokers' settings of further clusters.
    """

    has_past: ClassVar[bool] = True
    where: Where
    cluster: str | None
    brokers: BrokersConfig
    until: Until | None = None
    configured: Mapping[str, BrokersConfig] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Return whether the source shows the present, so no moment was given."""
        return self.until is None

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return the cluster after the newest row or change, or at the wanted moment."""
        begun = self._begun(stop)
        if begun:
            cluster = self._chosen(begun)
            return self._of_changes({cluster: begun[cluster]}, scope, stop)(cluster)
        with self._followed(stop) as outputs:
            cluster = self._chosen(outputs.names())
            picture = self._of_outputs(outputs, cluster)
        return msgspec.structs.replace(picture, story=self._story(scope, cluster, stop))

    @contextmanager
    def looking(self, stop: threading.Event) -> Iterator[Look]:
        """Yield a function that returns every cluster, or the chosen one. It follows outputs meanwhile."""
        if self._begun(stop):
            yield lambda: self._each_of_changes(stop)
            return
        with self._followed(stop) as outputs:
            yield lambda: self._each(outputs.names(), partial(self._of_outputs, outputs))

    def _each_of_changes(self, stop: threading.Event) -> Looked:
        begun = self._begun(stop)
        chosen = begun if self.cluster is None else {self.cluster: begun.get(self.cluster)}
        return self._each(begun, self._of_changes(chosen, EVERYTHING_NOW, stop))

    def _each(self, known: Collection[str], picture: Callable[[str], Picture]) -> Looked:
        """Return the chosen or only cluster, or every one that is known or configured. Raise NotFoundError."""
        names = sorted({*known, *self.configured})
        if self.cluster is not None or len(names) < 2 or not known:
            only = self._chosen(known)
            return {only: picture(only)}
        found: dict[str, Picture | NotFoundError] = {}
        for name in names:
            try:
                found[name] = picture(name)
            except NotFoundError as error:
                found[name] = error
        return found

    def _begun(self, stop: threading.Event) -> Mapping[str, int | None]:
        """Return the beginning of each cluster's newest complete read until the moment, empty for outputs."""
        address = self.where.address
        if isinstance(address, JournalAddress) and (address.directory / "metadata").exists():
            return {}
        from cli.sources.records import beginnings  # it loads the whole core, which outputs do not need

        return beginnings(self.where, self.until or Until(), stop)

    def _of_changes(
        self, begun: Mapping[str, int | None], scope: Scope, stop: threading.Event
    ) -> Callable[[str], Picture]:
        """Read these clusters. Return a function that gives the picture of one of them, or raises NotFoundError."""
        from cli.sources.records import FirstChange, pictures_of_changes

        firsts = {
            name: FirstChange(0 if scope.past else begin, self.configured.get(name, self.brokers))
            for name, begin in begun.items()
            if begin is not None
        }
        found = pictures_of_changes(self.where, firsts, scope.keeps, self.until or Until(), stop)
        present = Present(now_ms(), self.where.stale_after_ms) if self.is_live else None

        def picture(cluster: str) -> Picture:
            if cluster in found:
                return msgspec.structs.replace(found[cluster], present=present)
            when = "yet. Wait for `kontrast watch`" if self.is_live else "before that moment"
            raise NotFoundError(f"{self.where.address} holds no complete read of cluster {cluster} {when}")

        return picture

    @contextmanager
    def _followed(self, stop: threading.Event) -> Iterator[Followed]:
        with followed(self.where, _STANDING) as outputs:
            outputs.wait_until_read(stop)
            if stop.is_set():
                raise StoppedError
            yield outputs

    def _of_outputs(self, outputs: Followed, name: str) -> Picture:
        """Return a cluster that was read. Raise NotFoundError, or ServeError while none can be read."""
        if not outputs.is_up:
            raise ServeError(f"{self.where.address} cannot be read now")
        if name in outputs.newer():
            raise NotFoundError(f"a newer Kontrast wrote the rows of cluster {name}. Upgrade this one")
        at_ms = moment_in(outputs.memory, name, self.until, self.where.address)
        found = outputs.memory.cluster(name, at_ms)
        if found is None or found.gauges is None or found.controller is None:
            raise NotFoundError(f"no complete read of cluster {name} has arrived yet (see `kontrast status`)")
        present = present_of(outputs.memory, found, self.where.stale_after_ms) if self.is_live else None
        context = outputs.memory.whole(found, self.brokers.topic_ranks, at_ms)
        return msgspec.structs.replace(found.picture(present=present, context=context), lacking=outputs.lacking(name))

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
        if not clusters:
            raise NotFoundError(f"{self.where.address} has no cluster yet (see `kontrast status`)")
        named = ", ".join(sorted(clusters))
        if self.cluster is not None and self.cluster not in clusters:
            raise NotFoundError(f"{self.where.address} has no rows of cluster {self.cluster}: it has {named}")
        if self.cluster is None and len(clusters) != 1:
            raise NotFoundError(f"which cluster? Give --cluster with one of {named}")
        return self.cluster or next(iter(clusters))


@dataclass(frozen=True, slots=True)
class ConfiguredSource(Source):
    """The outputs as long as their heartbeat is fresh, so that an answer is the page's, and otherwise ZooKeeper."""

    is_live: ClassVar[bool] = True
    has_past: ClassVar[bool] = False
    outputs: StreamSource
    zookeeper: Source

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return the present cluster with the source that it is from."""
        where, why = self.outputs.where, f"{self.outputs.where.address} has no fresh heartbeat"
        try:
            found = self.outputs.picture(scope, stop)
            if now_ms() - found.as_of_ms <= where.stale_after_ms:
                return msgspec.structs.replace(found, source="the running Kontrast")
        except (NotFoundError, ServeError) as error:
            why = str(error)
        return msgspec.structs.replace(
            self.zookeeper.picture(scope, stop), source=f"one read of ZooKeeper, because {why}"
        )


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
