"""The title of an alert's message: the cluster, the event and the next step, as short as a phone shows it."""

from __future__ import annotations

from typing import Final

from controller.contract.alert_kinds.kinds import ALERT_KINDS
from controller.contract.alert_row import AlertRow
from wording.sentences import counted, event_of, listed, plural

# Opsgenie cuts a title at 130 characters, and a phone near 70. The rest is for the number of other alerts: " (+12)".
LONGEST_TITLE: Final = 64
_RESOLVED: Final = "Resolved: "  # the prefix by deploy/alertmanager/kontrast.tmpl
_LONGEST_CLUSTER: Final = 24
_LONGEST_TEAM: Final = 16
_LONGEST_SUBJECT: Final = 32


def title_of(row: AlertRow, team: str = "") -> str:
    """Return the title, such as "orders: 2 partitions offline, start broker 1". The step is left out if it is too long.

    The affected team follows the cluster, such as "orders, team pay: 2 partitions offline". The title of a resolved
    alert has no next step, and leaves room for the prefix "Resolved".
    """
    cluster = _cut(row.cluster, _LONGEST_CLUSTER) + (f", team {_cut(team, _LONGEST_TEAM)}" if team else "")
    event, step = _words(row)
    if row.ends_subject:
        return _cut(f"{cluster}: {event}", LONGEST_TITLE - len(_RESOLVED))
    whole = f"{cluster}: {event}, {step}" if step else f"{cluster}: {event}"
    return whole if len(whole) <= LONGEST_TITLE else _cut(f"{cluster}: {event}", LONGEST_TITLE)


def _words(row: AlertRow) -> tuple[str, str]:
    kind = ALERT_KINDS.get(row.alert)
    if kind is None or not kind.headline:
        return f"{row.alert} of {row.subject}", ""
    values = {
        "partitions": counted(row.partitions, "partition"),
        "brokers": listed(row.brokers or (() if row.broker is None else (row.broker,))),
        "broker": row.broker,
        "subject": _cut(row.subject, _LONGEST_SUBJECT),
        "them": plural(max(1, len(row.brokers)), "it", "them"),
    }
    is_counted = row.partitions or "{partitions}" not in kind.headline
    event = kind.headline.format(**values) if is_counted else event_of(row.cause)
    return event, kind.step.format(**values)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
