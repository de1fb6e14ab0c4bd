"""Znodes that Kafka cannot read: the flaw, its consequence, and what every answer says of it."""

import pytest

from controller.contract.consequences import consequence_of, flaw_of
from controller.contract.kafka_json import NoJsonError, value_in
from controller.contract.znodes import Flaw
from controller.says.alert_kinds import kinds
from controller.view.flawed_znodes import flawed_znodes, no_controller_because, stopping_starts, why_no_controller
from tests.controller.znode_history import ZnodeHistory

TOPIC = "/brokers/topics/t"


def a_cluster(release: tuple[int, int] = (3, 9)) -> ZnodeHistory:
    return ZnodeHistory(release=release).start(1, 2, controller=1, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be", "utf-16-le", "utf-32-be", "utf-32-le"])
def test_the_zeros_of_the_first_character_show_the_encoding(encoding):
    assert value_in('{"version":1}'.encode(encoding)) == {"version": 1}


def test_a_number_that_is_too_long_is_no_json():
    for number in ("1" * 1_001, f"1.{'1' * 1_001}"):
        with pytest.raises(NoJsonError):
            value_in(f'{{"version":{number}}}'.encode())


@pytest.mark.parametrize(
    ("path", "content", "flaw"),
    [
        (TOPIC, b"", Flaw.EMPTY),
        (TOPIC, b'{"version":1,"partitions":{"0":[1]}}', None),
        ("/config/topics/t", b"", None),
        ("/config/topics/t", b"{", Flaw.UNPARSABLE),
        ("/controller_epoch", b"x", Flaw.NO_DIGITS),
        ("/controller_epoch", b"0", None),
        ("/controller_epoch", b"-1", Flaw.NO_EPOCH),
        ("/elsewhere", b"{", None),
    ],
)
def test_the_flaw_in_a_content_is_that_of_its_place(path, content, flaw):
    assert flaw_of(path, content) is flaw


def test_a_flaw_without_a_consequence_is_told_of_nowhere():
    history = a_cluster((2, 6))
    history.write("/feature", b"")
    assert history.context.header.flawed == {"/feature": Flaw.EMPTY}
    assert consequence_of("/feature", Flaw.EMPTY, (2, 6)) is None
    assert list(flawed_znodes(history.context.header)) == []
    assert why_no_controller(history.context.header) == ""
    history.delete("/feature")
    assert history.context.header.flawed == {}


def test_a_znode_at_which_every_controller_fails_is_named_by_the_alerts():
    history = a_cluster()
    history.write("/feature", b"{")
    flawed = no_controller_because(history.context.header)
    assert flawed is not None
    assert flawed.is_deadly
    assert flawed.sentence == (
        "/feature is not JSON: every broker that becomes controller fails at it and gives up, so no controller stays"
    )
    assert list(stopping_starts(history.context.header)) == []
    for epoch in range(2, 8):
        history.delete("/controller")
        history.controller(1, epoch)
    history.heartbeat()
    causes = {alert.kind: alert.cause for alert in history.context.header.alerts.open.values()}
    assert causes[kinds.CONTROLLER_FLAPPING.name].endswith(". /feature cannot be read (not JSON)")


@pytest.mark.parametrize(
    ("release", "because"), [((2, 6), ""), ((3, 9), ", because /feature cannot be read (not JSON)")], ids=["2.6", "3.9"]
)
def test_a_missing_controller_has_the_flawed_znode_as_its_cause_or_none(release, because):
    history = a_cluster(release)
    history.write("/feature", b"{")  # which only controllers from 2.7 on read
    history.delete("/controller")
    history.heartbeat(11_000)
    (missing,) = (row for row in history.open_alerts().values() if row.alert == "NoController")
    assert missing.cause.startswith(f"no broker is controller{because}: partitions of dead brokers get no new leader")


def test_a_hundred_flawed_znodes_are_remembered():
    history = a_cluster()
    for number in range(101):
        history.write(f"/brokers/topics/t{number}", b"")
    assert len(history.context.header.flawed) == 100
    history.write("/brokers/topics/t0", {"version": 1, "partitions": {}})
    assert len(history.context.header.flawed) == 99


def test_followers_of_one_leader_that_lag_together_point_at_the_leader():
    topics = {"t": {number: ([3, 1, 2], 3, 0, [3, 1, 2]) for number in range(2)}}
    topics |= {"u": {number: ([leader, 3], leader, 0, [leader, 3]) for number, leader in enumerate((1, 2))}}
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, controller=1, topics=topics)
    for number in range(2):
        history.state("t", number, 3, 0, [3])
    history.heartbeat(60_000)
    history.heartbeat(600_000)
    lags = next(alert for alert in history.open_alerts().values() if alert.alert == kinds.UNDER_REPLICATED.name)
    assert lags.cause.startswith("broker 3 leads all ")
    assert " partitions that lack brokers 1 and 2, which are in sync elsewhere: " in lags.cause
    assert lags.action.startswith("Look at the connections, disks and log of broker 3 first")
