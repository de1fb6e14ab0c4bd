"""Endings of alerts that were sent, and the cases without an ending."""

from __future__ import annotations

import re

import pytest

from controller.contract.alert_row import Severity
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import Message, message_of, messages_of
from dashboards.alerting.registry import ActiveAlerts, AlertRegistry, Finder, of_outputs
from dashboards.alerting.sender import Sender
from questions.check.incidents import known_incidents
from questions.clients.teams import read_teams
from questions.memory import Memory

CONFIG = AlertmanagerConfig(resolve_timeout_seconds=300)
MINUTE_MS = 60_000


@pytest.fixture
def registry() -> AlertRegistry:
    return AlertRegistry(CONFIG)


def active(*open_rows, resolved=(), certain=True, source=Finder.OUTPUTS) -> ActiveAlerts:
    return ActiveAlerts(
        cluster="north",
        source=source,
        certain=certain,
        alerts={row.id: row for row in open_rows},
        resolved={row.id: row for row in resolved},
    )


def states(registry) -> dict[str, tuple[str, int | None]]:
    """Return the state and the end of each alert by its id."""
    annotations = [(dict(message.annotations), message.ended_ms) for message in registry.messages()]
    return {found["alert_id"]: (found["state"], ended_ms) for found, ended_ms in annotations}


def test_nothing_is_known_before_something_was_said(registry):
    assert registry.messages() is None
    registry.update([], 0, 0)
    assert registry.messages() == ()


def test_a_row_that_says_so_ends_it_at_its_time_and_says_why(registry, rows):
    registry.update([active(rows.alert("a"))], 1000, 1000)
    registry.update(
        [active(resolved=[rows.alert("a", "resolved", time_ms=1500, cause="broker 1 is back")])], 2000, 2000
    )
    (message,) = registry.messages()
    assert message.ended_ms == 1500
    assert dict(message.annotations)["description"] == "broker 1 is back"


def test_a_wall_clock_that_is_set_ends_nothing_and_keeps_no_end_longer(registry, rows):
    registry.update([active(rows.alert("a"))], 0, 0)
    registry.update([active()], 10, 10)
    registry.update([active()], 60 * MINUTE_MS, 20)
    assert states(registry) == {"a": ("open", None)}
    registry.update([active()], -60 * MINUTE_MS, 10 + MINUTE_MS)
    assert states(registry) == {"a": ("resolved", -60 * MINUTE_MS)}
    registry.update([active()], 120 * MINUTE_MS, 20 + MINUTE_MS)
    assert states(registry) == {"a": ("resolved", -60 * MINUTE_MS)}
    registry.update([active()], 0, 20 + 7 * MINUTE_MS)
    assert states(registry) == {}


def test_an_end_is_sent_for_as_long_as_an_alertmanager_would_wait(registry, rows):
    registry.update([active(rows.alert("a"))], 0, 0)
    ended = active(resolved=[rows.alert("a", "resolved", time_ms=1)])
    registry.update([ended], 1, 1)
    registry.update([ended], 300_000, 300_000)
    assert states(registry) == {"a": ("resolved", 1)}
    registry.update([ended], 300_001, 300_001)
    assert states(registry) == {}


def test_an_alert_that_goes_on_with_another_severity_says_so_where_it_ends(registry, rows):
    registry.update([active(rows.alert("a", severity=Severity.WARN, alert="NoController"))], 0, 0)
    registry.update([active(rows.alert("a", severity=Severity.PAGE, alert="NoController"))], 1, 1)
    by_severity = {message.label("severity"): message for message in registry.messages()}
    assert {name: each.ended_ms for name, each in by_severity.items()} == {"critical": None, "warning": 1}
    moved = dict(by_severity["warning"].annotations)
    assert moved["state"] == "open"
    assert moved["summary"].endswith(" goes on with severity critical")


def test_one_that_opens_again_has_no_end_any_more(registry, rows):
    registry.update([active(rows.alert("a"))], 0, 0)
    registry.update([active(resolved=[rows.alert("a", "resolved", time_ms=1)])], 1, 1)
    registry.update([active(rows.alert("a"))], 2, 2)
    assert states(registry) == {"a": ("open", None)}


def test_silence_of_who_is_not_certain_never_ends_it(registry, rows):
    registry.update([active(rows.alert("a"))], 0, 0)
    registry.update([active()], 10, 10)
    for minute in range(1, 100):
        registry.update([active(certain=False)], minute * MINUTE_MS, minute * MINUTE_MS)
    assert states(registry) == {"a": ("unknown", None)}
    registry.update([active()], 100 * MINUTE_MS, 100 * MINUTE_MS)
    assert states(registry) == {"a": ("unknown", None)}  # the minute begins again
    registry.update([active()], 101 * MINUTE_MS - 1, 101 * MINUTE_MS - 1)
    assert states(registry) == {"a": ("unknown", None)}
    registry.update([active()], 101 * MINUTE_MS, 101 * MINUTE_MS)
    assert states(registry) == {"a": ("resolved", 101 * MINUTE_MS)}


def test_what_is_said_again_makes_nothing_new_and_what_differs_does(registry, rows):
    first = rows.alert("a")
    registry.update([active(first)], 0, 0)
    messages = registry.messages()
    registry.update([active(first)], 1, 1)
    assert registry.messages() is messages
    registry.update([active(first, certain=False)], 2, 2)
    assert states(registry) == {"a": ("unknown", None)}
    registry.update([active(rows.alert("a", cause="worse"))], 3, 3)
    assert [dict(message.annotations)["description"] for message in registry.messages()] == ["worse"]


def test_what_nobody_speaks_of_any_more_is_left_to_the_time_out(registry, rows):
    registry.update([active(rows.alert("a"))], 0, 0)
    registry.update([], 1, 1)
    assert states(registry) == {}


def test_what_is_adopted_goes_on_until_it_is_known(registry, rows):
    found = message_of(rows.alert("a"), CONFIG)
    registry.adopt([found])
    registry.update([active(certain=False)], 0, 0)
    assert states(registry) == {"a": ("unknown", None)}
    registry.update([active(rows.alert("a"))], 1, 1)
    assert states(registry) == {"a": ("open", None)}


def test_a_staleness_that_is_over_is_over_at_once(registry, rows):
    registry.update([active(rows.alert("ReplicaStale"), source=Finder.STALENESS)], 0, 0)
    registry.update([active(source=Finder.STALENESS)], 7, 7)
    assert states(registry) == {"ReplicaStale": ("resolved", 7)}


def test_hostile_names_stay_text_and_empty_ones_are_left_out(rows):
    row = rows.alert("a", topic='{x="y"}\n"', subject="topic \udc80", group="", cause="Grüße-日本")
    labels = dict(message_of(row, CONFIG).labels)
    assert labels["topic"] == r'{x="y"}\n"'
    assert labels["subject"] == r"topic \udc80"
    assert "group" not in labels
    assert "broker" not in labels


def test_a_chat_finds_no_mention_no_link_and_no_direction_in_a_name(registry, rows):
    name = "<!channel> <@U1> <b> [x](http://evil) https://evil @everyone \u202egnp\n@here"
    row = rows.alert(name, topic=name, subject=f"topic {name}", cause=name, action=name, news=(name,), examples=(name,))
    for message in messages_of(row, CONFIG):
        registry.adopt([message])
        for field, text in (*message.labels, *message.annotations):
            if not field.endswith("_url"):
                assert re.findall(r"<[!@/\w]|[\u202e\n]", text) == [], field
        for field, text in message.annotations:
            if not field.endswith("_url"):
                assert re.findall(r"\]\(|https?://|@(?:everyone|here)", text) == [], field
    assert r"< !channel> < @U1> < b> [x] (http: //evil) https: //evil @ everyone \u202egnp\n@ here" in text
    registry.update((), 0, 0, knows_all=False)
    assert {alert.alert_id for alert in registry.messages()} == {name}


def test_an_end_is_never_before_its_beginning_nor_a_beginning_in_the_future(registry, rows):
    message = message_of(rows.alert("a", since_ms=5000), CONFIG)
    alert = message.as_json(1000, CONFIG)
    assert (alert["startsAt"], alert["endsAt"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:05:01.000Z")
    registry.update([active(rows.alert("a", since_ms=5000))], 0, 0)
    registry.update([active(resolved=[rows.alert("a", "resolved", time_ms=10)])], 6000, 6000)
    (ended,) = registry.messages()
    alert = ended.as_json(6000, CONFIG)
    assert alert["startsAt"] < alert["endsAt"]


@pytest.mark.parametrize(("setting", "label"), [("page", "critical"), ("warn", "warning")])
def test_a_crash_that_took_nothing_from_clients_pages_or_warns_as_set(setting, label, rows):
    config = AlertmanagerConfig(crash_without_damage=setting)
    crash = rows.alert("a", alert="BrokerCrashed", severity=Severity.PAGE)
    assert message_of(crash, config).label("severity") == label
    other = rows.alert("b", alert="PartitionsOffline", severity=Severity.PAGE)
    assert message_of(other, config).label("severity") == "critical"


def test_news_of_an_alert_has_its_labels_and_a_number(rows):
    row = rows.alert("a", alert="PartitionsOffline", news=("6 partitions reject acks=all", "Next: start broker 2"))
    alert, *news = messages_of(row, CONFIG)
    assert [(dict(each.annotations)["description"], each.label("news")) for each in news] == [
        ("north: 6 partitions reject acks=all", "1"),
        ("north: Next: start broker 2", "2"),
    ]
    assert all(set(each.labels) - set(alert.labels) == {("news", each.label("news"))} for each in news)


class _Alertmanager:
    """An Alertmanager that keeps what it is sent."""

    url = "http://alertmanager:9093"

    def __init__(self) -> None:
        self.sent: list[tuple[str, bool]] = []

    def send(self, messages, _) -> None:
        self.sent += [(dict(each.annotations)["alert_id"], each.ended_ms is not None) for each in messages]

    def alerts(self) -> list[Message]:
        return []

    def check(self) -> None:
        pass


def test_the_end_of_an_alert_that_was_never_sent_is_not_sent(registry, rows):
    alertmanager = _Alertmanager()
    sender = Sender(alertmanager, CONFIG, registry)
    registry.update([active(rows.alert("short"), rows.alert("long", subject="broker 2"))], 0, 0)
    ended = rows.alert("short", "resolved")
    registry.update([active(rows.alert("long", subject="broker 2"), resolved=[ended])], 1, 1)
    sender._work()
    assert alertmanager.sent == [("long", False)]
    registry.update([active(resolved=[ended, rows.alert("long", "resolved", subject="broker 2")])], 2, 2)
    sender._work()
    assert alertmanager.sent[1:] == [("long", True)]


TEAMS = read_teams({"pay*": {"team": "payments", "contact": "#pay", "rank": 1}, "audit": {"team": "security"}})


def routed(registry) -> dict[str, str | None]:
    """Return the annotation `team` of each message that is open, by its label `team`."""
    messages = [message for message in registry.messages() if message.ended_ms is None]
    return {message.label("team"): dict(message.annotations).get("team") for message in messages}


def test_the_alert_of_one_team_has_its_label_title_and_contact(rows):
    registry = AlertRegistry(CONFIG, TEAMS)
    registry.update([active(rows.alert("a", partitions=2, examples=("pay.a-0", "pay.b-1")))], 0, 0)
    (message,) = registry.messages()
    assert routed(registry) == {"payments": "payments (#pay) for pay.a and pay.b"}
    assert dict(message.annotations)["summary"] == "north: 2 partitions offline: start the named brokers"


def test_each_team_has_an_alert_that_lasts_as_long_as_the_incident(rows):
    registry = AlertRegistry(CONFIG, TEAMS)
    registry.update([active(rows.alert("a", partitions=1, examples=("pay-0",)))], 0, 0)
    both = rows.alert("a", partitions=2, examples=("audit-0", "free-1"))
    registry.update([active(both)], 1, 1)
    assert routed(registry) == {"payments": "payments (#pay) for pay", "security": "security for audit", "": None}
    registry.update([active(resolved=[rows.alert("a", "resolved", time_ms=2)])], 2, 2)
    assert routed(registry) == {}
    assert {message.ended_ms for message in registry.messages()} == {2}


def told_of(rows, *more, **alert) -> ActiveAlerts:
    """Return the alert of a cluster in which these partitions are in trouble since broker 2 is away."""
    memory = Memory()
    away = rows.broker(2, registered=False)
    row = rows.alert("a", group="broker 2", subject="broker 2", broker=2, **alert)
    for each in (rows.controller(1), rows.broker(1), away, *more, row, rows.gauges()):
        memory.apply(each)
    snapshot = memory.cluster("north")
    return of_outputs(snapshot, known_incidents(memory, snapshot, TEAMS.ranks), certain=True)


def test_every_team_that_lost_reads_or_acks_all_gets_the_page_with_all_damage(rows):
    registry = AlertRegistry(CONFIG, TEAMS)
    lost = [rows.offline("free", number, isr=(2,), replicas=(2,)) for number in range(2)]
    refusing = [rows.under_min_isr("pay.ledger", number) for number in range(6)]
    free = told_of(rows, *lost, partitions=2, examples=("free-0", "free-1"))
    registry.update([free], 0, 0)
    assert routed(registry) == {"": None}
    both = told_of(rows, *lost, *refusing, partitions=2, examples=("free-0", "free-1"))
    registry.update([both], 1, 1)
    assert routed(registry) == {"payments": "payments (#pay) for pay.ledger", "": None}
    titles = {message.label("team"): dict(message.annotations)["summary"] for message in registry.messages()}
    assert titles[""] == "north: 2 offline, 6 reject acks=all (pay.ledger): start broker 2"
    assert set(titles.values()) == {titles[""]}  # with a team it is too long for a phone
    messages = registry.messages()
    registry.update([both], 2, 2)
    assert registry.messages() is messages


def test_a_large_alert_reaches_the_teams_of_all_its_partitions(rows):
    registry = AlertRegistry(CONFIG, TEAMS)
    lost = [rows.offline("free", number, isr=(2,), replicas=(2, 3)) for number in range(11)]
    of_others = rows.offline("pay", 0, isr=(3,), replicas=(1, 3))
    here = rows.offline("audit", 0, isr=(2,), replicas=(2, 3))
    registry.update([told_of(rows, *lost, of_others, here, partitions=12, examples=("free-0",))], 0, 0)
    assert routed(registry) == {"security": "security for audit", "": None}


def test_an_adopted_alert_of_a_team_goes_on(rows):
    row = rows.alert("a", partitions=1, examples=("audit-0",))
    config = AlertmanagerConfig(external_labels={"team": "kafka", "site": "lab"})
    before, after = AlertRegistry(config, TEAMS), AlertRegistry(config, TEAMS)
    before.update([active(row)], 0, 0)
    after.adopt(before.messages())
    after.update([active(row)], 1, 1)
    assert routed(after) == {"security": "security for audit"}
    after.update([active(rows.alert("b", examples=("free",)))], 120_000, 120_000)
    assert "kafka" in routed(after)  # an external label is the team of everything else
