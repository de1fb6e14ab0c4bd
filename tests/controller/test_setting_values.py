"""Kafka's parsing of settings, by release, and the alert on those that end a broker's start."""

from __future__ import annotations

import pytest

from controller.alerts.topic_conditions import conditions_of_settings
from controller.restore.stored_context import new_context
from controller.rules.releases import profile_of
from controller.rules.setting_values import (
    ignored_broker_setting,
    may_be_refused,
    refused_topic_setting,
    stops_its_broker,
)
from controller.view.unparsable import ignored_by_brokers
from tests.controller.znode_history import ZnodeHistory

NEWEST = ((3, 9), (3, 9))
OLD = ((1, 1), (2, 1))
FOLLOWERS = "follower.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("preallocate", ["true", " FALSE "], ["yes", ""]),
        ("min.insync.replicas", ["1", "+2", " 3 "], ["0", "x", "", "2147483648", "1.0"]),
        ("retention.ms", ["-1", "9223372036854775807"], ["-2", "9223372036854775808"]),
        ("retention.bytes", ["-5", "0"], ["1 GB"]),
        ("min.cleanable.dirty.ratio", ["0", "1.0", ".5", "5e-1d", "NaN"], ["1.1", "-0.1", "half", "Infinity"]),
        ("cleanup.policy", ["compact", "delete , compact", ""], ["compacted", "compact,"]),
        ("message.timestamp.type", ["CreateTime"], ["createtime", "CreateTimes", ""]),
        ("message.format.version", ["2.8-IV1", "2.8", "0.10.2.1", "3.0-IV1.1"], ["5.0", "2.8-IV9", "", "0.10"]),
        (FOLLOWERS, ["*", "0:1, 2:3", "", "0:1,"], ["0:-1", "0", "*,0:1", "0:99999999999"]),
        ("compression.gzip.level", ["1", "9", "-1"], ["0", "10", "-2"]),
        ("no.such.setting", ["anything"], []),
    ],
)
def test_a_setting_is_parsed_as_kafka_parses_it(name, accepted, refused):
    assert {text: refused_topic_setting(name, text, NEWEST) for text in accepted} == dict.fromkeys(accepted)
    assert [text for text in refused if refused_topic_setting(name, text, NEWEST) is None] == []
    assert all(may_be_refused(name, text, is_topic=True) for text in refused)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("preallocate", "yes", "true or false"),
        ("min.insync.replicas", "0", "a whole number from 1"),
        ("retention.bytes", "1 GB", "a whole number"),
        ("min.cleanable.dirty.ratio", "2", "a number from 0 to 1"),
        ("cleanup.policy", "none", "a list of compact, delete"),
        ("message.timestamp.type", "x", "one of CreateTime, LogAppendTime"),
        ("message.format.version", "x", "a version up to 4.0-IV1"),
        (FOLLOWERS, "x", "* or a list of PARTITION:BROKER"),
        ("compression.gzip.level", "0", "a whole number from 1 to 9, or -1"),
    ],
)
def test_a_refusal_names_the_expectation(name, text, expected):
    assert refused_topic_setting(name, text, NEWEST) == expected


def test_a_setting_is_refused_only_if_every_possible_release_refuses_it():
    assert refused_topic_setting("compression.type", "zstd", ((1, 1), (2, 0)))
    assert refused_topic_setting("compression.type", "zstd", ((1, 1), (2, 2))) is None
    assert refused_topic_setting("segment.ms", "0", ((1, 1), (1, 1))) is None
    assert refused_topic_setting("segment.ms", "0", ((2, 1), (2, 1))), "2.1 is like 2.0"
    assert refused_topic_setting("max.compaction.lag.ms", "x", OLD) is None, "no broker knows it"


@pytest.mark.parametrize(
    ("kept", "allowed", "is_refused"),
    [
        ("5", "5", False),
        ("5", "4", True),
        ("5", "-1", True),  # which is no limit, but counts as a number
        ("-1", "5", True),
        ("-1", "-1", False),
        ("-2", "-5", False),
    ],
)
def test_a_retention_is_compared_with_the_local_one_from_3_0_to_3_5(kept, allowed, is_refused):
    settings = {"local.retention.bytes": kept, "retention.bytes": allowed}
    told = {release: causes(history(release, t=settings)) for release in [(2, 8), (3, 0), (3, 5), (3, 6), (3, 9)]}
    refused = {
        "topics' settings": "every broker fails at its next start: it cannot parse "
        f"local.retention.bytes={kept} of topic t (Kafka expects -2 with retention.bytes={allowed})"
    }
    assert told == {release: refused if is_refused and (3, 0) <= release <= (3, 5) else {} for release in told}


def test_a_retention_that_the_brokers_set_is_not_known():
    assert causes(history((3, 5), t={"local.retention.ms": "-1"})) == {}


def test_settings_of_brokers_are_left_out_but_a_rate_may_end_the_start():
    assert ignored_broker_setting("background.threads", "many", NEWEST) == "a whole number from 1"
    assert ignored_broker_setting("listeners", "anything", NEWEST) is None
    assert stops_its_broker(RATE, "fast", OLD)
    assert not stops_its_broker(RATE, "-1", OLD), "a number is parsed before its range is checked"
    assert not stops_its_broker(RATE, "fast", NEWEST)
    assert not stops_its_broker("background.threads", "many", OLD)


def history(release: tuple[int, int], **settings: dict[str, str]) -> ZnodeHistory:
    """Return a cluster with these settings of topics, and of the brokers in `b1`, `b_default`."""
    told = ZnodeHistory(release=release)
    told.start(1, 2, controller=1, topics={"t": {0: ([1, 2], 1, 7, [1, 2])}})
    for name, config in settings.items():
        path = {"b1": "/config/brokers/1", "b_default": "/config/brokers/<default>"}.get(name, f"/config/topics/{name}")
        told.write(path, {"version": 1, "config": config})
    return told


def causes(told: ZnodeHistory) -> dict[str, str]:
    header = told.context.header
    exists = lambda name: name == "t"  # noqa: E731
    return {condition.subject: condition.cause for condition in conditions_of_settings(header, exists)}


def test_every_broker_fails_at_a_setting_of_a_topic():
    told = history(
        (3, 9), t={FOLLOWERS: "0:-1", "cleanup.policy": "compacted", "preallocate": "x", "retention.ms": "7"}
    )
    assert causes(told) == {
        "topics' settings": "every broker fails at its next start: it cannot parse cleanup.policy=compacted of topic t "
        "(Kafka expects a list of compact, delete) and 2 more settings"
    }


def test_settings_without_a_topic_matter_to_3_9_only():
    told = history((2, 8), gone={"preallocate": "x"})
    assert causes(told) == {}
    told.heartbeat()
    assert not [alert for alert in told.open_alerts().values() if alert.alert == "StartWillFail"]
    assert list(causes(history((3, 9), gone={"preallocate": "x"}))) == ["topics' settings"]


def test_a_broker_fails_at_its_own_rate_and_leaves_out_the_rest():
    told = history((2, 8), b1={RATE: "secret", "background.threads": "x"}, b_default={RATE: "x"})
    assert causes(told) == {
        "broker 1": "broker 1 fails at its next start: it cannot parse "
        "leader.replication.throttled.rate of /config/brokers/1 (Kafka expects a whole number)"
    }
    ignored = [each.sentence for each in ignored_by_brokers(told.context.header)]
    assert "background.threads of /config/brokers/1 (Kafka expects a whole number from 1)" in ignored
    assert len(ignored) == 3
    unknown_yet = history((1, 1), b1={"log.message.downconversion.enable": "x"})
    assert list(ignored_by_brokers(unknown_yet.context.header)) == []


def test_settings_are_forgotten_with_their_znode():
    told = history((3, 9), t={"preallocate": "x"})
    told.write("/config/topics/t", {"version": 1, "config": {"preallocate": "true"}})
    assert causes(told) == {}
    told.write("/config/topics/t", {"version": 1, "config": {"preallocate": "x"}})
    told.delete("/config/topics/t")
    assert causes(told) == {}


def test_the_releases_are_the_operators_or_those_of_the_znodes():
    assert new_context("c", profile=profile_of((2, 4))).header.releases == ((2, 4), (2, 4))
    assert new_context("c").header.releases == ((3, 9), (3, 9))
