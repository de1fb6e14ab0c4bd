"""The timeline page with the cluster at any kept moment, in a real browser and as JSON."""

from __future__ import annotations

import html
import re
import time

import msgspec
import pytest

from controller.contract.effect_rows import Transition
from dashboards.exporter.config import ServeConfig
from outputs.reading import FOLLOWED_OUTPUTS
from questions.page.history import History
from tests.controller.znode_history import ZnodeHistory
from tests.dashboards.visits import HOSTILE
from tests.waiting import eventually
from transport.address import JournalAddress

pytestmark = pytest.mark.xdist_group("browser")

MINUTE_MS = 60_000
OUTPUTS = (Transition.output, *FOLLOWED_OUTPUTS)  # gauges last, as the sink writes them


class Incident:
    """A cluster in which broker 2 dies half an hour ago, and is back ten minutes later: `payments-0` was offline."""

    def __init__(self, cluster: str, topic: str) -> None:
        self.history = ZnodeHistory(cluster)
        self.history.now_ms = time.time_ns() // 1_000_000 - 50 * MINUTE_MS
        topics = {
            "orders": {0: ([1, 3], 1, 0, [1, 3]), 1: ([2, 3], 2, 0, [2, 3])},
            "payments": {0: ([2], 2, 0, [2])},
            topic: {0: ([2, 1], 2, 0, [2, 1])},
        }
        self.history.start(1, 2, 3, topics=topics)
        self.history.heartbeat()
        self.history.now_ms += 20 * MINUTE_MS
        self.history.broker_leaves(2)
        self.died_ms = self.history.now_ms
        self.history.the_controller_writes_its_due()
        for _ in range(40):
            self.history.heartbeat()
        self.history.now_ms = self.died_ms + 10 * MINUTE_MS
        self.history.broker(2)
        self.back_ms = self.history.now_ms
        self.history.the_controller_writes_its_due()
        for name, number in (("orders", 1), (topic, 0)):
            row = self.history.row(name, number)
            self.history.state(name, row.partition, row.leader, row.leader_epoch, [*row.isr, 2])
        for _ in range(3):
            self.history.heartbeat(3 * MINUTE_MS)

    def write(self, exporter) -> None:
        rows = (row for row in self.history.effects if row.output in OUTPUTS)
        exporter.write(*sorted(rows, key=lambda row: OUTPUTS.index(row.output)))
        cluster = self.history.cluster
        exporter.page_with("/api/v1/clusters", f'"cluster":"{cluster}","unknown":null')
        exporter.page_with(f"/api/v1/clusters/{cluster}", f'"as_of_ms":{self.history.now_ms}')
        eventually(lambda: history(exporter, cluster=cluster), lambda found: found.notes == ())


def history(exporter, query: str = "", cluster: str = "north") -> History:
    return msgspec.json.decode(exporter.page(f"/api/v1/clusters/{cluster}/timeline?{query}"), type=History)


@pytest.fixture(scope="module")
def exporter(tmp_path_factory, start_exporter):
    config = ServeConfig(source=JournalAddress(tmp_path_factory.mktemp("outputs")), listen="127.0.0.1:0")
    with start_exporter(config) as running:
        yield running


@pytest.fixture(scope="module")
def incidents(exporter) -> dict[str, Incident]:
    """Write the same to two clusters. In one a topic has a hostile name."""
    made = {"north": Incident("north", "audit"), "hostile": Incident("hostile", HOSTILE)}
    for each in made.values():
        each.write(exporter)
    return made


@pytest.fixture(scope="module")
def incident(incidents) -> Incident:
    return incidents["north"]


def words_of(moment_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(moment_ms / 1000))


def test_the_cluster_is_shown_as_of_each_moment(exporter, incident):
    expected = {incident.died_ms - 1000: (0, 0), incident.died_ms + 5 * MINUTE_MS: (1, 1), None: (0, 0)}
    for at_ms, (leaderless, away) in expected.items():
        found = history(exporter, "" if at_ms is None else f"at={at_ms}")
        assert found.overview.health is not None
        counts = found.overview.health.counts
        assert (counts.leaderless, counts.brokers_away) == (leaderless, away)
        assert found.overview.health.as_of_ms == found.at_ms == (at_ms or incident.history.now_ms)
        assert found.overview.map is not None
        named = [line.topic for line in found.overview.map.lines if line.causes]
        assert named == ["payments"] * leaderless
        paging = {finding.alert for finding in found.overview.health.findings if finding.severity.value == "page"}
        assert bool(paging) is bool(leaderless)


def test_events_lead_from_one_to_the_next(exporter, incident):
    found = history(exporter, f"at={incident.died_ms - 1}")
    assert found.next_ms == incident.died_ms
    seen = []
    while found.next_ms is not None:
        found = history(exporter, f"at={found.next_ms}")
        seen.append(found.at_ms)
    assert incident.back_ms in seen
    assert seen == sorted(set(seen))
    assert history(exporter, f"at={seen[-1]}").previous_ms == seen[-2]
    assert found.timeline is not None
    changes = [change for event in found.timeline.events for change in event.changes]
    assert any(change.subject == "broker 2" for change in changes)
    assert any("OnlinePartition" in change.says for change in changes)


def test_all_that_is_explained_is_explained_as_of_each_moment(exporter, incident):
    def asked(path: str, at_ms: int | None) -> dict:
        at = "" if at_ms is None else f"?at={at_ms}"
        return msgspec.json.decode(exporter.page(f"/api/v1/clusters/north/{path}{at}"))

    before_ms, meanwhile_ms = incident.died_ms - 1000, incident.died_ms + 5 * MINUTE_MS
    for at_ms, is_well in ((before_ms, True), (meanwhile_ms, False), (None, True)):
        partition, topic = asked("topics/payments/0", at_ms), asked("topics/payments", at_ms)
        broker, controller = asked("brokers/2", at_ms), asked("controller", at_ms)
        answers = [partition, topic["explanation"], broker["explanation"], controller]
        assert [answer["is_well"] for answer in answers] == [is_well] * 3 + [True]
        assert {answer["as_of_ms"] for answer in answers} == {at_ms or incident.history.now_ms}
        assert [line["leader"] for line in topic["partitions"]] == ([2] if is_well else [-1])
        assert any(line["causes"] for line in broker["map"]["lines"]) is bool(partition["findings"]) is not is_well
    assert asked("brokers/2", meanwhile_ms)["explanation"]["since"]["ms"] == incident.died_ms
    oldest = history(exporter).kept_since_ms
    assert asked("topics/payments/0", 1)["as_of_ms"] == oldest


def test_what_was_not_there_at_the_moment_says_so(exporter, incident):
    at_ms = incident.died_ms
    for path in ("topics/none", "topics/none/0", "topics/payments/7", "brokers/9"):
        for prefix in ("", "/api/v1"):
            status, _, body = exporter.get(f"{prefix}/clusters/north/{path}?at={at_ms}")
            assert (status, f"As of {words_of(at_ms)} there was no".encode() in body) == (404, True)


def test_links_of_a_page_of_the_past_keep_the_moment(exporter, incident):
    at_ms = incident.died_ms + MINUTE_MS
    seen, waiting = set(), [f"/clusters/north/timeline?at={at_ms}"]
    while waiting:
        path = waiting.pop()
        seen.add(path.partition("?")[0])
        links = {html.unescape(link) for link in re.findall(r'href="(/clusters/north/[^"]+)"', exporter.page(path))}
        waiting += [link for link in links if f"at={at_ms}" in link and link.partition("?")[0] not in seen]
        to_explained = {link for link in links if re.search("/(topics/.|brokers/|controller)", link)}
        assert {link for link in to_explained if not link.endswith(f"at={at_ms}")} <= {path.partition("?")[0]}, path
    assert {f"/clusters/north/{page}" for page in ("topics/payments/0", "topics/payments", "brokers/2")} <= seen
    present = exporter.page("/clusters/north/topics/payments/0")
    assert "?at=" not in present
    assert "This is the past" not in present
    assert "This is the oldest kept moment" in exporter.page("/clusters/north/brokers/2?at=2001-01-01")
    found = exporter.page(f"/clusters/north/explain?of=payments-0&at={at_ms}")
    assert "<h1>Partition payments-0</h1>" in found
    assert "This is the past" in found


def test_the_page_of_a_cluster_shows_a_moment_or_says_that_it_is_not_kept(exporter, incident):
    then = exporter.page(f"/clusters/north?at={incident.died_ms + MINUTE_MS}")
    assert "This is the past" in then
    assert "payments-0" in then
    assert "This is the oldest kept moment" in exporter.page("/clusters/north?at=2001-01-01")


def test_a_timeline_may_be_of_one_subject(exporter, incident):
    found = history(exporter, "of=payments-0")
    assert found.timeline is not None
    named = {name for event in found.timeline.events for change in event.changes for name in change.partitions}
    assert named == {"payments-0"}
    nothing = history(exporter, "of=none-3")
    assert nothing.timeline is None
    assert nothing.overview.health is not None
    assert nothing.notes == ()
    assert history(exporter, "of=paymnts-0").notes == ("There is no paymnts-0. Did you mean payments-0?",)
    assert "Did you mean payments?" in exporter.page("/clusters/north/timeline?of=paymnts")


def test_what_is_not_kept_is_said_and_the_nearest_moment_is_shown(exporter, incident):
    found = history(exporter, "at=2001-01-01T00:00:00Z")
    assert found.at_ms == found.begin_ms == found.kept_since_ms
    assert "this is the oldest kept moment" in found.notes[0]
    assert history(exporter, "at=99999999999999").at_ms == incident.history.now_ms
    written = words_of(incident.died_ms).replace(" ", "T")
    assert history(exporter, f"at={written}").at_ms == incident.died_ms // 1000 * 1000
    assert exporter.get("/api/v1/clusters/south/timeline")[0] == 404


@pytest.mark.parametrize("query", ["at=soon", "at=" + "9" * 99, "window=7", "of=broker+x"])
def test_a_moment_that_is_none_says_what_is_expected(exporter, incident, query):
    pages = ["timeline"] + ["topics/orders", "topics/orders/0", "brokers/1", "controller"] * query.startswith("at=")
    for page in (f"{prefix}/clusters/north/{page}" for prefix in ("", "/api/v1") for page in pages):
        status, _, body = exporter.get(f"{page}?{query}")
        assert (status, re.search(b"Write|one of", body) is not None) == (400, True)


def test_where_there_are_no_transitions_that_is_said(tmp_path, start_exporter, rows):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as other:
        other.write(rows.controller(1), rows.gauges())
        other.page_with("/api/v1/clusters", '"unknown":null')
        found = eventually(lambda: history(other), lambda found: "still being read" not in "".join(found.notes))
    assert found.notes == ("the controller's actions are missing, because the outputs have no transitions",)
    assert found.timeline is not None


@pytest.mark.parametrize(
    ("scheme", "cluster"), [pytest.param("light", "north", marks=pytest.mark.nightly), ("dark", "hostile")]
)
def test_the_slider_goes_through_the_past_by_keyboard(exporter, incidents, visit, scheme, cluster):
    incident, page = incidents[cluster], visit.page
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{exporter.address}/clusters/{cluster}")
    page.get_by_role("navigation").get_by_role("link", name="Timeline").click()
    page.wait_for_url("**/timeline*")
    slider = page.get_by_role("slider", name="The cluster as of")
    assert slider.get_attribute("aria-valuetext") == words_of(incident.history.now_ms)
    slider.focus()
    for _ in range(3):  # a tenth of the way each, of which two are enough
        page.keyboard.press("PageDown")
    assert slider.get_attribute("aria-valuetext") != words_of(incident.history.now_ms)
    page.get_by_text("clients affected").first.wait_for()
    assert page.evaluate("document.activeElement.id") == "at"
    main = page.inner_text("main")
    assert "Its only replica is on broker 2." in (page.locator("#as-text").text_content() or "")
    assert "Broker 2 has been down since" in main
    assert visit.findings() == []
    page.get_by_role("link", name="Previous event").click()
    page.get_by_text("clients affected").first.wait_for()
    page.goto(f"{exporter.address}/clusters/{cluster}/timeline?at={incident.died_ms - 1}")
    page.get_by_text("online and in sync").first.wait_for()
    page.get_by_role("link", name="Next event").click()
    page.get_by_text("clients affected").first.wait_for()
    assert words_of(incident.died_ms) in page.inner_text("#at-words")
    page.goto(f"{exporter.address}/clusters/{cluster}/timeline?at={incident.died_ms + MINUTE_MS}")
    page.locator("#as-text > summary").click()
    for name in ("payments-0", "All partitions of payments", "payments-0"):
        page.get_by_role("link", name=name, exact=True).first.click()
        page.get_by_text(f"This is the past, as of {words_of(incident.died_ms + MINUTE_MS)}").wait_for()
        assert visit.findings() == []
    page.get_by_role("link", name="The present").click()
    page.get_by_text("led by broker 2").wait_for()
    page.goto(f"{exporter.address}/clusters/{cluster}/timeline?at={incident.died_ms + MINUTE_MS}")
    assert page.locator("main img, main script, [onerror]").count() == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
    assert visit.findings() == []


def test_the_timeline_needs_no_script(exporter, incident, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{exporter.address}/clusters/north/timeline?at={incident.died_ms + MINUTE_MS}")
    page.get_by_text("clients affected").first.wait_for()
    page.get_by_label("Show", exact=True).first.select_option("900")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**window=900**")
    page.get_by_text("clients affected").first.wait_for()
    context.close()
