"""Rounds of questions about consumer groups, at a bounded rate, and their last answers in memory and on disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from controller.contract.ids import INTERNAL_TOPICS, BrokerId
from dashboards.probe.broker import ProbeError, choose_endpoint
from dashboards.probe.comparison import CurrentRows, Rounds
from dashboards.probe.config import ProbeConfig
from dashboards.probe.group_requests import GROUPS_OF_A_REQUEST, DeniedError, GroupRequests
from dashboards.probe.kept_groups import keep_groups, kept_groups
from questions.clients.groups import troubled_in
from questions.clients.known_groups import KnownGroups, Round, Troubled, after_round
from questions.cluster_rows import ClusterSnapshot
from questions.page.known_clusters import now_ms
from wording.times import rfc3339

# A round has this many intervals. Its remaining groups stay as they were, and the next round begins with them.
_INTERVALS_OF_A_ROUND: Final = 5

_logger = logging.getLogger("kontrast.dashboards.groups")

_Answer = TypeVar("_Answer")


class GroupsProbe:
    """The rounds of one cluster, in a thread of its own.

    A broker's first silence ends its part of a round, because each further request would wait for a time-out, too.
    """

    def __init__(self, cluster: str, config: ProbeConfig, rows: CurrentRows) -> None:
        self.cluster = cluster
        self._config = config
        self._login = config.login_of(cluster)
        self._rows = rows
        directory = config.groups_directory
        self._known = KnownGroups() if directory is None else kept_groups(directory, cluster)
        self._round_began_ms = 0  # of the round that is under way, 0 without one
        self.rounds = Rounds(cluster, "groups")
        self._brokers: dict[BrokerId, GroupRequests] = {}
        self._asked_at = self._ends_at = 0.0
        self._offsets_asked: dict[str, int] = {}  # when a group's committed offsets were last asked for
        self._complained: set[str] = set()

    @property
    def known(self) -> KnownGroups:
        """Return the last answers, at first from an earlier run, with the gaps of this moment."""
        gaps, began_ms = self.rounds.gaps, self._round_began_ms
        if began_ms and now_ms() - began_ms > self._config.groups_interval_seconds * 1000:
            gaps += (f"a round of questions has been under way since {rfc3339(began_ms)}",)
        return msgspec.structs.replace(self._known, gaps=(*gaps, *self._known.gaps)) if gaps else self._known

    def run(self, stop: threading.Event) -> None:
        """Ask until `stop`."""
        try:
            self.rounds.run(lambda: self._round(self._rows.now(), stop), self._config.groups_interval_seconds, stop)
        finally:
            for broker in self._brokers.values():
                broker.close()

    def _round(self, snapshot: ClusterSnapshot, stop: threading.Event) -> None:
        found = Round(now_ms())
        self._round_began_ms = found.asked_ms
        self._ends_at = time.monotonic() + _INTERVALS_OF_A_ROUND * self._config.groups_interval_seconds
        try:
            self._ask_brokers(found, dict(self._reached(snapshot)), stop)
        finally:
            self._round_began_ms = 0
        if stop.is_set():
            return
        self._known = after_round(self._known, found, self._troubled())
        for gap in self._known.gaps:
            self._complain(gap)
        if self._config.groups_directory is not None:
            try:
                keep_groups(self._config.groups_directory, self.cluster, self._known)
            except OSError as error:
                self._complain(f"they cannot be kept in {self._config.groups_directory}: {error.strerror}")

    def _ask_brokers(self, found: Round, brokers: Mapping[BrokerId, GroupRequests], stop: threading.Event) -> None:
        found.brokers = tuple(brokers)
        for broker, requests in brokers.items():
            self._list(found, broker, requests, stop)
        for broker, groups in found.listed.items():
            known = self._known.groups
            longest_known = sorted(groups, key=lambda group: known[group].seen_ms if group in known else 0)
            for at in range(0, len(longest_known), GROUPS_OF_A_REQUEST):
                if not self._describe(found, brokers[broker], longest_known[at : at + GROUPS_OF_A_REQUEST], stop):
                    found.silent.add(broker)
                    break
        for broker, groups in found.listed.items():
            without = [group for group in groups if group in found.described and not found.described[group].has_members]
            if broker not in found.silent:
                self._fetch_offsets(found, brokers[broker], without, stop)

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

    def _describe(self, found: Round, requests: GroupRequests, groups: Sequence[str], stop: threading.Event) -> bool:
        """Ask for descriptions. Return whether the broker answered, and the round goes on."""
        try:
            answer = self._asked(lambda: requests.described(groups), stop)
        except ProbeError as error:
            self._complain(str(error))
            return False
        if answer is None:
            return False
        found.described |= answer[0]
        if answer[1]:
            found.denied.setdefault("DescribeGroups", []).extend(answer[1])
        return True

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
        """Ask when the rate of requests permits. Return the answer, or None if the round is over."""
        pause = self._asked_at + 1 / self._config.group_requests_per_second - time.monotonic()
        if stop.is_set() or (pause > 0 and stop.wait(pause)) or time.monotonic() > self._ends_at:
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
