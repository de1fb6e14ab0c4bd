"""Alert that ZooKeeper lost confirmed changes, because it was restored from a backup, or lost its data.

Records are ordered by generation and number, so the complete read that follows replaces everything by the older data.
"""

from __future__ import annotations

from controller.alerts import occurrences
from controller.contract.alert_kinds import kinds
from controller.contract.ids import Zxid
from controller.model.mutable_state import MutableState


def note(state: MutableState, lost_zxid: Zxid) -> None:
    """Note that ZooKeeper lost the change with this zxid (-1: no change), and forget the term with its older zxids."""
    if lost_zxid < 0:
        return
    header, zxid = state.header, state.record.zxid
    header.forget_zxids_after(zxid)
    cause = (
        f"ZooKeeper came back with older data, at zxid {zxid:#x} after {lost_zxid:#x}: topics, leaders and epochs "
        "may be old. Brokers may stay disconnected until they are restarted"
    )
    occurrences.note(state, kinds.ZOOKEEPER_ROLLED_BACK, cause)
