"""Rows whose problem is another one than follows from their states alone: the job knew more."""

from __future__ import annotations

import msgspec
from questions.from_rows import picture_of_rows

from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow
from controller.derived.stored_context import new_context
from questions.whatif.hypothetical_cluster import HypotheticalCluster
from tests.controller.znode_history import ZnodeHistory


def test_a_cluster_can_be_played_on_where_rows_name_another_problem():
    topics = {"t": {0: ([1, 2], 1, 4, [1, 2]), 1: ([2, 1], 2, 4, [2, 1])}}
    history = ZnodeHistory().start(1, 2, topics=topics)
    history.broker_leaves(2)
    rows = [row for row in history.effects if isinstance(row, BrokerRow | ControllerRow | PartitionRow)]
    newest = {row.subject_key(): row for row in rows}
    given = [
        msgspec.structs.replace(row, problem="leaderless")
        if isinstance(row, PartitionRow) and row.partition == 1
        else row
        for row in newest.values()
    ]
    picture = picture_of_rows(new_context("c", 8), given, (), (), history.now_ms)
    cluster = HypotheticalCluster(picture.context)
    cluster.restore((2,))
    assert cluster.context.header.tally.issues == {}
