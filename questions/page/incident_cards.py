"""Open alerts as incidents, one card per cause, with its effect by topic and the brokers to bring back."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import PartitionRow
from controller.says.alert_kinds import kinds
from controller.says.alert_kinds.kind import NAME_PREFIX
from controller.view.returns import Waiting, bring_back
from controller.view.types import Header
from questions.check import incidents as question
from questions.check.check import Finding, finding_of
from questions.check.damage import TopicDamage, short
from questions.clients.groups import Impact
from questions.clients.teams import Teams
from questions.cluster_rows import ClusterSnapshot
from questions.known_brokers import host_of
from questions.picture import Beginning, Picture
from wording.facts import keep_up, with_keep_up
from wording.sentences import capital, counted, event_of, verb

_TOPICS_IN_A_CARD: Final = 6
_TOPICS_IN_A_SENTENCE: Final = 2
_RETURNS_IN_A_CARD: Final = 6
_OF_LIVE_BROKERS: Final = frozenset({kinds.UNDER_MIN_ISR.name, kinds.UNDER_REPLICATED.name})
_ABOUT_DAMAGE: Final = frozenset({kinds.PARTITIONS_OFFLINE.name, kinds.UNDER_MIN_ISR.name})


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """Settings that decide the order of topics, the commands and the links of an overview."""

    teams: Teams = field(default_factory=Teams)
    start_command: str = "ssh {host} sudo systemctl start kafka"  # {host} and {broker} are replaced
    runbook_url: str = "docs/runbooks"
    alertmanager_url: str | None = None  # where an alert can be silenced

    def runbook(self, alert: str) -> str:
        """Return the address or path of the alert's runbook."""
        return f"{self.runbook_url.rstrip('/')}/{NAME_PREFIX}{alert}.md"


class Return(msgspec.Struct, frozen=True):
    """A broker to start, and the partitions that its return restores once the brokers before it are back."""

    broker: BrokerId
    step: str  # start it, or restart it if it hangs
    restores: int
    says: str
    command: str | None


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """The open alerts of one cause."""

    group: str
    severity: Severity
    event: str
    how: str  # how the brokers left, empty if they left in several ways
    since: Beginning  # of the alert that gives the event
    brokers: tuple[BrokerId, ...]  # that are away
    effect: str  # the damage to clients in a sentence, empty without damage
    effects: tuple[TopicDamage, ...]  # the most important topic first
    more_topics: int
    unusable: int  # partitions in all topics, those that reject acks=all among them
    under_replicated: int  # usable partitions that lack a replica
    returns: tuple[Return, ...]
    keep_up: str  # which brokers must stay up, and why
    alerts: tuple[Finding, ...]  # the worst first
    runbook: str
    silence: str | None
    impact: Impact | None = None  # on consumer groups and transactional ids, if any is known

    @property
    def detail(self) -> str:
        """Return the worst alert's cause, without the event if the heading has it, and without `keep_up`."""
        worst = self.alerts[0]
        cause, is_heading = with_keep_up(worst.cause, ""), not self.brokers or worst.alert in question.HOW_IT_LEFT
        return (cause.removeprefix(event_of(cause)) if is_heading else cause).strip(":. ")


def card_of(incident: question.Incident, found: ClusterSnapshot, picture: Picture, config: Presentation) -> Card:
    """Return the card of an incident, with its damage by topic."""
    worst, effects, stay_up = incident.alerts[0], incident.damage.topics, _keep_up(incident, found)
    lacking = len(_lacking_of(incident, found, found.lacking))
    return Card(
        group=incident.group,
        severity=incident.severity,
        event=incident.event,
        how=incident.how,
        since=incident.since,
        brokers=incident.brokers,
        effect=incident.damage.sentence,
        effects=effects[:_TOPICS_IN_A_CARD],
        more_topics=len(effects[_TOPICS_IN_A_CARD:]),
        unusable=incident.unusable,
        under_replicated=lacking,
        returns=tuple(_returns(incident, picture.header, config, lacking))[:_RETURNS_IN_A_CARD],
        keep_up=f"{stay_up}." if stay_up else "",
        alerts=tuple(_now(finding_of(row, picture), incident, stay_up) for row in incident.alerts),
        runbook=config.runbook(worst.alert),
        silence=None if config.alertmanager_url is None else _silence(config.alertmanager_url, worst),
    )


def _now(finding: Finding, incident: question.Incident, stay_up: str) -> Finding:
    """Return the finding with the present damage, because an alert keeps the counts of the moment that it was told."""
    if finding.alert not in _ABOUT_DAMAGE or not incident.damage.topics:
        return msgspec.structs.replace(finding, cause=with_keep_up(finding.cause, stay_up))
    cause = ". ".join(filter(None, (incident.damage.sentence.removesuffix("."), stay_up)))
    return msgspec.structs.replace(finding, cause=cause, partitions=incident.unusable)


def _keep_up(incident: question.Incident, found: ClusterSnapshot) -> str:
    """Return which brokers must stay up, because partitions of this incident are in sync only there."""
    live = _live(found)
    in_sync = (
        live.intersection(row.isr) for row in _lacking_of(incident, found, (*found.lacking, *found.under_min_isr))
    )
    alone = [brokers for brokers in in_sync if len(brokers) == 1]
    return keep_up(sorted(frozenset().union(*alone)), len(alone)) if alone else ""


def _live(found: ClusterSnapshot) -> set[BrokerId]:
    return {row.broker for row in found.brokers if row.registered or row.inferred}


def _lacking_of(
    incident: question.Incident, found: ClusterSnapshot, rows: Iterable[PartitionRow]
) -> list[PartitionRow]:
    """Return the partitions that lack a broker of the incident, or only live brokers if live replicas lag."""
    live = _live(found)
    missing = ((row, set(row.replicas).difference(live.intersection(row.isr))) for row in rows)
    if incident.blamed:
        return [row for row, brokers in missing if incident.lacks(brokers)]
    lags = any(row.alert in _OF_LIVE_BROKERS for row in incident.alerts)
    return [row for row, brokers in missing if lags and brokers <= live]


def _returns(incident: question.Incident, header: Header, config: Presentation, lacking: int) -> Iterator[Return]:
    """Yield the brokers in the order in which they should return, those that help no client last."""
    for each in incident.returns:
        yield _return(each.broker, each.partitions, _restored(each.restored), header, config)
    says = (
        f"{counted(lacking, 'partition', 'is')} replicated again." if len(incident.brokers) == 1 and lacking > 0 else ""
    )
    for broker in sorted(set(incident.brokers).difference(each.broker for each in incident.returns)):
        yield _return(broker, 0, says or "Its replicas catch up.", header, config)


def _return(broker: BrokerId, restores: int, says: str, header: Header, config: Presentation) -> Return:
    """Return the step for the broker, with its command if its host is known. The host comes from ZooKeeper."""
    step, gone = bring_back((broker,), header), header.departures.last.get(broker)
    host = host_of(gone.was.endpoints) if gone is not None and gone.was is not None else ""
    command = config.start_command.replace("{host}", shlex.quote(host)).replace("{broker}", str(broker))
    if gone is not None and gone.hangs:  # it runs, so a start would do nothing
        command = command.replace(" start ", " restart ")
    return Return(broker, capital(step), restores, says, command if host else None)


def _restored(groups: Sequence[Waiting]) -> str:
    if not groups:
        return "No partition returns yet."
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.topic] = counts.get(group.topic, 0) + group.partitions
    named = [f"{count:,} of {short(topic)}" for topic, count in list(counts.items())[:_TOPICS_IN_A_SENTENCE]]
    rest = sum(list(counts.values())[_TOPICS_IN_A_SENTENCE:])
    named += [f"{rest:,} of other topics"] if rest else []
    return f"{', '.join(named)} {verb(sum(counts.values()), 'returns')}."


def _silence(url: str, row: AlertRow) -> str:
    matchers = (
        f"{{kafka_cluster={msgspec.json.encode(row.cluster).decode()},group={msgspec.json.encode(row.group).decode()}}}"
    )
    return f"{url.rstrip('/')}/#/silences/new?filter={quote(matchers, safe='')}"
