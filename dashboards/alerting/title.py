"""The title of an alert's message: the cluster, the event and the next step, as short as a phone shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from controller.contract.alert_kinds import kinds
from controller.contract.alert_row import AlertRow
from questions.damage import Damage
from questions.doubts import STALE
from questions.incidents import DAMAGING, HOW_IT_LEFT, Incident
from wording.sentences import counted, event_of, listed, plural

# Opsgenie cuts a title at 130 characters, and a phone near 70. The rest is for the number of other alerts: " (+12)".
LONGEST_TITLE: Final = 64
_RESOLVED: Final = "Resolved: "  # the prefix by deploy/alertmanager/kontrast.tmpl
_LONGEST_CLUSTER: Final = 24
_LONGEST_TEAM: Final = 16
_LONGEST_SUBJECT: Final = 32
_LONGEST_TOPIC: Final = 24
_LONGEST_STEP: Final = 24

# Alerts that the exporter itself finds have no kind.
_OF_EXPORTER: Final = {STALE: "Kontrast hears nothing", "FinalizedTooEarly": "KRaft was finalized too early"}


def title_of(row: AlertRow, team: str = "", incident: Incident | None = None) -> str:
    """Return the title, such as "orders: 2 offline, 6 reject acks=all (ledger): start broker 2".

    The damage and the broker to start are those of the alert's incident, if one is given. The affected team follows the
    cluster, such as "orders, team pay: 2 offline (ledger)". If the title is too long, the team, the end of the topic's
    name, the topic and the step are left out, in this order. The title of a resolved alert has no next step, and leaves
    room for the prefix "Resolved".
    """
    cluster = _cut(row.cluster, _LONGEST_CLUSTER)
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
    if topics := _damage(row, incident).topics:
        yield from (f" ({topics[0].topic})", f" ({_cut(topics[0].topic, _LONGEST_TOPIC)})")
    yield ""


def _damage(row: AlertRow, incident: Incident | None) -> Damage:
    return incident.damage if incident is not None and row.alert in DAMAGING else Damage()


def _words(row: AlertRow, incident: Incident | None) -> tuple[str, str]:
    kind = kinds.ALERT_KINDS.get(row.alert)
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
    if incident is not None and (row.alert in DAMAGING or row.alert in HOW_IT_LEFT):
        first = re.split(r", (?!\d)| \(", incident.first_step)[0]  # a list of brokers has commas, too
        step = f"{first[:1].lower()}{first[1:]}" if len(first) <= _LONGEST_STEP else step
    return _damage(row, incident).title or event, step


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
