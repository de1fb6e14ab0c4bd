"""The report of many clusters against an objective, as a platform team takes it to its review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from questions.clients.teams import NO_TEAMS, Team, Teams
from questions.report.cluster_report import ClusterReport, TopicAvailability, figures_of
from wording.said import Said, first_of, line
from wording.sentences import counted, minutes_of, share


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """Topic that missed the objective for acks=all, with its excess."""

    cluster: str
    topic: str
    writable: float
    unwritable_partition_minutes: float
    allowed_partition_minutes: float

    @property
    def words(self) -> str:
        """Return the topic with its excess."""
        spent = f"{minutes_of(self.unwritable_partition_minutes)} partition-minutes unwritable"
        allowed = f"{minutes_of(self.allowed_partition_minutes)} allowed"
        return f"{self.cluster}  {self.topic}: writable {share(self.writable)}: {spent}, {allowed}"


class TeamAvailability(msgspec.Struct, frozen=True, kw_only=True):
    """Availability of a team's topics in all clusters together, by the same figures as a topic's."""

    team: str
    contact: str
    topics: int
    partition_minutes: float
    offline_partition_minutes: float
    unwritable_partition_minutes: float  # the offline ones included
    online: float  # share of the partition-minutes
    writable: float

    def __str__(self) -> str:
        return str(Team(self.team, self.contact))

    @property
    def words(self) -> str:
        """Return the team with its figures."""
        offline, unwritable = self.offline_partition_minutes, self.unwritable_partition_minutes
        return f"{self}: {figures_of(offline, self.online, unwritable, self.writable)}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Reports of clusters by name, the topics that missed the objective, the worst first, and the owners of topics."""

    objective_percent: float | None
    clusters: tuple[ClusterReport, ...]
    misses: tuple[Miss, ...]
    teams: tuple[TeamAvailability, ...] = ()  # the most important first

    def said(self) -> Said:
        """Yield the objective first, then the teams by their importance, then the clusters by name."""
        if self.objective_percent is not None:
            topics = sum(len(cluster.topics) for cluster in self.clusters)
            missed = f"{len(self.misses)} of {counted(topics, 'topic')} missed the objective"
            yield line(f"{missed}: writable with acks=all {self.objective_percent:g} % of the time")
            yield from first_of([miss.words for miss in self.misses], indent=2, noun="topic")
        if self.teams:
            yield line("partition-minutes of each team's topics:")
            yield from first_of([team.words for team in self.teams], indent=2, noun="team")
        for cluster in self.clusters:
            yield from cluster.said()


def report_against(
    objective_percent: float | None, clusters: Sequence[ClusterReport], teams: Teams = NO_TEAMS
) -> Report:
    """Return the report of these clusters. Without an objective no topic misses it."""
    missed = () if objective_percent is None else _misses(objective_percent, clusters)
    worst_first = sorted(missed, key=lambda miss: (miss.writable, miss.cluster, miss.topic))
    return Report(
        objective_percent=objective_percent,
        clusters=tuple(clusters),
        misses=tuple(worst_first),
        teams=tuple(_by_team(clusters, teams)),
    )


def allowed_partition_minutes(objective_percent: float, topic: TopicAvailability) -> float:
    """Return partition-minutes that the objective lets a topic reject acks=all."""
    return topic.partition_minutes * (100 - objective_percent) / 100


def _misses(objective_percent: float, clusters: Iterable[ClusterReport]) -> Iterator[Miss]:
    for report in clusters:
        for topic in report.topics:
            allowed = allowed_partition_minutes(objective_percent, topic)
            if topic.unwritable_partition_minutes > allowed:
                yield Miss(
                    cluster=report.cluster,
                    topic=topic.topic,
                    writable=topic.writable,
                    unwritable_partition_minutes=topic.unwritable_partition_minutes,
                    allowed_partition_minutes=allowed,
                )


def _by_team(clusters: Iterable[ClusterReport], teams: Teams) -> Iterator[TeamAvailability]:
    """Yield the teams that own a topic. Several clusters may have a topic of one name."""
    by_name: dict[str, list[TopicAvailability]] = {}
    for report in clusters:
        for topic in report.topics:
            by_name.setdefault(topic.topic, []).append(topic)
    for team, names in teams.teams_of(by_name).items():
        owned = [topic for name in names for topic in by_name[name]]
        minutes = sum(topic.partition_minutes for topic in owned)
        offline = sum(topic.offline_partition_minutes for topic in owned)
        unwritable = sum(topic.unwritable_partition_minutes for topic in owned)
        if team is not None:
            yield TeamAvailability(
                team=team.team,
                contact=team.contact,
                topics=len(owned),
                partition_minutes=minutes,
                offline_partition_minutes=offline,
                unwritable_partition_minutes=unwritable,
                online=1 - offline / minutes,
                writable=1 - unwritable / minutes,
            )


def reasons_to_doubt(report: ClusterReport) -> Iterator[str]:
    """Return reasons to doubt a cluster's figures. Unseen time is not online time."""
    window = report.window
    named = f"cluster {report.cluster}" if report.cluster else "lines that name no cluster"
    yield from (f"{named}: {note}" for note in report.notes)
    if report.unreadable_lines:
        yield f"{named}: {counted(report.unreadable_lines, 'line')} could not be read and left out"
    if report.failed or not report.cluster:
        return
    if window.seen_from_ms is None:
        yield f"{named}: Kontrast has no data of the window, so there are no figures"
    elif window.unseen_seconds:
        share = window.unseen_seconds / (window.seen_seconds + window.unseen_seconds)
        yield (
            f"{named}: {share:.1%} of the window is missing from the data ({window.unseen_seconds / 3600:.1f} of "
            f"{(window.seen_seconds + window.unseen_seconds) / 3600:.1f} h). The figures cover the rest"
        )
