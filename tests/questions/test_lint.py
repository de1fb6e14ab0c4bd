"""Each check of `kontrast lint` finds its trouble, and finds nothing in a healthy cluster."""

from __future__ import annotations

import pytest

from questions.everywhere.lint import CHECKS, Lint, LintFinding
from questions.picture import Picture
from tests.questions.cluster import broker, brokers, controller, id_of, look, settings, state, topic

RACKS = {**broker(1, "a"), **broker(2, "b"), **broker(3, "c")}
WELL = {**RACKS, **controller(1), **topic("t", [1, 2], [2, 3])}
MANY = 20_000


def _gap() -> dict[str, object]:
    znodes = topic("u", [1, 2], [2, 3], [1, 3])
    del znodes["/brokers/topics/u/partitions/1/state"]
    assigned = {"0": [1, 2], "2": [1, 3]}
    return znodes | {"/brokers/topics/u": {"version": 3, "topic_id": id_of("u"), "partitions": assigned}}


FOUND = {
    "duplicate-topic-id": (
        {**topic("u", [1, 2], topic_id="id-of-tAAAAAAAAAAAAAAA")},
        "t and u (id-of-tAAAAAAAAAAAAAAA)",
    ),
    "state-of-a-later-controller": (state("t", 0, 1, [1, 2], epoch=9), "t-0 (controller epoch 9, /controller_epoch 7)"),
    "min-isr-above-replication-factor": (
        settings("t", min_insync_replicas="3"),
        "t (min.insync.replicas 3, 2 replicas)",
    ),
    "min-isr-of-all-replicas": (settings("t", min_insync_replicas="2"), "t (min.insync.replicas 2)"),
    "child-list-too-long": (
        {f"/config/topics/{'x' * 200}-{number:05}": {"version": 1, "config": {}} for number in range(MANY)}
        | settings("t"),
        "/config/topics (4200005 of 4194304 bytes)",
    ),
    "leader-or-isr-not-assigned": (state("t", 0, 3, [3, 1]), "t-0 [3]"),
    "setting-stops-start": (
        settings("t", cleanup_policy="compacted"),
        "cleanup.policy=compacted of topic t (Kafka expects a list of compact, delete)",
    ),
    "setting-without-effect": (
        {"/config/brokers/1": {"version": 1, "config": {"background.threads": "many"}}},
        "background.threads of /config/brokers/1 (Kafka expects a whole number from 1)",
    ),
    "unknown-setting": (
        settings("t", retention_msec="1"),
        "retention.msec=1 of topic t, perhaps meant as retention.ms",
    ),
    "throttle-without-reassignment": (
        settings("t", follower_replication_throttled_replicas="*"),
        "follower.replication.throttled.replicas=* of /config/topics/t",
    ),
    "internal-topic-not-compacted": (
        topic("__consumer_offsets", [1, 2]) | settings("__consumer_offsets", cleanup_policy="delete") | settings("t"),
        "__consumer_offsets (cleanup.policy=delete)",
    ),
    "internal-topic-grown": (
        topic("__transaction_state", *([1, 2] for _ in range(60))),
        "__transaction_state (60 partitions)",
    ),
    "partitions-with-a-gap": (_gap(), "u (without partition [1], of 2)"),
    "broker-without-session": (
        {"/brokers/ids/4": {"version": 5, "jmx_port": -1, "endpoints": [], "rack": "a", "persistent": True}},
        "/brokers/ids/4",
    ),
    "edited-state": (state("t", 0, 1, [2]), "t-0 (leader 1, in sync: 2)"),
    "replicas-of-unknown-brokers": (
        topic("t", [1, 2, 9], [2, 3], adding_replicas={"0": [9]}, removing_replicas={"0": []})
        | state("t", 0, 1, [1, 2]),
        "broker 9 (1 replica)",
    ),
    "replica-listed-twice": (topic("u", [1, 2, 1]) | state("u", 0, 1, [1, 2]), "u-0 [1,2,1]"),
    "leader-alone-in-its-isrs": (
        {
            **topic("u", [1, 2, 3], [1, 3, 2], [2, 3], [2, 3], [3, 2]),
            **{path: content for number in (0, 1) for path, content in state("u", number, 1, [1]).items()},
        },
        "broker 1 (2 partitions, brokers 2 and 3 out of sync)",
    ),
    "unreadable-znode": (
        {"/feature": b"{"},
        "/feature is not JSON: every broker that becomes controller fails at it and gives up, so no controller stays. "
        "Delete /feature. The next controller writes it again.",
    ),
    "znode-without-effect": (
        {"/migration": b"{"},
        "/migration is not JSON: a migration to KRaft does not begin. If no KRaft controller has copied ZooKeeper, "
        "delete /migration.",
    ),
    "unparsable-settings": ({"/config/topics/t": b"{"}, "/config/topics/t: the topic has the brokers' defaults"),
    "orphan-state": (state("gone", 4, -1, [1]), "gone-4"),
    "unloadable-topic": ({"/brokers/topics/gone": None}, "/brokers/topics/gone"),
    "leftover-reassignment-fields": (topic("t", [1, 2], [2, 3], adding_replicas={"1": [1]}), "t-1 (adding [1])"),
    "leftover-request": (
        {"/admin/reassign_partitions": {"version": 1, "partitions": []}},
        "/admin/reassign_partitions",
    ),
    "leftover-election-request": (
        {"/admin/preferred_replica_election": {"version": 1, "partitions": []}},
        "/admin/preferred_replica_election",
    ),
    "deletion-of-no-topic": ({"/admin/delete_topics/gone": {}}, "/admin/delete_topics/gone"),
    "notifications-not-read": (
        {"/isr_change_notification/isr_change_1": {"version": 1, "partitions": []}},
        "/isr_change_notification/isr_change_1",
    ),
    "dead-replicas": (topic("u", [1, 9]), "broker 9 (1 replica)"),
    "brokers-without-rack": (brokers(4), "broker 4"),
    "all-replicas-in-one-rack": ({**broker(4, "a"), **topic("u", [1, 4])}, "u-0 (rack a)"),
    "settings-of-no-topic": ({**settings("gone", retention_ms="1"), **settings("t")}, "gone"),
    "topic-without-settings": ({**settings("t", retention_ms="1"), **topic("u", [1, 2])}, "u"),
    "missing-topic-id": (topic("u", [1, 2]), "u"),
    "more-replicas-than-racks": ({**broker(4, "c"), **topic("u", [1, 2, 3, 4])}, "u (4 replicas, 3 racks)"),
    "one-replica": (topic("u", [1]), "u-0"),
    "unclean-election-enabled": (settings("t", unclean_leader_election_enable="true"), "t"),
}


def lint(picture: Picture) -> tuple[LintFinding, ...]:
    return Lint().ask(picture).findings


def without_id(znodes: dict) -> dict:
    return {
        path: {key: value for key, value in content.items() if key != "topic_id"} if path.endswith("/u") else content
        for path, content in znodes.items()
    }


def test_nothing_is_found_where_nothing_lies():
    assert lint(look(WELL)) == ()


def test_every_check_has_a_case():
    assert FOUND.keys() == {check.name for check in CHECKS}


@pytest.mark.parametrize("name", FOUND)
def test_a_check_finds_what_lies_there(name):
    znodes, example = FOUND[name]
    added = without_id(znodes) if name == "missing-topic-id" else znodes
    found = {finding.check: finding for finding in lint(look({**WELL, **added}))}
    assert found.keys() == {name}
    assert (found[name].count, found[name].examples) == (1, (example,))


def test_from_3_7_on_no_isr_has_to_be_larger_than_the_replicas():
    asked = {**WELL, **settings("t", min_insync_replicas="3")}
    assert "min-isr-above-replication-factor" not in {found.check for found in lint(look(asked, release="3.7"))}


def test_a_state_of_the_present_controller_that_no_topics_znode_names_is_an_orphan():
    (found,) = lint(look({**WELL, **state("t", 2, -1, [1, 2])}))
    assert (found.check, found.examples) == ("orphan-state", ("t-2",))


def test_what_was_asked_just_now_is_no_leftover():
    asked = {**WELL, "/admin/reassign_partitions": {"version": 1, "partitions": []}}
    assert lint(look(asked, {"/admin/reassign_partitions": 5_000})) == ()


def test_one_rack_or_none_is_nothing_to_spread_over():
    for racks in (brokers(1, 2, 3), {**broker(1, "a"), **broker(2, "a"), **broker(3, "a")}):
        assert lint(look({**WELL, **racks})) == ()


def test_the_worst_is_named_first():
    bad = {**WELL, **topic("u", [1]), **topic("v", [1, 9]), **state("t", 0, 1, [1, 2], epoch=9)}
    assert [found.severity.value for found in lint(look(bad))] == ["page", "warn", "info"]
