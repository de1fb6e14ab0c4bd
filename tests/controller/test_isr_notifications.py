"""UpdateMetadata that follows an ISR notification of leaders, up to 2.6."""

import pytest

from controller.contract.effect_rows import Request, Status
from tests.controller.znode_history import ZnodeHistory

PATH = "/isr_change_notification/isr_change_{:010}"


def a_cluster(release, partitions=1):
    topic = {number: ([1, 2, 3], 1, 0, [1, 2, 3]) for number in range(partitions)}
    return ZnodeHistory(release=release).start(1, 2, 3, controller=3, topics={"t": topic})


def notify(history, number, *partitions):
    entries = [{"topic": "t", "partition": partition} for partition in partitions]
    return history.write(PATH.format(number), {"version": 1, "partitions": entries})


def told(effects):
    """Return the number of partitions in each final request."""
    requests = [row for row in effects if isinstance(row, Request)]
    assert {row.api for row in requests} <= {"UpdateMetadata"}
    return [len(row.partition_states) for row in requests if row.status is Status.FINAL]


@pytest.mark.parametrize("release", [(0, 10), (1, 1), (2, 4), (2, 6)])
def test_brokers_hear_of_an_isr_change_when_its_notification_goes(release):
    history = a_cluster(release)
    assert history.requests(history.state("t", 0, 1, 0, [1, 2])) == []
    assert history.requests(notify(history, 1, 0)) == []
    assert history.requests(history.delete(PATH.format(1))) == [
        "final UpdateMetadata to 1,2,3: t-0 leader=1 epoch=0 isr=[1, 2]"
    ]


@pytest.mark.parametrize("release", [(2, 7), (3, 9)])
def test_from_2_7_on_brokers_hear_of_it_at_once(release):
    history = a_cluster(release)
    assert history.requests(history.state("t", 0, 1, 0, [1, 2])) == [
        "final UpdateMetadata to 1,2,3: t-0 leader=1 epoch=0 isr=[1, 2]"
    ]


def test_notifications_that_waited_are_read_at_once():
    history = a_cluster((1, 1), partitions=2)
    notify(history, 1, 0)
    notify(history, 2, 1, 0)
    history.heartbeat(600)
    notify(history, 3, 1)
    assert told(history.delete(PATH.format(1))) == [2]
    assert told(history.delete(PATH.format(2))) == []
    assert told(history.delete(PATH.format(3))) == [1]


def test_a_notification_of_unknown_partitions_or_without_a_controller_sends_nothing():
    history = a_cluster((1, 1))
    notify(history, 1, 7)
    assert history.requests(history.delete(PATH.format(1))) == []
    notify(history, 2, 0)
    history.delete("/controller")
    assert history.requests(history.delete(PATH.format(2))) == []


def test_a_notification_of_very_many_partitions_is_sent_too():
    history = a_cluster((1, 1), partitions=150)
    notify(history, 1, *range(150))
    assert told(history.delete(PATH.format(1))) == [150]


def test_brokers_hear_the_topics_id_with_an_isr_change():
    history = a_cluster((3, 9))
    history.topic("t", {0: [1, 2, 3]}, topic_id="b2xkLW9sZC1vbGQtb2xkLQ")
    (request,) = [row for row in history.state("t", 0, 1, 0, [1, 2]) if isinstance(row, Request)]
    assert request.topic_ids == {"t": "b2xkLW9sZC1vbGQtb2xkLQ"}
