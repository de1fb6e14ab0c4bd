"""Reasons why a picture of a cluster may be incomplete or old, judged here for all commands and pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS, JobRow
from controller.says.alert_kinds import kinds
from controller.view.types import FOLLOWING
from questions.picture import Picture, Present
from wording.sentences import capital, counted, event_of, first_sentence, joined
from wording.times import duration

_NAMED_PATHS: Final = 3
STALE: Final = "ReplicaStale"  # no row can report this alert, because it means that rows are missing
STATUS_STEP: Final = "Run `kontrast status`"
_REBUILD: Final = "`kontrast stream --rebuild`"

BLINDING: Final = {
    kinds.REPLICA_DISCONNECTED.name: "Kontrast has lost ZooKeeper",
    kinds.ZOOKEEPER_NO_ENSEMBLE.name: "the named ZooKeeper servers are not one ensemble",
    kinds.REPLICA_LACKS_RECORDS.name: "records were lost between `kontrast watch` and `kontrast stream`",
    kinds.CLUSTER_QUARANTINED.name: "Kontrast failed over records of this cluster",
}
"""Alerts that hide the state of a cluster, and the reason in words."""


class Blindness(msgspec.Struct, frozen=True):
    """Reason why a picture may not be current, with its start and the step that a person can take."""

    reason: str
    since_ms: int | None
    step: str


_WITHOUT_COMPLETE_READ: Final = Blindness("changes were lost without a complete read since", None, STATUS_STEP)


def silent_process(job: JobRow | None, heard_ms: int, now_ms: int, stale_after_ms: int) -> str:
    """Return the process that stopped after the heartbeat of `heard_ms`, or an empty text if it may be either one.

    A job without a record to read writes its row each ten seconds. So a row that is newer than the heartbeat shows that
    the job waits for the watcher.
    """
    if job is None:
        return ""
    if now_ms - job.time_ms > stale_after_ms:
        return "kontrast stream"
    return "kontrast watch" if job.time_ms - heard_ms > CLOCKS_AGREE_WITHIN_MS else ""


def check_of(silent: str) -> str:
    """Return the step after silence, which names the silent process if it is known."""
    runs = f"`{silent}` runs" if silent else "`kontrast watch` and `kontrast stream` run"
    return f"check whether {runs}, and read the log"


def silence(heard_ms: int, present: Present | None) -> Blindness | None:
    """Return the blindness if the newest heartbeat is older than the setting allows."""
    if present is None or not present.is_stale(heard_ms):
        return None
    silent = f"`{present.silent}` is silent" if present.silent else "`kontrast watch` or `kontrast stream` has stopped"
    return Blindness(silent, heard_ms, capital(check_of(present.silent)))


def hidden_by(alerts: Iterable[AlertRow]) -> Blindness | None:
    """Return the blindness by an open alert that hides the cluster, if there is one."""
    found = {row.alert: row for row in alerts if row.state == "open"}
    row = next((row for alert, row in found.items() if alert in BLINDING), None)
    if row is None:
        return None
    cause = found.get(kinds.ZOOKEEPER_NO_QUORUM.name)  # of which the lost session is a consequence
    reason = BLINDING[row.alert] if cause is None else event_of(cause.cause)
    return Blindness(reason, row.since_ms, capital(first_sentence((cause or row).action)))


def blindness(picture: Picture) -> Blindness | None:
    """Return why the state of the cluster is not known, or None. The reason overrides all facts of the picture."""
    return (
        silence(picture.as_of_ms, picture.present)
        or hidden_by(picture.alerts)
        or (Blindness(rows_lost(picture.lacking), None, f"Run {_REBUILD}") if picture.lacking else None)
        or (None if picture.header.phase is FOLLOWING else _WITHOUT_COMPLETE_READ)
    )


def doubts(picture: Picture) -> tuple[str, ...]:
    """Return each reason to doubt the picture in a sentence."""
    return doubts_beside(picture, blindness(picture))


def doubts_beside(picture: Picture, blind: Blindness | None) -> tuple[str, ...]:
    """Return each reason to doubt the picture, for a caller that already has its blindness."""
    present, found = picture.present, []
    if blind is not None:
        old = present is not None and present.is_stale(picture.as_of_ms)
        heard = "" if not old or present is None else f", last known {duration(present.now_ms - picture.as_of_ms)} ago"
        found.append(f"the state is not known{heard}: {blind.reason} (see `kontrast status`)")
    if picture.forbidden:
        hidden = sorted(picture.forbidden)
        named = joined(hidden, most=_NAMED_PATHS)
        found.append(f"Kontrast may not read {counted(len(hidden), 'znode')}, nor the children: {named}")
    return tuple(found)


def rows_lost(outputs: Sequence[str]) -> str:
    """Return the clause about outputs that lost rows which the job has not written again."""
    return f"rows of {joined(outputs)} were lost, write them again with {_REBUILD}"
