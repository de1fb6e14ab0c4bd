"""What happened at a moment and is told of for a while: divergences, elections that lost records, brokers that bounced.

Here belongs how such things are remembered, those of one kind and subject together. What kinds there are is said in
`alert_kinds`.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from controller.alerts.kinds import ALERT_KINDS, AlertKind
from controller.model.alert_state import EXAMPLES_NAMED, Occurrence
from controller.model.context import FOLLOWING, Header
from controller.model.mutable_state import MutableState

THE_CLUSTER: Final = "the cluster"

# What happened to 100,000 partitions is some 400 names a bucket: adding one copies little and compares little.
_BUCKETS: Final = 256


def note(  # noqa: PLR0913 (what an alert tells)
    draft: MutableState,
    kind: AlertKind,
    cause: str,
    *,
    broker: int | None = None,
    about: str = "",
    evidence: tuple[str, ...] = (),
    times: int = 1,
) -> None:
    """Remember that this happened, to a broker if one is given; a divergence is counted too.

    Of a complete read nothing else is said.
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
    """Let go of what happened too long ago to be told of."""
    occurrences = header.alerts.occurrences
    over = [
        alert_id
        for alert_id, happening in occurrences.items()
        if header.time_ms - happening.last_ms > ALERT_KINDS[happening.kind].lasts_ms
    ]
    if over:
        header.alerts.occurrences = {key: value for key, value in occurrences.items() if key not in over}


def id_of(kind: AlertKind, subject: str) -> str:
    """The id of an alert of this kind: of the cluster, or of something in it."""
    return kind.name if subject == THE_CLUSTER else f"{kind.name}/{subject}"
