"""Occurrences: divergences, unclean elections, bounced brokers and other moments, kept until their alert resolves.

Occurrences of one kind and subject are kept as one.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from controller.alerts.kinds import ALERT_KINDS, AlertKind
from controller.model.alert_state import EXAMPLES_NAMED, Occurrence
from controller.model.context import FOLLOWING, Header
from controller.model.mutable_state import MutableState

THE_CLUSTER: Final = "the cluster"

# An occurrence on 100,000 partitions has some 400 names a bucket: adding one copies little and compares little.
_BUCKETS: Final = 256


def note(  # noqa: PLR0913 (what an alert says)
    draft: MutableState,
    kind: AlertKind,
    cause: str,
    *,
    broker: int | None = None,
    about: str = "",
    evidence: tuple[str, ...] = (),
    times: int = 1,
) -> None:
    """Records an occurrence, of a broker if one is given, and counts it if it is a divergence.

    During a complete read divergences are counted, and only kinds about Kontrast itself are recorded.
    """
    if kind.divergence is not None:
        draft.count(f"divergences/{kind.divergence}", times)
    header = draft.header
    if header.phase is not FOLLOWING and not kind.of_replica:
        return
    subject = THE_CLUSTER if broker is None else f"broker {broker}"
    alert_id = id_of(kind, subject)
    before = header.alerts.occurrences.get(alert_id)
    named, concerned, names = (before.about, before.concerned, before.names) if before else ((), 0, {})
    bucket = crc32(about.encode("utf-8", "surrogatepass")) % _BUCKETS
    if about and about not in names.get(bucket, ()):
        named, concerned = (*named, about)[-EXAMPLES_NAMED:], concerned + 1
        names = {**names, bucket: (*names.get(bucket, ()), about)}
    seen = f"zxid {draft.record.zxid:#x}" if draft.record.zxid >= 0 else "a later read"
    at = f"{seen}, record {draft.record.generation}-{draft.record.seq}"
    now = Occurrence(
        kind.name,
        subject,
        broker,
        before.since_ms if before else header.time_ms,
        header.time_ms,
        (before.count if before else 0) + times,
        cause,
        named,
        (at, *evidence),
        concerned,
        names,
    )
    header.alerts.occurrences = {**header.alerts.occurrences, alert_id: now}


def forget_old(header: Header) -> None:
    """Removes occurrences older than their kind lasts."""
    occurrences = header.alerts.occurrences
    over = [
        alert_id
        for alert_id, occurrence in occurrences.items()
        if header.time_ms - occurrence.last_ms > ALERT_KINDS[occurrence.kind].lasts_ms
    ]
    if over:
        header.alerts.occurrences = {key: value for key, value in occurrences.items() if key not in over}


def id_of(kind: AlertKind, subject: str) -> str:
    """Id of an alert of this kind on this subject."""
    return kind.name if subject == THE_CLUSTER else f"{kind.name}/{subject}"
