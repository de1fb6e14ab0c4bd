"""Occurrences, which are divergences, unclean elections, bounced brokers and other moments, until their alert resolves.

Occurrences of one kind and subject are kept as one.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from controller.contract.alert_row import Severity
from controller.contract.ids import BrokerId
from controller.model.alert_state import EXAMPLES_NAMED, Occurrence
from controller.model.context import FOLLOWING, Header
from controller.model.mutable_state import MutableState
from controller.says.alert_kinds.divergences import Disagreement
from controller.says.alert_kinds.kinds import ALERT_KINDS, CONTROLLER_DISAGREES, LOG_DIR_FAILED, AlertKind
from controller.view.partition_issues import parse_group

THE_CLUSTER: Final = "the cluster"

# An occurrence on 100,000 partitions has some 400 names a bucket, so a new name copies and compares only these.
_BUCKETS: Final = 256


def note(  # noqa: PLR0913 (the parts of an alert)
    state: MutableState,
    kind: AlertKind | Disagreement,
    cause: str,
    *,
    broker: BrokerId | None = None,
    about: str = "",
    evidence: tuple[str, ...] = (),
    times: int = 1,
) -> None:
    """Record an occurrence, of a broker if one is given, and count it if it is a divergence.

    A disagreement is the subject of its alert. During a complete read divergences are counted, and only kinds about
    Kontrast itself are recorded.
    """
    subject = THE_CLUSTER if broker is None else f"broker {broker}"
    if isinstance(kind, Disagreement):
        state.count(state.happened.divergences, kind.value, times)
        subject, kind = kind.value, CONTROLLER_DISAGREES
    elif kind.divergence is not None:
        state.count(state.happened.divergences, kind.divergence, times)
    header = state.header
    if header.phase is not FOLLOWING and not kind.of_replica:
        return
    alert_id = id_of(kind, subject)
    first = Occurrence(kind.name, subject, broker, header.time_ms, header.time_ms, 0, cause, (), ())
    before = header.alerts.occurrences.get(alert_id, first)
    seen = f"zxid {state.record.zxid:#x}" if state.record.zxid >= 0 else "a later read"
    at = f"{seen}, record {state.record.generation}-{state.record.seq}"
    now = msgspec.structs.replace(
        _with_name(before, about),
        last_ms=header.time_ms,
        count=before.count + times,
        cause=cause,
        evidence=(at, *evidence),
    )
    header.alerts.occurrences = {**header.alerts.occurrences, alert_id: now}


def _with_name(occurrence: Occurrence, about: str) -> Occurrence:
    bucket = crc32(about.encode("utf-8", "surrogatepass")) % _BUCKETS
    names = occurrence.names.get(bucket, ())
    if not about or about in names:
        return occurrence
    return msgspec.structs.replace(
        occurrence,
        about=(*occurrence.about, about)[-EXAMPLES_NAMED:],
        concerned=occurrence.concerned + 1,
        names={**occurrence.names, bucket: (*names, about)},
    )


def forget(header: Header, kind: AlertKind) -> None:
    """Remove the cluster's occurrence of this kind, which has lost its meaning."""
    occurrences = header.alerts.occurrences
    header.alerts.occurrences = {key: value for key, value in occurrences.items() if key != kind.name}


def forget_old(header: Header) -> None:
    """Remove occurrences older than their kind lasts."""
    occurrences = header.alerts.occurrences
    over = [
        alert_id
        for alert_id, occurrence in occurrences.items()
        if header.time_ms - occurrence.last_ms > ALERT_KINDS[occurrence.kind].lasts_ms or _is_mended(occurrence, header)
    ]
    if over:
        header.alerts.occurrences = {key: value for key, value in occurrences.items() if key not in over}


def _is_mended(occurrence: Occurrence, header: Header) -> bool:
    """Return whether a failed log directory needs no alert any more.

    If it pages, this is once its broker has registered again with replicas in sync. Otherwise the loss of partitions
    pages in its place, and the broker's departure goes on under another group, so the directory ends with the process.
    """
    if occurrence.kind != LOG_DIR_FAILED.name or occurrence.broker is None:
        return False
    now, told = header.brokers.get(occurrence.broker), header.alerts.open.get(id_of(LOG_DIR_FAILED, occurrence.subject))
    if now is not None and now.since_ms <= occurrence.last_ms:
        return False
    if told is None or told.severity is not Severity.PAGE:
        return True
    return now is not None and not any(occurrence.broker in parse_group(key).brokers for key in header.tally.issues)


def id_of(kind: AlertKind, subject: str) -> str:
    """Return the id of an alert of this kind on this subject."""
    return kind.name if subject == THE_CLUSTER else f"{kind.name}/{subject}"
