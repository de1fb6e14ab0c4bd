"""The forwarder's newest description of the ZooKeeper ensemble, sessions that expired after a pause, and lost changes.

Records are ordered by generation and number, so after a rollback the next complete read replaces everything.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.forwarder_status import Ensemble
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.model.mutable_state import MutableState
from controller.model.watch_state import EnsembleState, Pace
from controller.says.alert_kinds import kinds
from controller.view.ensemble import ZXID_COUNTER
from wording.sentences import counted, listed, plural
from wording.times import duration

# The sessions of brokers expire after 6 to 18 s by default. A longer silence is no pause.
_LONGEST_PAUSE_MS: Final = 60_000
_PAUSED_ANSWER_MS: Final = 1_000


def note(state: MutableState, described: Ensemble | None) -> None:
    """Take over a description. Heartbeats between two rounds have none."""
    if described is None:
        return
    header = state.header
    before, now_ms = header.ensemble, header.time_ms
    newest = replace(described, asked_ms=now_ms)
    zxid = max(header.zxid, *(server.zxid for server in newest.servers), UNKNOWN_ZXID)  # there may be no server
    sizes = {znode.path: znode.size_bytes for znode in newest.large_znodes}
    header.ensemble = EnsembleState(
        newest=newest,
        leader_zxid_before=UNKNOWN_ZXID if before.newest.leader is None else before.newest.leader.zxid,
        zxid=zxid,
        zxid_pace=before.zxid_pace.followed_by(zxid & ZXID_COUNTER, now_ms)
        if before.zxid >> 32 == zxid >> 32
        else Pace(now_ms, zxid & ZXID_COUNTER),
        znode_paces={
            path: before.znode_paces.get(path, Pace(now_ms, size)).followed_by(size, now_ms)
            for path, size in sizes.items()
        },
    )
    _note_expiries(state, before.newest, newest)


def _note_expiries(state: MutableState, before: Ensemble, newest: Ensemble) -> None:
    departures = state.header.departures.last
    lost = sorted(
        broker for broker, left in departures.items() if not left.in_order and left.time_ms >= before.asked_ms
    )
    pause = _pause(before, newest)
    if not (before.asked_ms and lost and pause):
        return
    counts = {server.address: server.expired_sessions for server in before.servers}
    expired = sum(
        max(0, server.expired_sessions - counts[server.address])
        for server in newest.servers
        if counts.get(server.address, -1) >= 0
    )
    occurrences.note(
        state,
        kinds.SESSIONS_EXPIRED,
        f"{listed(lost)} lost {plural(len(lost), 'its registration', 'their registrations')} after ZooKeeper paused, "
        f"so the controller elects other leaders. {pause}",
        evidence=(f"{counted(expired, 'session')} expired in that time",) if expired else (),
    )


def _pause(before: Ensemble, newest: Ensemble) -> str:
    """Return the sentence of a server that paused in this round or the round before, empty if none did."""
    for server in (*newest.servers, *before.servers):
        if 0 <= server.silent_ms <= _LONGEST_PAUSE_MS:
            return f"{server.address} {server.trouble}"
        if server.answer_ms >= _PAUSED_ANSWER_MS:
            return f"{server.address} answered after {duration(server.answer_ms)}"
    return ""


def note_rollback(state: MutableState, lost_zxid: Zxid) -> None:
    """Note that ZooKeeper lost the change with this zxid (-1: no change), and forget the term, whose zxids are void."""
    if lost_zxid < 0:
        return
    header, zxid = state.header, state.record.zxid
    header.forget_zxids_after(zxid)
    cause = (
        f"ZooKeeper came back with older data, at zxid {zxid:#x} after {lost_zxid:#x}: topics, leaders and epochs "
        "may be old. Brokers may stay disconnected until they are restarted"
    )
    occurrences.note(state, kinds.ZOOKEEPER_ROLLED_BACK, cause)
