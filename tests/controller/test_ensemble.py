"""Conditions of the watched ensemble, by a fixed clock."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from controller.alerts.ensemble_conditions import conditions_of_ensemble
from controller.contract.alert_row import Severity
from controller.contract.forwarder_status import Ensemble, LargeZnode, LeftSession
from controller.restore.context_of_rows import context_of_rows
from controller.restore.stored_context import new_context
from controller.view.ensemble import ensemble_in_words
from controller.view.returns import bring_back
from tests.controller.ensembles import INTERVAL_MS, described, ensemble, large, lost, one_lost
from tests.controller.znode_history import ZnodeHistory

PATIENCE = 8  # rounds, more than a minute


def cluster() -> ZnodeHistory:
    return ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 1, [1, 2])}})


def after(*rounds: Ensemble, times: int = PATIENCE, **more: Any) -> ZnodeHistory:
    history = cluster()
    for newest in rounds:
        described(history, newest, times=times, **more)
    return history


def kinds(history: ZnodeHistory) -> set[str]:
    return {row.alert for row in history.open_alerts().values()}


def of_five(*missing: int) -> Ensemble:
    """Return five voters, by `srvr` alone."""
    three = ensemble().servers
    follower = replace(three[1], synced_followers=-1, refused=("mntr", "dump"))
    all_five = (
        replace(three[0], synced_followers=-1, followers=-1),
        *(replace(follower, address=f"z{n}") for n in range(4)),
    )
    shown = tuple(replace(one, **lost()) if place in missing else one for place, one in enumerate(all_five))
    return replace(ensemble(), servers=shown, voters=5)


@pytest.mark.parametrize(
    ("newest", "opened"),
    [
        (ensemble(), set()),
        (one_lost(), {"ZooKeeperQuorumAtRisk"}),
        (of_five(), set()),
        (of_five(4), {"ZooKeeperServerLags"}),
        (of_five(3, 4), {"ZooKeeperQuorumAtRisk"}),
        # The leader counts two followers, so the third server is only hidden from Kontrast.
        (ensemble((2, {"mode": "", "trouble": "does not answer within 2 s"})), set()),
        (ensemble((2, lost())), {"ZooKeeperServerLags"}),
        # A follower that catches up serves no client yet, and the leader does not count it.
        (ensemble((0, {"synced_followers": 1})), {"ZooKeeperQuorumAtRisk"}),
        # A lost observer costs no vote.
        (ensemble((2, {**lost(), "votes": False})), set()),
        (ensemble((1, {"zxid": 3}), zxid=9), {"ZooKeeperServerLags"}),
        (ensemble((1, {"answer_ms": 1500.0})), {"ZooKeeperSlow"}),
        (ensemble((1, {"fsync_ms": 99.0, "answer_ms": 990.0, "outstanding": 99})), set()),
    ],
)
def test_what_the_servers_answer_opens_these_alerts(newest, opened):
    assert kinds(after(newest)) == opened


def test_a_server_alone_is_no_quorum_at_risk():
    alone = replace(ensemble().servers[0], mode="standalone", followers=-1, synced_followers=-1)
    history = after(replace(ensemble(), servers=(alone,), voters=1))
    assert kinds(history) == set()
    assert ensemble_in_words(history.context.header) == "zk1:2181 stands alone"


@pytest.mark.parametrize(
    ("modes", "named"),
    [
        (("standalone", "standalone"), "zk1:2181 is standalone and zk2:2181 is standalone"),
        (("standalone", ""), "zk1:2181 is standalone"),
        (("follower", "leader", "standalone"), "zk2:2181 is leader and zk3:2181 is standalone"),
        (("leader", "follower", "leader"), "zk1:2181 is leader and zk3:2181 is leader"),
    ],
)
def test_servers_that_are_no_ensemble_page(modes, named):
    servers = tuple(replace(each, mode=mode) for each, mode in zip(ensemble().servers, modes, strict=False))
    history = after(replace(ensemble(), servers=servers))
    (alert,) = (row for row in history.open_alerts().values() if row.severity is Severity.PAGE)
    said = f"the named ZooKeeper servers are not one ensemble ({named}), so "
    assert (alert.alert, alert.cause.startswith(said)) == ("ZooKeeperNoEnsemble", True)


def test_a_restart_of_a_server_opens_no_alert():
    history = after(ensemble(), times=1)
    described(history, one_lost(), times=2)
    described(history, ensemble(), times=PATIENCE)
    assert not [row for row in history.effects if getattr(row, "alert", "").startswith("ZooKeeper")]


def test_no_quorum_needs_the_forwarders_own_loss():
    none_serves = ensemble(*((place, lost()) for place in range(3)))
    assert kinds(after(none_serves, session="suspended")) == {"ZooKeeperNoQuorum", "ReplicaDisconnected"}
    assert "ZooKeeperNoQuorum" not in kinds(after(none_serves))  # its own session shows a quorum
    history = after(none_serves, session="suspended")
    (disconnected,) = (row for row in history.open_alerts().values() if row.alert == "ReplicaDisconnected")
    said = "zk1:2181 does not answer (Connection refused), and served last at "
    assert disconnected.evidence[0].startswith(said)


def test_a_lost_ensemble_and_the_lost_session_are_one_page_since_the_first_refusal():
    history = after(ensemble(), times=1)
    history.heartbeat(1_000, session="suspended")
    refused_ms = history.now_ms
    for _ in range(7):
        history.heartbeat(1_000, session="suspended")
    none_serves = ensemble(*((place, lost(18_000)) for place in range(3)))
    history.heartbeat(2_000, session="suspended", ensemble=none_serves)
    assert not history.open_alerts()  # ten seconds have not passed
    for _ in range(4):
        history.heartbeat(1_000, session="suspended")
    opened = {row.alert: row for row in history.open_alerts().values()}
    assert opened.keys() == {"ZooKeeperNoQuorum", "ReplicaDisconnected"}
    assert {row.group for row in opened.values()} == {"zookeeper"}
    assert {row.time_ms for row in opened.values()} == {opened["ZooKeeperNoQuorum"].time_ms}
    assert {row.since_ms for row in opened.values()} == {refused_ms}


def test_a_lost_session_waits_for_the_round_that_may_show_its_cause():
    history = after(ensemble(), times=1)
    for _ in range(13):
        history.heartbeat(1_000, session="suspended")
    assert not history.open_alerts()  # the next round comes after ten seconds, and its answers within five
    for _ in range(4):
        history.heartbeat(1_000, session="suspended")
    assert [row.alert for row in history.open_alerts().values()] == ["ReplicaDisconnected"]


def test_a_missing_controller_comes_with_the_state_of_zookeeper():
    history = after(one_lost(), times=1)
    history.delete("/controller")
    described(history, one_lost(), times=2)
    (missing,) = (row for row in history.open_alerts().values() if row.alert == "NoController")
    assert "zk1:2181 is leader with 1 of 2 followers in sync" in missing.evidence[-1]


def test_an_old_description_is_no_evidence():
    history = after(one_lost())
    assert ensemble_in_words(history.context.header)
    history.heartbeat(3 * INTERVAL_MS + 31_000)
    assert kinds(history) == set()
    assert ensemble_in_words(history.context.header) == ""


def test_questions_that_are_not_allowed_are_named():
    words = ensemble_in_words(after(of_five()).context.header)
    assert words == "zk1:2181 is leader with 4 of 4 followers in sync. dump and mntr are not allowed"


def test_a_context_of_rows_knows_the_ensemble():
    history = after(one_lost())
    rows = context_of_rows(new_context("c"), (), history.gauges())
    assert ensemble_in_words(rows.header) == ensemble_in_words(history.context.header)


def test_a_context_of_rows_judges_a_large_znode_without_its_former_sizes():
    history = after(large("/brokers/topics", 1_000_000))
    rows = context_of_rows(new_context("c"), (), history.gauges())
    found = {(each.kind.name, each.subject) for each in conditions_of_ensemble(rows.header)}
    assert ("ZnodeNearLimit", "znode /brokers/topics") in found


def growing(per_round: int, first: int, rounds: int = 40) -> ZnodeHistory:
    history = cluster()
    for number in range(rounds):
        described(history, large("/isr_change_notification", first + number * per_round))
    return history


@pytest.mark.parametrize(
    ("per_round", "first", "severity"),
    [
        (0, 800_000, None),  # large, and no larger
        (0, 840_000, Severity.WARN),
        (0, 1_000_000, Severity.PAGE),
        (50, 300_000, None),  # full in 41 hours
        (100, 300_000, Severity.WARN),  # full in 20 hours
        (4_000, 300_000, Severity.PAGE),  # full within an hour
        (4_000, 90_000, None),  # too small to matter
        (-4_000, 700_000, None),
    ],
)
def test_a_znode_near_its_limit_warns_or_pages_by_its_growth(per_round, first, severity):
    found = {row.severity for row in growing(per_round, first).open_alerts().values() if row.alert == "ZnodeNearLimit"}
    assert found == (set() if severity is None else {severity})


def test_growth_of_a_minute_is_no_pace():
    assert kinds(growing(10_000, 300_000, rounds=6)) == set()


def test_growth_that_stopped_is_forgotten_after_two_windows():
    history = growing(4_000, 300_000)
    described(history, large("/isr_change_notification", 456_000), times=130)
    assert kinds(history) == set()


def writing(per_round: int, first: int, rounds: int = 70) -> ZnodeHistory:
    history = cluster()
    for number in range(rounds):
        described(history, ensemble(zxid=first + number * per_round))
    return history


def test_the_counter_of_changes_is_watched_by_its_pace():
    assert kinds(writing(1_000, 4_000_000_000)) == set()  # 295 million changes at 100 a second
    assert kinds(writing(100_000, 4_000_000_000)) == {"ZxidRollover"}


def test_a_new_epoch_counts_from_zero():
    history = writing(100_000, 4_000_000_000)
    described(history, ensemble(zxid=0x1_0000_0000 + 5))
    assert kinds(history) == set()


def expired(newest: Ensemble, *, in_order: bool = False, first: Ensemble | None = None) -> ZnodeHistory:
    history = after(first or ensemble(), times=1)
    if in_order:
        history.state("t", 0, 1, 1, [1])
    history.broker_leaves(2)
    described(history, newest)
    return history


@pytest.mark.parametrize(
    "newest", [ensemble((0, {"answer_ms": 1_900.0})), ensemble((1, lost(4_000, "does not answer within 2 s")))]
)
def test_a_broker_that_leaves_after_a_pause_lost_its_session(newest):
    assert "SessionsExpiredAfterPause" in kinds(expired(newest))


def test_a_broker_that_leaves_without_a_pause_crashed():
    assert "SessionsExpiredAfterPause" not in kinds(expired(ensemble()))
    assert "SessionsExpiredAfterPause" not in kinds(expired(ensemble((1, lost(90_000)))))  # no pause, but lost long ago
    history = cluster()
    history.broker_leaves(2)
    described(history, ensemble((0, {"answer_ms": 1_900.0})))  # nothing was asked before
    assert "SessionsExpiredAfterPause" not in kinds(history)


def test_the_number_of_expired_sessions_is_evidence():
    newest = ensemble((0, {"answer_ms": 1_900.0, "expired_sessions": 4}))
    (row,) = (r for r in expired(newest).open_alerts().values() if r.alert == "SessionsExpiredAfterPause")
    assert row.evidence[-1] == "4 sessions expired in that time"


def test_a_left_session_names_owner_and_expiry():
    history = cluster()
    owner = history.sessions[2]
    described(
        history, ensemble(left_sessions=(LeftSession(2, owner, 12_400), LeftSession(1, 99, 5), LeftSession(7, 1, 5)))
    )
    (row,) = history.open_alerts().values()
    assert (row.alert, row.broker) == ("BrokerBlockedByOldSession", 2)
    assert f"its old session {owner:#x} owns /brokers/ids/2 and expires in 12 s, at " in row.cause
    described(history, ensemble(left_sessions=(LeftSession(2, owner, -1),)))
    (row,) = history.open_alerts().values()
    assert "expires after its timeout, which is unknown" in row.cause


def test_a_session_that_expires_before_a_message_can_be_sent_is_not_told():
    history = cluster()
    owner = history.sessions[2]
    described(history, ensemble(left_sessions=(LeftSession(2, owner, 3_000),)))
    assert history.open_alerts() == {}
    described(history, ensemble(left_sessions=(LeftSession(2, owner, 10_000),)))
    described(history, ensemble(left_sessions=(LeftSession(2, owner, 3_000),)))
    (row,) = history.open_alerts().values()
    assert row.alert == "BrokerBlockedByOldSession"


def test_the_row_of_gauges_keeps_the_newest_description():
    history = after(one_lost(), times=1)
    history.heartbeat()
    kept = history.gauges().ensemble
    assert replace(kept, asked_ms=0) == one_lost()
    assert history.now_ms - kept.asked_ms == 1_020


def test_a_znode_that_is_small_again_has_no_pace():
    history = growing(4_000, 300_000)
    described(history, ensemble(large_znodes=(LargeZnode("/brokers/topics", 70_000),)))
    assert set(history.context.header.ensemble.znode_paces) == {"/brokers/topics"}


@pytest.mark.parametrize(
    ("newest", "ago_ms", "hangs"),
    [
        (ensemble(), 5_000, True),
        (ensemble(), 13_000, False),  # the connection may have been lost since
        (ensemble(), 1_000, False),  # the next round would have confirmed the loss
        (ensemble((0, {"refused": ("dump",)})), 5_000, False),
        (ensemble(left_sessions=(LeftSession(2, ZnodeHistory().session_of(2), 9_000),)), 5_000, False),
        (None, 5_000, False),
    ],
)
def test_a_broker_hangs_if_its_session_expires_and_its_connection_lasts(newest, ago_ms, hangs):
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 2, 0, [2, 1])}, "one": {0: ([2], 2, 0, [2])}})
    history.heartbeat(ensemble=newest)
    history.now_ms += ago_ms
    history.broker_leaves(2)
    history.heartbeat()
    crashed = next(row for row in reversed(history.effects) if getattr(row, "alert", "") == "BrokerCrashed")
    assert crashed.action.startswith("Restart it, because it hangs" if hangs else "Look at the broker's machine")
    assert bring_back((2,), history.context.header, briefly=True) == ("restart" if hangs else "start") + " broker 2"
    assert bring_back((1,), history.context.header) == "start broker 1"
    assert ("(restart it if it hangs)" in bring_back((2,), history.context.header)) is not hangs
    assert bring_back((1, 2), history.context.header) == "start brokers 1 and 2 (restart one that hangs)"
