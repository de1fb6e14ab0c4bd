"""An alert in Alertmanager's form, made from a row: labels identify it, annotations describe it, a title names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, unquote

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import BrokerId
from controller.says.alert_kinds.kind import NAME_PREFIX
from controller.says.alert_kinds.kinds import ALERT_KINDS, BROKER_CRASHED
from dashboards.alerting.config import AlertmanagerConfig
from questions.check.incidents import Incident, is_own
from questions.clients.teams import Team
from questions.doubts import STALE
from transport.printable import label_value, printable
from wording.sentences import counted, event_of, joined, listed, plural
from wording.times import moment, rfc3339

Labels = tuple[tuple[str, str], ...]  # in the order of their names, because they identify an alert for Alertmanager

OTHER_BROKER = "other_broker"  # the label of an alert's message about a further broker
NEWS = "news"  # the label of an alert's message about further damage or another next step, a number
TEAM = "team"  # the label and the annotation of an alert that affects topics of a team
RANK = "rank"  # the annotation that orders the alerts of a group as a text, the worst first
ALERT_ID = "alert_id"  # the annotation by which the exporter recognizes its own alerts

TopicsByTeam = Mapping[Team | None, Sequence[str]]  # the most important team first
_SHOWN_AFTER_MS = 3_000  # a controller and its brokers react to a loss within seconds
_OF_NO_TEAM: TopicsByTeam = MappingProxyType({None: ()})

# The severities of Kontrast's Prometheus rules, so that both are routed alike.
SEVERITY_LABELS: Mapping[Severity, str] = MappingProxyType(
    {Severity.PAGE: "critical", Severity.WARN: "warning", Severity.INFO: "info"}
)
_EVIDENCE = "evidence"  # the annotation with several lines
# The begin of a mention, a tag or a link in a chat, which a name could have. A space behind it makes it plain text.
_MARKUP = re.compile(r"<(?=[!@#/\w])|\](?=\()|\bhttps?:(?=//)|@(?=everyone\b|here\b|channel\b)", re.IGNORECASE)
_SEVERITIES = {label: severity for severity, label in SEVERITY_LABELS.items()}
_PLACES = {name: f"{place:02}" for place, name in enumerate(ALERT_KINDS)}  # in the catalogue, the worst first

# Opsgenie cuts a title at 130 characters, and a phone near 70. The rest is for the number of other alerts: " (+12)".
LONGEST_TITLE: Final = 64
_RESOLVED: Final = "Resolved: "  # the prefix by deploy/alertmanager/kontrast.tmpl
_LONGEST_CLUSTER: Final = 24
_LONGEST_TEAM: Final = 16
_LONGEST_SUBJECT: Final = 32
_LONGEST_TOPIC: Final = 24
_LONGEST_STEP: Final = 28
_REASON: Final = re.compile(r", (?:so|because|and|then|or|if)\b| \(")  # behind a step. Lists have commas, too

# Alerts that the exporter itself finds have no kind.
_OF_EXPORTER: Final = {STALE: "Kontrast hears nothing", "FinalizedTooEarly": "KRaft was finalized too early"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One alert to send, ended with `ended_ms`. Times are in milliseconds since 1970."""

    labels: Labels
    annotations: Labels
    since_ms: int
    ended_ms: int | None = None

    def label(self, name: str) -> str:
        """Return the label's value, or an empty text if the alert lacks the label."""
        return dict(self.labels).get(name, "")

    @property
    def is_addition(self) -> bool:
        """Return whether the message only adds news or a broker to an alert that has a message of its own."""
        return bool(self.label(OTHER_BROKER) or self.label(NEWS))

    @property
    def severity(self) -> Severity:
        """Return the severity of the row."""
        return _SEVERITIES[self.label("severity")]

    def unknown(self) -> Message:
        """Return the same alert in the state unknown."""
        if ("state", "unknown") in self.annotations:
            return self
        return self.annotated(state="unknown")

    def annotated(self, **annotations: str) -> Message:
        """Return the same alert with these annotations, which replace former values."""
        return replace(self, annotations=_pairs({**dict(self.annotations), **annotations}))

    @property
    def alert_id(self) -> str | None:
        """Return the id of the row, or None for an alert of another program."""
        known = dict(self.annotations).get(ALERT_ID)
        return None if known is None else unquote(known)

    def as_json(self, now_ms: int, config: AlertmanagerConfig) -> dict[str, Any]:
        """Return the element of Alertmanager's v2 API. An active alert ends by itself if it is not repeated in time.

        An end in Alertmanager's future would keep the alert active until then.
        """
        start_ms = min(self.since_ms, now_ms)
        if self.ended_ms is None:
            end_ms = now_ms + int(config.resolve_timeout_seconds * 1000)
        else:
            end_ms = max(min(self.ended_ms, now_ms), start_ms + 1)
        alert: dict[str, Any] = {
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "startsAt": rfc3339(start_ms),
            "endsAt": rfc3339(end_ms),
        }
        return alert if config.generator_url is None else {**alert, "generatorURL": config.generator_url}


def message_of(
    row: AlertRow,
    config: AlertmanagerConfig,
    team: Team | None = None,
    topics: Sequence[str] = (),
    incident: Incident | None = None,
) -> Message:
    """Return the alert's own message, for a team with affected `topics` if one is given, as part of its incident."""
    # Clients lost nothing by a BrokerCrashed that pages, so the setting decides.
    crash_pages = row.alert == BROKER_CRASHED.name and row.severity is Severity.PAGE
    severity = Severity(config.crash_without_damage) if crash_pages else row.severity
    labels = _labels(row, severity, {} if team is None else {TEAM: team.team}, config)
    annotations = {
        ALERT_ID: quote(row.id.encode("utf-8", "replace"), safe=" "),
        RANK: f"{list(Severity).index(severity)}{_PLACES.get(row.alert, '98')}",
        "summary": title_of(row, "" if team is None else team.team, incident),
        "description": row.cause,
        "expected": row.expected or "",
        "action": row.action,
        _EVIDENCE: "\n".join(map(printable, row.evidence)),
        "partitions": str(row.partitions) if row.partitions else "",
        "examples": ", ".join(row.examples),
        "since": moment(row.since_ms),
        "state": row.state,
        "runbook_url": f"{config.runbook_url.rstrip('/')}/{NAME_PREFIX}{row.alert}.md",
        TEAM: "" if team is None else f"{team} for {joined(topics)}",
        "page_url": "" if config.page_url is None else config.page_url.rstrip("/") + _page(row),
    }
    return Message(labels=tuple(sorted(_present(labels))), annotations=_pairs(annotations), since_ms=row.since_ms)


def _labels(
    row: AlertRow, severity: Severity, of_team: Mapping[str, str], config: AlertmanagerConfig
) -> Mapping[str, str]:
    return {
        **config.external_labels,
        "alertname": f"{NAME_PREFIX}{row.alert}",
        "alert": row.alert,
        "kafka_cluster": row.cluster,
        "severity": SEVERITY_LABELS[severity],
        "component": _component(row),
        "subject": label_value(row.subject),
        "group": label_value(row.group),
        "topic": label_value(row.topic or ""),
        "partition": "" if row.partition is None else str(row.partition),
        "broker": "" if row.broker is None else str(row.broker),
        **of_team,
    }


def messages_of(
    row: AlertRow, config: AlertmanagerConfig, by_team: TopicsByTeam = _OF_NO_TEAM, incident: Incident | None = None
) -> tuple[Message, ...]:
    """Return the alert's message, one for each further broker of its incident, and one for each of its news.

    Each affected team gets these messages with its own label, because Alertmanager routes an alert by its labels.

    Alertmanager sends news only for new and ended labels. A broker that joins, further damage and another next step
    therefore bring a message with a new label. Earlier messages stay as long as the alert, because their end would
    look like the end of the incident.
    """
    return tuple(
        each
        for team, topics in by_team.items()
        for each in _messages(row, message_of(row, config, team, topics, incident), incident)
    )


def _messages(row: AlertRow, message: Message, incident: Incident | None) -> tuple[Message, ...]:
    first = min(row.brokers, default=None) if row.broker is None else row.broker
    others = [broker for broker in row.brokers if broker != first]
    news = [f"{row.cluster}: {said}" for said in row.news]
    return (
        message,
        *(
            _addition(row, message, OTHER_BROKER, each, (title_of(row, "", incident, also=each), row.cause))
            for each in others
        ),
        *(_addition(row, message, NEWS, number, (said, said)) for number, said in enumerate(news, 1)),
    )


def _addition(row: AlertRow, message: Message, label: str, value: int, said: tuple[str, str]) -> Message:
    known, (summary, description) = dict(message.annotations)[ALERT_ID], said
    texts = {ALERT_ID: known, "summary": summary, "description": description, "state": row.state}
    labels = tuple(sorted({**dict(message.labels), label: str(value)}.items()))
    return replace(message, labels=labels, annotations=_pairs(texts))


def _page(row: AlertRow) -> str:
    """Return the path of the live page with the cluster's incidents as they were when the alert had opened."""
    kind = ALERT_KINDS.get(row.alert)
    opened_ms = row.since_ms + (0 if kind is None else kind.patience_ms) + _SHOWN_AFTER_MS
    cluster = quote(row.cluster.encode("utf-8", "replace"), safe="")
    return f"/clusters/{cluster}" + ("" if is_own(row) or kind is None else f"?at={opened_ms}")


def _component(row: AlertRow) -> str:
    """Return the label `component`, as in Kontrast's Prometheus rules. `replica` is never muted."""
    kind = ALERT_KINDS.get(row.alert)
    is_of_replica = row.alert == STALE if kind is None else kind.of_replica
    return "replica" if is_of_replica else row.subject.partition(" ")[0]


def _pairs(annotations: Mapping[str, str]) -> Labels:
    """Return the annotations, whose texts have no control or direction character and nothing that a chat interprets."""

    def shown(name: str, text: str) -> str:
        if name == ALERT_ID or name.endswith("_url"):
            return text
        lines = text.split("\n") if name == _EVIDENCE else [text]
        return "\n".join(_MARKUP.sub(r"\g<0> ", printable(line)) for line in lines)

    return tuple(sorted((name, shown(name, text)) for name, text in _present(annotations)))


def _present(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # For Alertmanager an empty label is absent, and invalid text would reject the whole request.
    return ((name, text.encode("utf-8", "replace").decode()) for name, text in texts.items() if text)


def title_of(row: AlertRow, team: str = "", incident: Incident | None = None, also: BrokerId | None = None) -> str:
    """Return the title, such as "orders: 2 offline, 6 reject acks=all (ledger): start broker 2".

    The damage and the broker to start are those of the alert's incident, if one is given. A broker that joined (`also`)
    or the affected team follows the cluster, such as "orders, team pay: 2 offline (ledger)". If the title is too long,
    the team, the end of the topic's name, the topic and the step are left out, in this order. The title of a resolved
    alert has no next step, and leaves room for the prefix "Resolved".
    """
    cluster = _cut(row.cluster, _LONGEST_CLUSTER) + ("" if also is None else f", broker {also} too")
    of_team = f"{cluster}, team {_cut(team, _LONGEST_TEAM)}" if team else cluster
    event, step = _words(row, incident)
    if row.ends_subject:
        return _cut(f"{of_team}: {event}", LONGEST_TITLE - len(_RESOLVED))
    topics = list(_topics(row, incident))
    tries = [(of_team, topics[0], step), *((cluster, topic, step) for topic in topics), (cluster, topics[-1], "")]
    titles = [": ".join(filter(None, (whose, f"{event}{topic}", then))) for whose, topic, then in tries]
    return next((title for title in titles if len(title) <= LONGEST_TITLE), _cut(titles[-1], LONGEST_TITLE))


def _topics(row: AlertRow, incident: Incident | None) -> Iterator[str]:
    """Yield the most important topic of the damage in brackets, shorter each time, and at last nothing."""
    if topics := incident.damage_of(row).topics if incident is not None else ():
        yield from (f" ({topics[0].topic})", f" ({_cut(topics[0].topic, _LONGEST_TOPIC)})")
    yield ""


def _words(row: AlertRow, incident: Incident | None) -> tuple[str, str]:
    kind = ALERT_KINDS.get(row.alert)
    if kind is None:
        return _OF_EXPORTER.get(row.alert, f"{row.subject} shows old metadata"), ""
    values = {
        "partitions": counted(row.partitions, "partition"),
        "brokers": listed(row.brokers or (() if row.broker is None else (row.broker,))),
        "broker": row.broker,
        "subject": _cut(row.subject, _LONGEST_SUBJECT),
        "them": plural(max(1, len(row.brokers)), "it", "them"),
    }
    is_counted = row.partitions or "{partitions}" not in kind.headline
    event = kind.headline.format(**values) if is_counted else event_of(row.cause)
    step = kind.step.format(**values)
    if incident is not None and (whole := incident.step_of(row)):
        first = _REASON.split(whole)[0]
        short = incident.alerts[0].alert if row.group == incident.group else row.alert
        step = (
            f"{first[:1].lower()}{first[1:]}"
            if len(first) <= _LONGEST_STEP
            else ALERT_KINDS[short].step.format(**values)
        )
    return (incident.damage_of(row).title if incident is not None else "") or event, step


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
