"""A cluster's state, start, damage, step, counts and age, and an alert's title, team and link, are equal everywhere.

The tests ask the command, its probe, the page and its JSON, the metrics and the message to Alertmanager, at twelve
moments of recordings, and for stories on which an earlier version's answers differed.
"""

from __future__ import annotations

import html
import json
import math
import re
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import httpx
import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from cli.printing.probe import probe_line, probe_state
from cli.printing.standard_output import plain_lines
from controller.contract.alert_row import AlertRow
from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.ids import BrokerId
from controller.contract.job_row import JobRow
from controller.contract.row import Row
from controller.says.alert_kinds.brokers import HANGS
from controller.view.types import Context
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import messages_of
from dashboards.alerting.registry import of_outputs
from dashboards.exporter.collector import MemoryCollector
from dashboards.exporter.scrape import DetailLimits
from dashboards.page.newest_pages import PageConfig
from dashboards.page.routes import LivePage
from outputs.reading import ReadingCounts
from outputs.transitions import Transitions
from questions.check.check import check
from questions.check.damage import groups_in
from questions.check.incidents import incident_of, known_incidents
from questions.check.state import State
from questions.clients.teams import read_teams
from questions.gathering import worst_first
from questions.memory import Memory
from questions.picture import Origin, Picture, Present
from tests.controller.trace_language import obey
from tests.dashboards import page_cases
from tests.dashboards.grafana_boards import Filling, all_boards
from tests.dashboards.page_cases import MINUTE_MS, Size, Story
from tests.dashboards.prometheus_server import prometheus_over
from tests.dashboards.recorded_cases import recorded_story
from tests.rows import Rows
from transport.address import JournalAddress
from wording.facts import Fact, event_since

_OLD: Final = (
    "healthy broker-lost shut-down rack-lost long-name no-controller brokers-30 ghost migration zookeeper-lost "
    "watch-dead job-dead"
)
MOMENTS: Final = tuple(_OLD.split())
LIMITS: Final = DetailLimits(partitions=500, brokers=500, alerts=500)
STALE_AFTER_MS: Final = 30_000


class Faces(NamedTuple):
    """A cluster on every face."""

    name: str
    rows: list[Row]
    picture: Picture
    page: Starlette
    metrics: Mapping[str, dict[tuple[str, ...], float]]
    exposition: str
    memory: Memory


class _NoSteps(Transitions):
    def follow(self) -> str | None:
        return None


def faces(name: str, context: Context, rows: list[Row], job: JobRow | None = None) -> Faces:
    """Return the faces of a cluster whose rows end at the present."""
    memory, reading = Memory(), ReadingCounts()
    for row in (*rows, *([job] if job else [])):
        memory.apply(row)
    reading.source_is(up=True)
    reading.caught_up()
    open_alerts: dict[str, AlertRow] = {}
    for row in rows:
        if isinstance(row, AlertRow):
            open_alerts[row.id] = row
    alerts = [row for row in open_alerts.values() if not row.ends_subject]
    found = memory.cluster(name)
    assert found is not None
    assert found.heartbeat_ms is not None
    now_ms = time.time_ns() // 1_000_000
    silent = "kontrast stream" if job is not None and now_ms - job.time_ms > STALE_AFTER_MS else ""
    picture = Picture(
        origin=Origin.HISTORY,
        context=context,
        alerts=worst_first(alerts),
        as_of_ms=found.heartbeat_ms,
        present=Present(now_ms, STALE_AFTER_MS, silent),
    )
    transitions = _NoSteps(JournalAddress(Path("none")), 1.0, memory)
    live = LivePage(memory, reading, transitions, PageConfig(), threading.Event(), str)
    registry = CollectorRegistry()
    registry.register(MemoryCollector(memory, reading, LIMITS, STALE_AFTER_MS, dict))
    exposition = generate_latest(registry).decode()
    metrics: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            metrics.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return Faces(name, rows, picture, Starlette(routes=live.routes()), metrics, exposition, memory)


def get(page: Starlette, path: str) -> tuple[int, str]:
    async def asked() -> tuple[int, str]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(page), base_url="http://page") as client:
            answer = await client.get(path)
            return answer.status_code, answer.text

    return anyio.run(asked)


def terminal(picture: Picture) -> list[str]:
    return list(plain_lines(check(picture).said()))


def of_story(story: Story) -> Faces:
    return faces(story.cluster, story.context, page_cases.in_order(story.effects))


def maintained() -> Story:
    """Broker 3 is in a maintenance window, and its only partition is offline."""
    story = Story("maintained").begin(topics={"scratch": Size(8, 1, 1)})
    window = MaintenanceWindow((BrokerId(2),), story.now_ms + 60 * MINUTE_MS, "a new disk")
    story.heartbeat(maintenance=(window,))
    story.broker_leaves(2)
    story.controller_acts()
    while story.now_ms + 6_000 < time.time_ns() // 1_000_000:
        story.heartbeat(5_000, maintenance=(window,))
    return story


def two_brokers_away() -> Story:
    """Broker 2 takes few partitions offline, and broker 1 lets more reject acks=all."""
    topics = {"ledger": Size(10, 3, 3), "scratch": Size(8, 1, 1), "pairs": Size(6, 2, 1)}
    return Story("two-away").begin(topics=topics).crash(2, 1).to_the_present()


_LEAVES: Final = "broker-leaves 2; acts; heartbeat 5s"
_BACK: Final = "broker 2; acts; heartbeat 5s"
_TRACES: Final = {
    "two-losses": f"{_LEAVES}; heartbeats 6 5s; broker-leaves 1; acts",
    "keeps-leaving": f"{_LEAVES}; {_BACK}; {_LEAVES}; {_BACK}; {_LEAVES}; {_BACK}; {_LEAVES}",
    "diskless": f"{_LEAVES}; broker 2; log-dir-event 2",  # while the controller is late with its election
    "late": f"{_LEAVES}; broker-leaves 1; broker 2; heartbeats 3 5s",  # with further elections
    "leaderless": f"{_LEAVES}; controller-leaves; heartbeat 5s; broker-leaves 1; broker 2; heartbeat 5s",
}


def traced(name: str) -> Story:
    story = Story(name).begin(topics={"ledger": Size(6, 3, 2), "scratch": Size(4, 1, 1), "pairs": Size(6, 2, 1)})
    for step in _TRACES[name].split("; "):
        _ = story.controller_acts() if step == "acts" else obey(story, [step])
    return story.to_the_present()


STORIES: Final = {name: partial(traced, name) for name in _TRACES} | {
    story.__name__: story
    for story in (
        maintained,
        two_brokers_away,
        page_cases.healthy,
        page_cases.shutdown,
        page_cases.ghost,
        page_cases.zookeeper_lost,
        page_cases.long_name,
        page_cases.migration,
    )
}


def assert_says_what_its_alerts_say(shown: Mapping[str, Any]) -> None:
    for card in shown["incidents"]:
        kept = {
            found[0] for alert in card["alerts"] if (found := re.search(r"Keep [^.]+ up\. [^.(]+\b", alert["cause"]))
        }
        assert kept <= {card["keep_up"].removesuffix(".")}
    for news in shown["news"]:
        clause = news["says"].removeprefix("PartitionsOffline opened: ")
        assert clause == news["says"] or re.match(r"[\d,]+ partitions? offline", clause), clause


def assert_alike(each: Faces) -> None:
    health = check(each.picture)
    state = health.state
    status, text = get(each.page, f"/api/v1/clusters/{each.name}")
    assert status == 200
    shown = json.loads(text)
    # The page and its JSON
    told = msgspec.to_builtins(health)
    judged = shown["state"]
    for field in ("state", "event", "since", "first_step", "restores", "more", "unusable", "reason"):
        assert judged[field] == told["state"][field], field
    # Times of day in the doubts are counted at two moments a moment apart.
    assert [re.sub(r" ?\d+ s", "", doubt) for doubt in shown["doubts"]] == [
        re.sub(r" ?\d+ s", "", doubt) for doubt in told["doubts"]
    ]
    assert shown["health"]["counts"] == told["counts"]
    assert shown["health"]["as_of_ms"] == told["as_of_ms"]
    _, page = get(each.page, f"/clusters/{each.name}")
    (band,) = re.findall(r'<section class="band (\w+)" aria-label="State of [^:]*: ([^"]*)">', page)
    assert band == (state.state.value, state.words)
    heading = html.unescape(re.sub(r"<[^>]+>", "", page.partition("<h1>")[2].partition("</h1>")[0]))
    event = event_since(state.event, "since") if state.since is not None and state.since.ms is not None else state.event
    assert heading.replace("\n", " ").startswith(event.replace("`", ""))
    if state.first_step:
        step = page.partition('<span class="label">Next step</span>')[2].partition("</strong>")[0]
        assert html.unescape(re.sub(r"<[^>]+>", "", step)) == state.first_step.replace("`", "")
    assert_says_what_its_alerts_say(shown)
    # The command and its probe
    said = terminal(each.picture)
    assert said[0].startswith(f"{each.name}: {state.words}")
    assert f"first step: {state.first_step}" in "\n".join(said) or not state.first_step
    expected = {State.WELL: 0, State.DEGRADED: 1, State.AFFECTED: 2, State.UNKNOWN: 3}
    assert probe_state(health) == expected[state.state]
    assert f"leaderless={health.counts.leaderless};" in probe_line(health)
    # Metrics
    states = {labels[1]: value for labels, value in each.metrics["kontrast_cluster_state"].items()}
    assert states == {one.value: float(one is state.state) for one in State}
    is_seen = state.state is not State.UNKNOWN
    assert set(each.metrics["kontrast_ready"].values()) == {float(is_seen)}
    counted = {
        "kontrast_partitions_leaderless": health.counts.leaderless,
        "kontrast_partitions_under_min_isr": health.counts.under_min_isr,
        "kontrast_brokers": health.counts.brokers,
    }
    for metric, count in counted.items():
        assert set(each.metrics.get(metric, {}).values()) == ({float(count)} if is_seen else set()), metric
    # The damage, from the headline to the messages of alerts, with their titles, teams and links
    if is_seen:
        assert_says_the_damage(each, shown, said)


def assert_says_the_damage(each: Faces, shown: Mapping[str, Any], said: list[str]) -> None:
    found, teams = each.memory.cluster(each.name), read_teams({"*": {"team": "all"}})
    assert found is not None
    incidents, counts = known_incidents(each.memory, found, teams.ranks), shown["health"]["counts"]
    config = AlertmanagerConfig(page_url="http://page")
    effect, known = shown["state"]["effect"], of_outputs(found, incidents, certain=True)
    told = [(counts["leaderless"], Fact.OFFLINE), (counts["under_min_isr"], Fact.REJECTS_ACKS_ALL)]
    for count, fact in told if incidents else ():
        assert not count or re.search(rf"\b{count:,} (partitions? )?of .+ {fact.predicate(count)}", effect)
    assert [card["effect"] for card in shown["incidents"]] == [incident.damage.sentence for incident in incidents]
    assert sum(card["unusable"] for card in shown["incidents"]) <= sum(count for count, _ in told)  # each once
    events = [card["event"] for card in shown["incidents"]]
    assert len(set(events)) == len(events)
    assert not incidents or effect in said
    for incident, row in ((one, row) for one in incidents for row in one.alerts):
        about = incident_of(row, incidents)
        messages = messages_of(row, config, teams.teams_of(known.topics_of(row)) or {None: ()}, about)
        annotations = dict(messages[0].annotations)
        assert messages[0].label("team") == ("all" if known.topics_of(row) else "")
        assert about is None or {each.topic for each in about.damage.topics} <= set(known.topics_of(row))
        if row.alert in ("PartitionsOffline", "PartitionsUnderMinIsr"):
            assert about is not None
            assert (title := about.damage_of(row).title) in annotations["summary"]
            for count in re.findall(r"\d+(?= offline| reject)", title):
                assert re.search(rf"\b{count} partitions? (offline|reject)|will once they have", row.cause), row.cause
        status, page = get(each.page, annotations["page_url"].removeprefix("http://page"))
        assert status == 200
        assert incident.event.partition(" ")[0] in page
    assert shown["state"]["since"] is None or shown["state"]["since"]["ms"] in {
        None, *(row.since_ms for row in each.picture.alerts)
    }  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_every_face_of_a_story_judges_alike(name: str) -> None:
    assert_alike(of_story(STORIES[name]()))


@pytest.mark.parametrize("name", MOMENTS)
def test_every_face_of_a_recorded_moment_judges_alike(name: str) -> None:
    story = recorded_story(name)
    if name not in ("watch-dead", "job-dead"):
        story.to_the_present(session="suspended" if name == "zookeeper-lost" else "connected")
    assert_alike(of_story(story))


def spare_broker_crashed() -> Story:
    return Story("spare").begin(topics={"ledger": Size(6, 3, 1)}).crash(1).to_the_present()


def cleanly_stopped() -> Story:
    """Broker 2, with the only replica of a topic, shut down cleanly half a minute ago."""
    story = Story("stopped").begin(topics={"ledger": Size(6, 3, 1), "scratch": Size(8, 1, 1)})
    story.to_the_present(silent_ms=30_000)
    story.broker_closes(2)
    story.controller_acts()
    return story.to_the_present()


@pytest.mark.parametrize(
    ("story", "state", "pages"),
    [(maintained, "affected", False), (cleanly_stopped, "affected", False), (spare_broker_crashed, "degraded", True)],
)
def test_the_colour_follows_what_clients_have_now(story, state, pages) -> None:
    each = of_story(story())
    assert_alike(each)
    health = check(each.picture)
    assert (health.state.state.value, health.counts.leaderless > 0) == (state, state == "affected")
    assert any(row.severity.value == "page" for row in each.picture.alerts) is pages
    assert f'<article class="card incident {state}">' in get(each.page, f"/clusters/{each.name}")[1]


def titles_of(each: Faces) -> set[str]:
    found = each.memory.cluster(each.name)
    assert found is not None
    return {
        dict(messages_of(row, AlertmanagerConfig(), {None: ()}, one)[0].annotations)["summary"]
        for one in known_incidents(each.memory, found, ())
        for row in one.alerts
        if row.alert == "PartitionsOffline"
    }


@pytest.mark.parametrize("least_in_sync", [2, 3])
def test_the_first_title_says_no_more_than_what_stays(least_in_sync: int) -> None:
    topics = {"ledger": Size(10, 3, least_in_sync), "scratch": Size(8, 1, 1)}
    story = Story("first").begin(topics=topics).to_the_present()
    story.broker_leaves(1)
    (first,) = titles_of(of_story(story))
    late = of_story(story)
    says = {group.says for group in groups_in(story.context) if not group.is_offline}
    assert says == ({"2 of 3 replicas in sync, 3 needed. Needs broker 1."} if least_in_sync == 3 else set())
    story.controller_acts()
    story.heartbeat()
    (settled,) = titles_of(of_story(story))
    offline = check(of_story(story).picture).counts.leaderless
    assert first.startswith(f"first: {offline} offline")
    assert settled.startswith(f"first: {offline} offline")
    rejecting = f"{check(of_story(story).picture).counts.under_min_isr} reject acks=all"
    assert (rejecting in first, rejecting in settled) == (least_in_sync == 3, least_in_sync == 3)
    assert check(late.picture).counts.leaderless > offline  # which a title of all that has no leader now would say


def test_the_broker_with_offline_partitions_comes_first_on_every_face() -> None:
    each = of_story(two_brokers_away())
    assert check(each.picture).state.first_step == "Start broker 2 (restart it if it hangs)"
    (offline,) = [row for row in each.picture.alerts if row.alert == "PartitionsOffline"]
    assert re.search(r"until broker 2 returns|Broker 2 brings back", offline.cause)
    returns = json.loads(get(each.page, "/api/v1/clusters/two-away")[1])["incidents"][0]["returns"]
    assert [one["broker"] for one in returns] == [2, 1]


def test_a_broker_whose_port_answers_is_restarted_on_every_face() -> None:
    story = Story("hangs").begin(topics={"pairs": Size(8, 2, 1), "scratch": Size(8, 1, 1)}).crash(2).to_the_present()
    for number, broker in enumerate((1, 3, 4)):
        story.topic(f"late{number}", {0: [2, broker]})
        story.state(f"late{number}", 0, broker, 1, [broker])
    each = of_story(story)
    step, keeps = "Start broker 2 (restart it if it hangs)", len(each.memory.cluster("hangs").lacking)
    for _ in range(2):
        assert check(each.memory.cluster("hangs").picture()).state.first_step == step
        card, *_ = json.loads(get(each.page, "/api/v1/clusters/hangs")[1])["incidents"]
        assert card["returns"][0]["step"] == step
        assert f"replica of {keeps} partitions" in card["keep_up"]
        assert (" restart kafka" in card["returns"][0]["command"]) is step.startswith("Restart")
        assert titles_of(each).pop().endswith(f": {step[:1].lower()}{step[1:].partition(' (')[0]}")
        each.memory.note_answering("hangs", BrokerId(2))
        step = "Restart broker 2"
    assert HANGS.in_words() in {row.action for row in each.memory.cluster("hangs").open_alerts}


def test_a_failed_disk_is_one_page_with_all_its_damage_and_the_disk_as_its_step() -> None:
    story = Story("disk").begin(topics={"ledger": Size(8, 3, 3), "scratch": Size(8, 1, 1)})
    story.write("/log_dir_event_notification/log_dir_event_0", {"version": 1, "broker": 2, "event": 1})
    story.state("scratch", 0, -1, 1, [2])
    story.state("ledger", 0, 1, 1, [1, 3])
    each = of_story(story.to_the_present())
    assert titles_of(each) == {"disk: 1 offline, 1 rejects acks=all (ledger): replace the disk"}
    page = next(row for row in each.picture.alerts if row.severity.value == "page")
    assert (page.alert, page.action[:42]) == ("PartitionsOffline", "Replace the disk, then restart the broker.")
    assert check(each.picture).state.event == "Broker 2 reported a failed log directory"
    assert_alike(each)


@pytest.fixture(scope="module")
def stopped() -> Faces:
    """Return a well cluster whose job stopped ten minutes ago."""
    story = Story("orders", minutes=14).begin().to_the_present(silent_ms=10 * MINUTE_MS)
    job = Rows().job(time_ms=story.now_ms, clusters={})
    return faces(story.cluster, story.context, page_cases.in_order(story.effects), job)


_HOME: Final = "/clusters/orders"
PAGES: Final = (
    *("/", _HOME, f"{_HOME}/controller", f"{_HOME}/brokers/3", f"{_HOME}/topics", f"{_HOME}/topics/ledger"),
    f"{_HOME}/brokers",
    *(f"{_HOME}/topics/ledger/0", f"{_HOME}/timeline", f"{_HOME}/whatif", f"{_HOME}/consequences?broker=1"),
)
_STANDING: Final = re.compile(r'<p id="standing"><span class="pill (\w+)">([^<]*)</span>(.*?)</p>', re.DOTALL)
_STRIP: Final = re.compile(r'<span class="strip".*?</span>', re.DOTALL)  # earlier hours, of which the state was known
_PICTURE: Final = re.compile(r"<svg.*?</svg>", re.DOTALL)
_CLASSES: Final = re.compile(r'class="([^"]*)"')
_GREEN_WORDS: Final = re.compile(r"is well|are well|are online|healthy|for 0 s", re.IGNORECASE)


def standing_in(page: str) -> tuple[str, str, str]:
    """Return the state of the bar, its words, and the age or the moment without seconds."""
    (found,) = _STANDING.findall(page)
    state, words, age = found
    return state, words, re.sub(r" (\d+ s )?ago$| \d\d:\d\d:\d\d", "", re.sub(r"<[^>]+>", "", age).strip())


@pytest.fixture(scope="module")
def crashed() -> Faces:
    """Return a cluster that lost a broker."""
    return of_story(Story("orders").begin().crash(1).to_the_present())


@pytest.mark.parametrize("path", PAGES[1:])
def test_the_bar_of_each_page_has_the_verdict_of_the_cluster_and_its_age(crashed: Faces, path: str) -> None:
    _, page = get(crashed.page, path)
    assert standing_in(page) == ("affected", "clients affected", "live,")
    assert "icon-affected" in page


def test_the_bar_of_a_past_moment_has_the_verdict_of_then(crashed: Faces) -> None:
    _, before = get(crashed.page, f"{_HOME}?map=before")
    begun_ms = int(re.findall(r"timeline\?at=(\d+)", before)[0])
    for path in (_HOME, f"{_HOME}/brokers", f"{_HOME}/brokers/3", f"{_HOME}/topics/ledger/0", f"{_HOME}/controller"):
        states = [standing_in(get(crashed.page, f"{path}?at={begun_ms + later_ms}")[1]) for later_ms in (-1, 60_000)]
        assert states == [("well", "well", "as of (past)"), ("affected", "clients affected", "as of (past)")], path


@pytest.mark.parametrize("path", PAGES)
def test_after_the_job_stopped_no_page_has_a_green_word_or_icon(stopped: Faces, path: str) -> None:
    status, page = get(stopped.page, path)
    assert status == 200
    shown = _PICTURE.sub("", _STRIP.sub("", page))
    bands = [classes for classes in _CLASSES.findall(shown) if set(classes.split()) & {"band", "pill", "line"}]
    assert not any(set(classes.split()) & {"well", "degraded", "affected"} for classes in bands)
    assert "icon-well" not in page
    assert re.search(r"10 min|[Nn]ot known", shown), "the age goes on"
    if path != "/":
        assert standing_in(page) == ("unknown", "not known", "last known 10 min")
    assert not _GREEN_WORDS.search(re.sub(r"<[^>]+>", " ", shown))
    for classes in _CLASSES.findall(shown):
        if set(classes.split()) & {"counts", "racks", "chip"}:
            assert "stale" in classes.split(), classes


@pytest.mark.parametrize("path", [path for path in PAGES if path != f"{_HOME}/whatif"])
def test_after_the_job_stopped_every_answer_has_the_doubt(stopped: Faces, path: str) -> None:
    status, text = get(stopped.page, "/api/v1" + ("/clusters" if path == "/" else path))
    assert status == 200
    answer = json.loads(text)
    answer = answer[0] if isinstance(answer, list) else answer
    answer = answer.get("overview", answer.get("explanation", answer))
    assert answer["doubts"][0].startswith("the state is not known, last known 10 min")
    assert '"is_well":true' not in text


def test_after_the_job_stopped_only_the_age_is_left_of_the_metrics(stopped: Faces) -> None:
    left = {name for name, samples in stopped.metrics.items() if any("orders" in labels for labels in samples)}
    assert left == {
        *("kontrast_ready", "kontrast_cluster_state", "kontrast_heartbeat_timestamp_seconds"),
        "kontrast_alert_detail_dropped",
    }
    assert stopped.metrics["kontrast_ready"][("orders",)] == 0
    assert stopped.metrics["kontrast_cluster_state"][("orders", "unknown")] == 1


def test_after_the_job_stopped_the_command_does_not_know(stopped: Faces) -> None:
    health = check(stopped.picture)
    assert (health.state.state, health.is_well, probe_state(health)) == (State.UNKNOWN, False, 3)
    assert "`kontrast stream` is silent" in probe_line(health)


def test_after_the_job_stopped_each_stat_of_a_board_is_unknown_or_red(stopped: Faces, tmp_path: Path) -> None:
    at = time.time()
    lines = [line for line in stopped.exposition.splitlines() if line and not line.startswith("#")]
    stamped = [f"{line} {at:.3f}" for line in lines]
    shown: dict[str, set[str]] = {}
    with prometheus_over(tmp_path, stamped, 60) as prometheus:
        for board in all_boards():
            for panel, query in board.queries():
                if panel.type == "stat":
                    series = prometheus.query(Filling().concrete(query.expression), at)
                    values = [each.value for each in series if "kafka_cluster" in each.labels]
                    shown[panel.title] = {_colour(panel.defaults, value) for value in values}
    assert shown["State"] == {"purple"}
    assert shown["Heartbeat age"] == {"red"}
    assert {colour for colours in shown.values() for colour in colours} == {"purple", "red"}
    assert shown["Offline"] == shown["Active controller"] == shown["Brokers away"] == {"purple"}


def _colour(defaults: Mapping[str, Any], value: float) -> str:
    """Return the colour in which Grafana shows the value of a stat."""
    for mapping in defaults["mappings"]:
        options = mapping["options"]
        if mapping["type"] == "special" and math.isnan(value):
            return str(options["result"]["color"])
        if mapping["type"] == "value" and f"{value:g}" in options:
            return str(options[f"{value:g}"]["color"])
    steps = defaults["thresholds"]["steps"]
    return str([step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1])
