"""Active alerts by source, and messages for every Alertmanager, also of those that ended within its time-out.

A sent alert ends in three ways. A row resolves it, it continues under other labels, or a certain source has not
mentioned it for a minute. A source without recent news is not certain, because silence is not health.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.says.alert_kinds.kind import NAME_PREFIX
from dashboards.alerting.config import OWN_LABELS, AlertmanagerConfig
from dashboards.alerting.message import SEVERITY_LABELS, TEAM, Labels, Message, TopicsByTeam, messages_of, title_of
from questions.check.incidents import Incident, incident_of
from questions.clients.teams import NO_TEAMS, Teams
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import STALE

BROKER_VIEW = "BrokerViewStale"
FINALIZED_TOO_EARLY = "FinalizedTooEarly"

_PARTITION_NUMBER = re.compile(r"-\d+$")


class Finder(Enum):
    """Origin of an active alert."""

    OUTPUTS = "outputs"  # the streaming job
    STALENESS = "staleness"  # this exporter, of the outputs
    PROBE = "probe"  # this exporter, from brokers' answers
    QUORUM = "quorum"  # this exporter, from KRaft controllers' answers


_SOURCES = {
    f"{NAME_PREFIX}{STALE}": Finder.STALENESS,
    f"{NAME_PREFIX}{BROKER_VIEW}": Finder.PROBE,
    f"{NAME_PREFIX}{FINALIZED_TOO_EARLY}": Finder.QUORUM,
}


def source_of(alert_name: str) -> Finder:
    """Return the source of the alerts of this name."""
    return _SOURCES.get(alert_name, Finder.OUTPUTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveAlerts:
    """Active alerts of one cluster by one source, and those that it resolved recently.

    While the source is not `certain`, its alerts stay as they were, because a missing alert may still be active.
    """

    cluster: str
    source: Finder
    certain: bool
    alerts: Mapping[str, AlertRow]  # by id
    resolved: Mapping[str, AlertRow]  # by id
    incidents: Sequence[Incident] = ()

    def topics_of(self, row: AlertRow) -> tuple[str, ...]:
        """Return the topics that an alert affects, which are those of its incident's damage, and the named ones."""
        named = [_PARTITION_NUMBER.sub("", each) if row.partitions else each for each in row.examples]
        incident = incident_of(row, self.incidents)
        lost = [] if incident is None else [each.topic for each in incident.damage.topics]
        return tuple(dict.fromkeys(filter(None, (*lost, *named, row.topic))))


def of_outputs(snapshot: ClusterSnapshot, incidents: Iterable[Incident] = (), *, certain: bool) -> ActiveAlerts:
    """Return the alerts of the streaming job's outputs, with the incidents that `known_incidents` returns."""
    return ActiveAlerts(
        cluster=snapshot.cluster,
        source=Finder.OUTPUTS,
        certain=certain,
        alerts={row.id: row for row in snapshot.open_alerts},
        resolved={row.id: row for row in snapshot.resolved_alerts},
        incidents=tuple(incidents),
    )


def of_staleness(
    snapshot: ClusterSnapshot, heard_ms: int, *, stale_since_ms: int | None, silent: str, certain: bool
) -> ActiveAlerts:
    """Return the alert ReplicaStale of a cluster with its newest heartbeat at `heard_ms`, if the cluster is stale.

    The alert begins when the silence was noticed, not at `heard_ms`, because Alertmanager sends an alert at once that
    began longer ago than its `group_wait`, so one dead process would page in several messages. `silent` is the answer
    of `silent_process`.
    """
    alerts = {} if stale_since_ms is None else {STALE: snapshot.stale_alert(heard_ms, stale_since_ms, silent)}
    return ActiveAlerts(cluster=snapshot.cluster, source=Finder.STALENESS, certain=certain, alerts=alerts, resolved={})


def of_forgotten(cluster: str, endings: Mapping[str, AlertRow]) -> Iterator[ActiveAlerts]:
    """Return the sources of a forgotten cluster without active alerts. They are certain, so its sent alerts end."""
    for source in Finder:
        resolved = endings if source is Finder.OUTPUTS else {}
        yield ActiveAlerts(cluster=cluster, source=source, certain=True, alerts={}, resolved=resolved)


def alert_at(gauges: GaugesRow, **fields: object) -> AlertRow:
    """Return an alert that the exporter itself finds, with the place and the time of these gauges."""
    return AlertRow(
        cluster=gauges.cluster,
        generation=gauges.generation,
        seq=gauges.seq,
        ordinal=0,
        zxid=gauges.zxid,
        time_ms=gauges.time_ms,
        **fields,  # type: ignore[arg-type]
    )


# An output that is read again from its beginning briefly lacks active alerts, so only a longer silence ends them.
_UNMENTIONED_MS = 60_000

_Subject = tuple[str, Finder, str]  # cluster, source, the alert's id


@dataclass(slots=True)
class _Tracked:
    subject: _Subject
    message: Message
    unmentioned_since_ms: int | None = None  # by the steady clock


@dataclass(frozen=True, slots=True)
class _Built:
    row: AlertRow
    certain: bool
    messages: tuple[Message, ...]
    incident: Incident | None
    by_team: TopicsByTeam  # topics that were affected at any time since the alert opened


class AlertRegistry:
    """The current messages. One thread writes, and any thread reads."""

    def __init__(self, config: AlertmanagerConfig, teams: Teams = NO_TEAMS) -> None:
        self._config = config
        self._teams = teams
        self._lock = threading.Lock()
        self._built: dict[_Subject, _Built] = {}
        self._newest: tuple[ActiveAlerts, ...] | None = None
        self._mentioned: dict[Labels, _Tracked] = {}
        self._missed: dict[Labels, _Tracked] = {}  # sent, and not mentioned now
        self._ended: dict[Labels, tuple[Message, int]] = {}  # with the time of the end, by the steady clock
        self._messages: tuple[Message, ...] | None = None
        self._active: dict[str, list[Message]] | None = None  # computed by `active`, None after a change

    def messages(self) -> tuple[Message, ...] | None:
        """Return all messages, None before the first update."""
        with self._lock:
            return self._messages

    def active(self) -> Mapping[str, Sequence[Message]]:
        """Return the active messages of each cluster, first those that page, then the oldest, then further brokers."""
        with self._lock:
            if self._active is None:
                found: dict[str, list[Message]] = {}
                pages_first = lambda each: (each.is_addition, each.severity is not Severity.PAGE, each.since_ms)  # noqa: E731
                for message in sorted(self._messages or (), key=pages_first):
                    if message.ended_ms is None:
                        found.setdefault(message.label("kafka_cluster"), []).append(message)
                self._active = found
            return self._active

    def update(self, active: Iterable[ActiveAlerts], now_ms: int, steady_ms: int, *, knows_all: bool = True) -> None:
        """Take the active alerts of all sources, with the time by the wall clock and a steady one.

        A call without a change is cheap. If `active` may lack a source (not `knows_all`), its alerts become unknown.
        """
        newest = tuple(active)
        with self._lock:
            if newest != self._newest:
                self._newest = newest
                self._mention(newest)
            elif not (self._missed or self._ended) and self._messages is not None:
                return
            by_source = {(said.cluster, said.source): said for said in newest}
            for labels, tracked in list(self._missed.items()):
                cluster, source, _ = tracked.subject
                said = by_source.get((cluster, source))
                if said is None and not knows_all:
                    tracked.message = tracked.message.unknown()
                else:
                    self._miss(labels, tracked, said, now_ms, steady_ms)
            keep_ms = int(self._config.resolve_timeout_seconds * 1000)
            self._ended = {k: (message, at) for k, (message, at) in self._ended.items() if steady_ms - at < keep_ms}
            not_ended = (tracked.message for held in (self._mentioned, self._missed) for tracked in held.values())
            messages = (*not_ended, *(message for message, _ in self._ended.values()))
            if messages != self._messages:  # senders take the same object for no change
                self._messages, self._active = messages, None

    def adopt(self, found: Iterable[Message]) -> None:
        """Track alerts that an Alertmanager has from an earlier process, until their source decides if they are active.

        Alerts with other external labels belong to another exporter.
        """
        with self._lock:
            for message in found:
                cluster, alert_id = message.label("kafka_cluster"), message.alert_id
                own = {*OWN_LABELS, TEAM}
                others = {name: value for name, value in message.labels if name not in own}
                external = {name: value for name, value in self._config.external_labels.items() if name != TEAM}
                if alert_id is None or others != external:
                    continue
                if not any(message.labels in held for held in (self._mentioned, self._missed, self._ended)):
                    subject = (cluster, source_of(message.label("alertname")), alert_id)
                    self._missed[message.labels] = _Tracked(subject, message)

    def _mention(self, active: Iterable[ActiveAlerts]) -> None:
        mentioned: dict[Labels, _Tracked] = {}
        built: dict[_Subject, _Built] = {}
        for said in active:
            for alert_id, row in said.alerts.items():
                subject = (said.cluster, said.source, alert_id)
                known, incident = self._built.get(subject), incident_of(row, said.incidents)
                # Building the messages of thousands of alerts each time would cost more than all the rest.
                told = (row, said.certain, incident)
                if known is None or (known.row, known.certain, known.incident) != told:
                    by_team = self._by_team(said.topics_of(row), known)
                    messages = messages_of(row, self._config, by_team, incident)
                    if not said.certain:
                        messages = tuple(message.unknown() for message in messages)
                    known = _Built(row, said.certain, messages, incident, by_team)
                built[subject] = known
                for message in known.messages:
                    # Two messages with the same labels are one alert for Alertmanager, so the older one counts.
                    mentioned.setdefault(message.labels, _Tracked(subject, message))
        self._built = built
        self._missed = {k: tracked for k, tracked in {**self._missed, **self._mentioned}.items() if k not in mentioned}
        self._ended = {k: ended for k, ended in self._ended.items() if k not in mentioned}
        self._mentioned = mentioned

    def _by_team(self, topics: Iterable[str], before: _Built | None) -> TopicsByTeam:
        """Return the affected topics by team. A topic stays until the incident ends, so a team's alert does, too."""
        earlier = () if before is None else (topic for known in before.by_team.values() for topic in known)
        return self._teams.teams_of(dict.fromkeys((*topics, *earlier))) or {None: ()}

    def _miss(self, labels: Labels, tracked: _Tracked, said: ActiveAlerts | None, now_ms: int, steady_ms: int) -> None:  # noqa: PLR0913 (one call)
        """Decide if an alert has ended that was sent, but that its source does not mention any more."""
        if said is None:  # its source is gone, so Alertmanager's time-out ends it
            del self._missed[labels]
            return
        alert_id = tracked.subject[2]
        if not said.certain:
            tracked.message = tracked.message.unknown()
            tracked.unmentioned_since_ms = None
            return
        ending = said.resolved.get(alert_id)
        if tracked.unmentioned_since_ms is None:
            tracked.unmentioned_since_ms = steady_ms
        is_silent = steady_ms - tracked.unmentioned_since_ms >= _UNMENTIONED_MS
        by_nature = said.source is Finder.STALENESS  # its answer is always complete
        continued = said.alerts.get(alert_id)
        if ending or continued or is_silent or by_nature:
            del self._missed[labels]
            if ending is None and continued is not None:
                message = _moved(tracked.message, continued, now_ms)
            else:
                message = _ended(tracked.message, ending, now_ms)
            self._ended[labels] = (message, steady_ms)


def _ended(message: Message, ending: AlertRow | None, now_ms: int) -> Message:
    annotated = message.annotated(state="resolved")
    if ending is None:
        return replace(annotated, ended_ms=now_ms)
    return replace(
        annotated.annotated(summary=title_of(ending, message.label(TEAM)), description=ending.cause),
        ended_ms=min(now_ms, ending.time_ms),
    )


def _moved(message: Message, row: AlertRow, now_ms: int) -> Message:
    """Return the end of an alert that goes on under other labels, so its annotation `state` is open."""
    title = title_of(msgspec.structs.replace(row, state="resolved"), message.label(TEAM))
    sentence = f"{title}. It goes on with severity {SEVERITY_LABELS[row.severity]}"
    return replace(message.annotated(state=row.state, summary=sentence, description=sentence), ended_ms=now_ms)
