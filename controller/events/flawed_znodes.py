"""Znodes that Kafka cannot read, with a row and an alert about each, remembered until they are mended.

Settings that some release cannot parse are kept until their znode changes, because the cluster's release decides later
whether a broker fails at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.consequences import consequence_of
from controller.contract.effect_rows import RefusedRow
from controller.contract.flaw import Flaw, FoundFlaw
from controller.contract.ids import TopicPartition
from controller.contract.records import Record
from controller.contract.znode_table import Place, locate
from controller.contract.znodes import ZnodeError
from controller.model.context import Header
from controller.rules.setting_values import beyond_another, may_be_refused
from controller.says.alert_kinds import kinds
from controller.transaction.transaction import Transaction

# A controller fails at the first flawed znode, so more are of no use. A broken tool may write very many.
_REMEMBERED: Final = 100


def refuse(tx: Transaction, record: Record, error: ZnodeError) -> None:
    """Publish a znode that cannot be read, with the consequence in Kafka. Its last good value stays in force."""
    header, path = tx.header, record.path
    if len(header.flawed) < _REMEMBERED:
        header.flawed = {**header.flawed, path: error.flaw}
    where = locate(path)
    tp = TopicPartition(where.name, where.partition)
    partition = tx.state.partition(tp) if where.place is Place.PARTITION_STATE else None
    if partition is not None and partition.zk_state is None:
        tx.state.put_partition(tp, replace(partition, unreadable=True))
    consequence = consequence_of(path, error.flaw, header.profile.release)
    after, why = "Kontrast keeps its last good value", str(error).replace(": ", ", ")  # a colon ends the event
    if consequence is not None:
        after = f"{consequence.effect}. {consequence.mend.removesuffix('.')}"
    tx.state.happened.refused += 1
    occurrences.note(tx.state, kinds.ZNODE_REFUSED, f"{path} cannot be read ({why}): {after}", about=path)
    tx.rows.effects.append(
        RefusedRow(*tx.rows.stamp(), path=path, reason=str(error), data=record.data, data_base64=record.data_base64)
    )


def forget(header: Header, path: str) -> None:
    """Forget the flaw of a znode that is mended or gone."""
    if path in header.flawed:
        header.flawed = {other: flaw for other, flaw in header.flawed.items() if other != path}


def identified(header: Header, cluster_id: str) -> None:
    """Take over the cluster's id. Raise ZnodeError for another one than before, because the brokers keep theirs."""
    if header.cluster_id not in ("", cluster_id):
        raise ZnodeError(f"{cluster_id} after {header.cluster_id}", Flaw.REPLACED)
    header.cluster_id = cluster_id


def lost(header: Header, path: str) -> None:
    """Note that a znode is gone without which brokers do not start, or refuse the next controller."""
    header.flawed = {**header.flawed, path: Flaw.ABSENT}


def note_besides(header: Header, flaws: Mapping[str, FoundFlaw] | None) -> None:
    """Take over the flaws that a reader found beside the records, if it looked."""
    if flaws is not None:
        header.besides = dict(flaws)


def note_unparsable(header: Header, path: str, settings: Mapping[str, str]) -> None:
    """Note the settings of a znode, none if it is removed."""
    is_topic = path.startswith("/config/topics/")
    compared = beyond_another(settings) if is_topic else frozenset()
    found = {
        name: text
        for name, text in settings.items()
        if name in compared or may_be_refused(name, text, is_topic=is_topic)
    }
    noted = header.configuration.unparsable
    if found or path in noted:
        others = {at: kept for at, kept in noted.items() if at != path}
        header.configuration.unparsable = {**others, path: found} if found else others
