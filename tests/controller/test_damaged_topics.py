"""Topics whose znode lost its content or id, over writes, complete reads and terms, and the remedies for them."""

from __future__ import annotations

from controller.view.advice import harm_of_failover
from tests.controller.znode_history import ZnodeHistory
from tests.remedies.table import REMEDIES, SECTIONS

TOPIC = "/brokers/topics/t"
OLD, NEW, ANOTHER = "b2xkLW9sZC1vbGQtb2xkLQ", "bmV3LW5ldy1uZXctbmV3LQ", "YW5vdGhlci1hbm90aGVyLQ"
STATES = {"t": {0: ([1, 2], 1, 0, [1, 2])}}


def a_cluster_with_ids() -> ZnodeHistory:
    history = ZnodeHistory()
    history.start(1, 2, topics=STATES)
    history.topic("t", {0: [1, 2]}, topic_id=OLD)
    history.topic("u", {0: [1, 2]}, topic_id=ANOTHER)
    return history


def test_a_changed_id_is_kept_until_the_former_one_is_back():
    history = a_cluster_with_ids()
    history.topic("t", {0: [1, 2]})
    assert history.context.header.damaged.lost_ids == {"t": OLD}
    history.topic("t", {0: [1, 2]}, topic_id=NEW)
    history.topic("t", {0: [1, 2]}, topic_id=NEW)
    changed = history.context.header.damaged.changed_ids["t"]
    assert (changed.former, changed.present) == (OLD, NEW)
    history.topic("t", {0: [1, 2]}, topic_id=OLD)
    assert history.context.header.damaged.changed_ids == {}


def test_the_damage_ends_with_the_topic():
    history = a_cluster_with_ids()
    history.topic("t", {0: [1, 2]})
    history.write(TOPIC, b"")
    history.delete(TOPIC)
    damaged = history.context.header.damaged
    assert (damaged.lost_ids, damaged.unloadable) == ({}, {})


def test_a_complete_read_forgets_the_damage_to_topics_that_are_gone():
    history = a_cluster_with_ids()
    history.topic("t", {0: [1, 2]})
    kept = {path: content for path, content in history.contents.items() if path in history.znodes}
    for gone in (False, True):
        history.generation += 1
        history.snapshot(*((path, content) for path, content in kept.items() if not (gone and path.startswith(TOPIC))))
        assert history.context.header.damaged.lost_ids == ({} if gone else {"t": OLD})


def test_flapping_controllers_name_the_topic_that_ends_them():
    history = a_cluster_with_ids()
    history.write(TOPIC, b" ")
    assert harm_of_failover(history.context.header) == f"no controller can load {TOPIC}"
    for epoch in range(2, 8):
        history.delete("/controller")
        history.controller(1, epoch)
    history.heartbeat()
    causes = {alert.kind: alert.cause for alert in history.context.header.alerts.open.values()}
    assert causes["ControllerFlapping"].endswith(f"None can load {TOPIC}")


def test_a_remedy_has_one_way_in_each_release_and_can_be_given_as_met():
    assert len(REMEDIES) == sum(map(len, SECTIONS.values()))
    for remedy in REMEDIES.values():
        assert not remedy.met.requires
        assert "If " not in remedy.met.says((3, 9))
