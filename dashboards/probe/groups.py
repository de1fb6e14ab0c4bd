"""Rounds of questions about consumer groups, at a bounded rate, and their last answers in memory and on disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from controller.contract.ids import INTERNAL_TOPICS, BrokerId
from dashboards.probe.broker import ProbeError, choose_endpoint
from dashboards.probe.config import ProbeConfig
from dashboards.probe.current import CurrentRows, NothingNewError, now_ms
from dashboards.probe.group_requests import GROUPS_OF_A_REQUEST, DeniedError, GroupRequests
from dashboards.probe.kept_groups import keep_groups, kept_groups
from questions.clients.groups import troubled_in
from questions.clients.known_groups import KnownGroups, Round, Troubled, after_round
from questions.cluster_rows import ClusterSnapshot

_TRY_AGAIN_SECONDS: Final = 2.0

_logger = logging.getLogger("kontrast.dashboards.groups")

_Answer = TypeVar("_Answer")


class GroupsProbe:
    """The rounds of one cluster, in a thread of its own. `known` has the last answers, at first from an earlier run."""

    def __init__(self, cluster: str, config: ProbeConfig, rows: CurrentRows) -> None:
        self.cluster = cluster
        self._config = config
        self._login = config.login_of(cluster)
        self._rows = rows
        directory = config.groups_directory
        self.known = KnownGroups() if directory is None else kept_groups(directory, cluster)
        self._brokers: dict[BrokerId, GroupRequests] = {}
        self._asked_at = 0.0
        self._offsets_asked: dict[str, int] = {}  # when a group's committed offsets were last asked for
        self._complained: set[str] = set()

    def run(self, stop: threading.Event) -> None:
        """Ask until `stop`."""
        try:
            while not stop.is_set():
                began, pause_seconds = time.monotonic(), self._config.groups_interval_seconds
                try:
                    self._round(self._rows.now(), stop)
                except NothingNewError:
                    pause_seconds = _TRY_AGAIN_SECONDS
                stop.wait(max(0.0, began + pause_seconds - time.monotonic()))
        finally:
            for broker in self._brokers.values():
                broker.close()

    def _round(self, snapshot: ClusterSnapshot, stop: threading.Event) -> None:
        found = Round(now_ms())
        brokers = dict(self._reached(snapshot))
        found.brokers = tuple(brokers)
        for broker, requests in brokers.items():
            self._list(found, broker, requests, stop)
        for broker, groups in found.listed.items():
            for some in _parts(groups, GROUPS_OF_A_REQUEST):
                self._describe(found, brokers[broker], some, stop)
        for broker, groups in found.listed.items():
            without = [group for group in groups if group in found.described and not found.described[group].has_members]
            self._fetch_offsets(found, brokers[broker], without, stop)
        if stop.is_set():
            return
        self.known = after_round(self.known, found, self._troubled())
        for gap in self.known.gaps:
            self._complain(gap)
        if self._config.groups_directory is not None:
            try:
                keep_groups(self._config.groups_directory, self.cluster, self.known)
            except OSError as error:
                self._complain(f"they cannot be kept in {self._config.groups_directory}: {error.strerror}")

    def _reached(self, snapshot: ClusterSnapshot) -> Iterator[tuple[BrokerId, GroupRequests]]:
        """Yield the registered brokers, with a connection for each that has a usable listener."""
        rows = {row.broker: row for row in snapshot.brokers if row.registered}
        for broker in self._brokers.keys() - rows.keys():
            self._brokers.pop(broker).close()
        for broker, row in rows.items():
            try:
                endpoint = choose_endpoint(row.endpoints, self._login)
            except ProbeError as error:
                self._complain(f"broker {broker}: {error}")
                continue
            known = self._brokers.get(broker)
            if known is None or known.endpoint != endpoint:
                if known is not None:
                    known.close()
                self._brokers[broker] = GroupRequests(endpoint, self._login, self._config.timeout_seconds)
            yield broker, self._brokers[broker]

    def _list(self, found: Round, broker: BrokerId, requests: GroupRequests, stop: threading.Event) -> None:
        try:
            groups = self._asked(requests.groups, stop)
            if groups is not None:
                found.listed[broker] = groups
            if requests.tells_transactional_ids:
                found.transactional_ids[broker] = self._asked(requests.transactional_ids, stop) or []
            found.untold = found.untold or not requests.tells_transactional_ids
        except DeniedError as error:
            found.denied[str(error)] = []
        except ProbeError as error:
            self._complain(str(error))

    def _describe(self, found: Round, requests: GroupRequests, groups: Sequence[str], stop: threading.Event) -> None:
        try:
            answer = self._asked(lambda: requests.described(groups), stop)
        except ProbeError as error:
            self._complain(str(error))
            return
        if answer is not None:
            found.described |= answer[0]
            if answer[1]:
                found.denied.setdefault("DescribeGroups", []).extend(answer[1])

    def _fetch_offsets(self, found: Round, requests: GroupRequests, groups: list[str], stop: threading.Event) -> None:
        """Ask for the offsets of groups without members, first of those whose offsets are oldest.

        Before 3.0 each group needs a request of its own, so a round covers only as many as fit in half an interval.
        """
        config, asked = self._config, 0
        most = max(1, int(config.groups_interval_seconds * config.group_requests_per_second / 2))
        waiting = sorted(groups, key=lambda group: self._offsets_asked.get(group, 0))
        while waiting and asked < most and not stop.is_set():
            some = waiting[: GROUPS_OF_A_REQUEST if requests.fetches_many else 1]
            try:
                answer = self._asked(lambda some=some: requests.committed(some), stop)  # type: ignore[misc]
            except ProbeError as error:
                self._complain(str(error))
                return
            some = some if requests.fetches_many else some[:1]
            waiting, asked = waiting[len(some) :], asked + 1
            self._offsets_asked |= dict.fromkeys(some, found.asked_ms)
            if answer is not None:
                found.committed |= answer[0]
                if answer[1]:
                    found.denied.setdefault("OffsetFetch", []).extend(answer[1])

    def _asked(self, question: Callable[[], _Answer], stop: threading.Event) -> _Answer | None:
        """Ask when the rate of requests permits. Return the answer, or None if it is time to stop."""
        pause = self._asked_at + 1 / self._config.group_requests_per_second - time.monotonic()
        if stop.is_set() or (pause > 0 and stop.wait(pause)):
            return None
        self._asked_at = time.monotonic()
        return question()

    def _troubled(self) -> Troubled:
        """Return the partitions that are in trouble now. Raise NothingNewError while the cluster is not ready."""
        snapshot, memory = self._rows.now(), self._rows.memory
        sizes = {topic: len(memory.partitions_of(self.cluster, topic)) for topic in INTERNAL_TOPICS}
        return troubled_in((*snapshot.unusable, *snapshot.under_min_isr), sizes)

    def _complain(self, reason: str) -> None:
        if reason not in self._complained:
            self._complained.add(reason)
            _logger.warning("%s: groups: %s", self.cluster, reason)


def _parts(groups: list[str], size: int) -> Iterator[list[str]]:
    for at in range(0, len(groups), size):
        yield groups[at : at + size]
