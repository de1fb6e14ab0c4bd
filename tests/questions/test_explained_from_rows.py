"""A broker and the controller explained from the outputs' rows: what these do not have is not said."""

from __future__ import annotations

import pytest
from questions.from_rows import MetadataRow, picture_of_rows

from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow
from controller.derived.stored_context import new_context
from questions.explain.broker import explain_broker, held_in_rows, hosted_by
from questions.explain.controller import explain_controller
from questions.explain.explanation import Explanation
from questions.picture import Origin, Picture
from tests.controller.znode_history import ZnodeHistory
from tests.rows import Rows


@pytest.fixture
def history() -> ZnodeHistory:
    """Broker 3 is gone; a topic has no state yet in part, moves a replica in part, and another is being deleted."""
    topics = {
        "t": {0: ([1, 2], 1, 4, [1, 2]), 1: ([3, 2], 3, 4, [3]), 2: ([2, 3], 2, 4, [2, 3]), 3: ([1, 2], 2, 4, [2])},
        "gone": {0: ([1, 2], 1, 4, [1])},
    }
    history = ZnodeHistory().start(1, 2, 3, topics=topics)
    history.write("/admin/delete_topics/gone")
    history.broker_leaves(3)
    history.write("/brokers/topics/young", {"version": 2, "partitions": {"0": [2, 1]}})
    return history


def rows_of(history: ZnodeHistory) -> list[MetadataRow]:
    rows = (row for row in history.effects if isinstance(row, BrokerRow | ControllerRow | PartitionRow))
    return list({row.subject_key(): row for row in rows}.values())


def said(explanation: Explanation) -> dict[str, str]:
    return {statement.about: statement.says for statement in explanation.statements}


def picture(metadata, alerts=()) -> Picture:
    return picture_of_rows(new_context("c", 8), metadata, alerts, (), 1_000)


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_broker_has_the_same_counts_from_rows_alone_as_from_the_znodes(history, broker):
    by_znodes = said(explain_broker(Picture(origin=Origin.HISTORY, context=history.context), broker))
    rows = rows_of(history)
    registered = [row.broker for row in rows if isinstance(row, BrokerRow) and row.registered]
    hosted = hosted_by(broker, registered, held_in_rows(row for row in rows if isinstance(row, PartitionRow)))
    without_partitions = [row for row in rows if not isinstance(row, PartitionRow)]
    for explained in (
        explain_broker(picture(rows), broker),
        explain_broker(picture(without_partitions), broker, hosted),
    ):
        by_rows = said(explained)
        for about in ("partitions", "out of sync", "alone", "controller"):
            assert by_rows.get(about) == by_znodes.get(about), about
    assert said(explain_broker(picture(rows), 2))["out of sync"] == "in 1 partition that it hosts"


def test_sessions_and_releases_which_no_row_has_are_not_said(history):
    rows = rows_of(history)
    assert "session" in said(explain_broker(Picture(origin=Origin.HISTORY, context=history.context), 1))["registered"]
    assert "session" not in said(explain_broker(picture(rows), 1))["registered"]
    explained = said(explain_controller(picture(rows)))
    assert not {"session", "release"} & explained.keys()


@pytest.mark.parametrize(
    ("pending", "next_step"),
    [(2, "2 writes due that ZooKeeper does not show yet"), (0, "nothing: ZooKeeper has every write that it must do")],
)
def test_what_is_due_is_as_given_where_there_are_no_partitions_to_count(pending, next_step):
    explained = explain_controller(picture([Rows().controller(1), Rows().broker(1)]), pending)
    assert (explained.is_well, said(explained)["next"]) == (True, next_step)


def test_a_controller_that_an_alert_says_does_not_act_is_not_called_active():
    rows = Rows()
    ghost = rows.alert("ghost", alert="GhostController", group="controller", cause="no broker acts as controller")
    explained = explain_controller(picture([rows.controller(1), rows.broker(1)], [ghost]))
    assert not explained.is_well
    assert explained.headline == "/controller names broker 1 in epoch 7, but no broker acts as controller"


def test_a_kraft_controller_is_one_in_rows_too():
    explained = explain_controller(picture([Rows().controller(3001, kraft_epoch=4), Rows().broker(1)], ()))
    assert explained.is_well
    assert explained.headline.startswith("KRaft controller 3001 owns /controller, KRaft epoch 4")
