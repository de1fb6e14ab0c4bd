"""What changed in the ten minutes before an incident."""

from __future__ import annotations

from msgspec.structs import replace

from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import TopicRow
from questions.clients.groups import NO_CLIENTS
from questions.memory import Memory
from questions.page.incident_cards import Presentation
from questions.page.overview import Overview, Overviews
from tests.dashboards import page_cases
from tests.dashboards.page_cases import Size, Story
from wording.times import moment

TOPICS = {"orders": Size(4, 3, 2), "old": Size(2, 3, 2)}


def begun(minutes: float = 30) -> Story:
    story = Story("orders", minutes=minutes).begin(topics=TOPICS)
    story.heartbeat(1_000)
    return story


def overview(story: Story) -> Overview:
    memory = Memory()
    for row in page_cases.in_order(story.effects):
        memory.apply(row)
    found = memory.cluster("orders")
    assert found is not None
    return Overviews(memory, Presentation(), (), lambda _: "").now(found, None, story.now_ms, NO_CLIENTS)


def waited(story: Story, minutes: int) -> Story:
    for _ in range(12 * minutes):
        story.heartbeat(5_000)
    return story


def said(story: Story) -> list[str]:
    return [each.says for each in overview(story).news]


def test_what_people_and_tools_changed_before_a_crash_is_named_and_the_crash_is_not():
    story = begun()
    story.topic("soon", {0: [1, 2], 1: [2, 3]})
    waited(story, 12)
    story.topic("late", {0: [1, 2], 1: [2, 3]})
    story.write("/config/topics/orders", {"version": 1, "config": {"min.insync.replicas": "1"}})
    story.write("/config/changes/config_change_1", {"version": 2, "entity_path": "topics/orders"})
    waited(story, 1)
    story.delete_topic("old")
    waited(story, 1)
    story.broker_bounces(4)
    waited(story, 1)
    made = said(waited(story.crash(1), 1))
    assert "topic late was created with 2 partitions" in made
    assert "an admin changed min.insync.replicas of topic orders from 2 to 1" in made
    assert "an admin asked for the deletion of topic old" in made
    assert "broker 4 registered again" in made
    assert not any("soon" in each for each in made), "longer ago"
    assert not any("broker 1" in each for each in made), "the incident itself"


def test_a_reassignment_and_a_maintenance_window_are_changes():
    story = begun()
    window = MaintenanceWindow((2,), story.now_ms + 3_600_000, "disks")
    story.reassign(("orders", 0, [2, 3, 4]), ("orders", 1, [3, 4, 1]))
    story.controller_acts()
    gauges = [row for row in waited(story, 1).effects if isinstance(row, GaugesRow)][-1]
    made = said(story)
    assert any(each.startswith("an admin asked for a reassignment of orders, partitions 0 and 1") for each in made), (
        made
    )
    story.effects.append(replace(gauges, seq=gauges.seq + 1, time_ms=gauges.time_ms - 1, maintenance=(window,)))
    assert f"the maintenance window of broker 2 (disks) began, until {moment(window.until_ms)}" in said(story)


def test_the_first_read_is_no_change_and_a_calm_cluster_has_its_own():
    story = begun(5)
    assert said(story) == []
    empty = Story("orders", minutes=5).begin(brokers=0, topics={})
    empty.heartbeat(1_000)
    empty.broker(1)
    assert said(waited(empty, 1)) == []
    story.topic("late", {0: [1, 2]})
    story.controller_acts()
    waited(story, 1)
    assert said(story) == ["topic late was created with 1 partition"]
    assert [row.topic for row in story.effects if isinstance(row, TopicRow)][-1] == "late"
