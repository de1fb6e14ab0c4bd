"""The live page in its important states, in a real browser. An earlier page had each of these lines wrong."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path
from urllib.parse import unquote, urlencode
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page

from controller.contract.alert_row import Severity
from controller.contract.outputs import OUTPUTS
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.exporter.config import ServeConfig
from dashboards.page.interface import API
from questions.check.state import State
from questions.clients.teams import read_teams
from questions.page.recent import KnownPast, hours_of
from tests.dashboards import components, page_cases
from tests.dashboards.page_cases import LONG_NAME, MINUTE_MS, Size, Story
from tests.dashboards.page_pictures import SHOTS
from tests.dashboards.recorded_cases import MOMENTS, recorded_story
from tests.dashboards.visits import Visit
from tests.lanes import in_gate
from tests.waiting import eventually
from transport.address import JournalAddress

pytestmark = pytest.mark.xdist_group("browser")

CASES = (
    page_cases.healthy,
    page_cases.shutdown,
    partial(recorded_story, "rack-lost"),
    page_cases.ghost,
    page_cases.zookeeper_lost,
    page_cases.long_name,
    page_cases.two_hundred_brokers,
)
DOCS = Path(__file__).parents[2] / "docs"
WIDTHS = (390, 768, 1280, 1920)
_WIDER_THAN_THE_SCREEN = (
    "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
)


@pytest.fixture(scope="module")
def stories(tmp_path_factory, start_exporter):
    """Run one server with a cluster for each case."""
    config = ServeConfig(source=JournalAddress(tmp_path_factory.mktemp("outputs")), listen="127.0.0.1:0")
    with start_exporter(config) as running:
        made = {story.cluster: story for story in (make() for make in CASES)}
        for story in made.values():
            running.write(*story.rows())
            running.page_with("/api/v1/clusters", f'"cluster":"{story.cluster}","unknown":null')
        yield running, made


@pytest.fixture
def exporter(stories):
    """Return the server, with a heartbeat of each cluster within the last half minute."""
    exporter, made = stories
    for story in made.values():
        if time.time_ns() // 1_000_000 - story.now_ms < 30_000:
            continue
        story.to_the_present(session="suspended" if story.cluster == "zookeeper-lost" else "connected")
        exporter.write(*story.rows())
        exporter.page_with(f"/api/v1/clusters/{story.cluster}", f'"as_of_ms":{story.now_ms}')
    return exporter


@pytest.fixture
def plain(browser):
    """Open a page without scripts."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def write_fleet(exporter, rows, count: int, crashed: int = 0) -> None:
    """Write clusters, the first of which have lost a broker."""
    crash = {"alert": "BrokerCrashed", "subject": "broker 2", "cause": "broker 2 crashed: no effect"}
    written, now = [], {"time_ms": time.time_ns() // 1_000_000}
    for number in range(count):
        of = {"cluster": f"team-{number:03}"}
        written += [rows.broker(1, **of), rows.controller(1, **of), rows.gauges(partitions=6, **of, **now)]
        written += [rows.alert("b", **crash, **of)] if number < crashed else []
    exporter.write(*sorted(written, key=lambda row: OUTPUTS.index(row.output)))
    eventually(lambda: exporter.page("/api/v1/clusters").count('"unknown":null') == count)


def open_page(visit: Visit, exporter, path: str) -> str:
    visit.page.goto(exporter.address + path)
    return visit.page.inner_text("main")


def test_lost_zookeeper_wins_over_red_and_greys_the_counts(exporter, visit):
    main = open_page(visit, exporter, "/clusters/zookeeper-lost")
    assert re.search(r"Not known, since [0-9:]{8}: Kontrast has lost ZooKeeper\.", main)
    assert visit.page.title() == "? zookeeper-lost: Kontrast has lost ZooKeeper"
    assert visit.page.locator("#icon").get_attribute("href") == "/static/icon-unknown.svg"
    assert visit.page.get_by_role("heading", name="Kontrast itself").is_visible()
    assert "ReplicaDisconnected" in main
    assert main.index("Kontrast itself") < main.index("Last known: Broker 1")
    assert visit.page.locator(".counts.stale").count() == 1
    weights = visit.page.locator(".counts b").evaluate_all("all => all.map(each => getComputedStyle(each).fontWeight)")
    assert set(weights) == {"400"}
    assert visit.page.locator(".pill.affected").count() == 0
    assert visit.findings() == []


@pytest.mark.parametrize(
    ("silent", "job_ago_ms"), [("kontrast watch", 9_000), ("kontrast stream", 2 * MINUTE_MS - 1_000)]
)
def test_the_page_of_one_cluster_names_the_silent_process(tmp_path, start_exporter, rows, visit_at, silent, job_ago_ms):
    judged = AlertmanagerConfig(stale_after_seconds=31)
    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", alertmanager=judged)
    with start_exporter(config) as exporter:
        story = Story("orders", minutes=6).begin().crash(1).to_the_present(silent_ms=2 * MINUTE_MS)
        exporter.write(*story.rows())
        exporter.page_with("/api/v1/clusters", '"cluster":"orders","unknown":null')
        exporter.page_with("/clusters/orders", "kontrast watch</code> or <code>kontrast stream</code> has stopped")
        exporter.write(rows.job(time_ms=time.time_ns() // 1_000_000 - job_ago_ms, clusters={}))
        exporter.page_with("/clusters/orders", f"<code>{silent}</code> is silent")
        page = visit_at(exporter, "/clusters/orders")
        main = page.inner_text("main")
        assert re.search(rf"Not known, since [0-9:]{{8}}: {silent} is silent\.", main)
        assert page.title() == f"? orders: {silent} is silent"
        assert page.inner_text("section.band .next") == f"Next step\nCheck whether {silent} runs, and read the log"
        assert re.search(rf"ReplicaStale.* since \S+ because {silent} is silent", main, re.DOTALL)


def test_a_dead_rack_keeps_its_place_on_the_map(exporter, visit):
    open_page(visit, exporter, "/clusters/rack-lost")
    words = visit.page.locator(".map.wide").evaluate("map => [...map.querySelectorAll('text')].map(e => e.textContent)")
    racks = [each for each in words if each.startswith("eu-")]
    assert racks == ["eu-1", "eu-2", "eu-3"]
    down = visit.page.locator(".map.wide [data-broker]:has([fill='url(#away)'])")
    assert down.evaluate_all("all => all.map(each => each.id)") == ["b-1", "b-4"]
    assert "3 ♛" in visit.page.locator("#b-3").inner_html()


AFFECTED = {"offline", "without-leader", "rejects-acks-all"}


def squares(page: Page) -> Counter[str]:
    """Return how many squares of the wide map are in each state."""
    uses = page.locator(".map.wide .square use").evaluate_all("all => all.map(each => each.getAttribute('href'))")
    return Counter(use.removeprefix("#") for use in uses)


def test_each_moment_of_the_map_shows_as_many_affected_partitions_as_its_link_says(exporter, plain):
    plain.goto(f"{exporter.address}/clusters/rack-lost")
    said = {}
    for moment in ("before", "first", "second", "loss", "now"):
        plain.locator(f"#map-{moment}").click()
        plain.wait_for_url(re.compile(f"map={moment}"))
        chosen = plain.locator(".choices [aria-current]")
        said[moment] = int(chosen.locator("b").inner_text())
        assert sum(count for state, count in squares(plain).items() if state in AFFECTED) == said[moment]
    assert (said["before"], said["now"], said["first"], said["second"]) == (0, 54, 6, 0)
    assert said["loss"] > said["now"]


def test_a_square_rings_its_brokers_and_leads_to_its_partition(exporter, visit):
    open_page(visit, exporter, "/clusters/rack-lost")
    square = visit.page.locator(".map.wide .square:has(use[href='#offline'])").first
    square.hover()
    ringed = visit.page.locator(".ringed").evaluate_all("all => all.map(each => each.dataset.broker)")
    assert ringed == (square.get_attribute("data-on") or "").split(" ")
    title = square.locator("title").evaluate("title => title.textContent")
    assert re.match(
        r"tmp_scratch-\d is offline since [0-9:]{8}Z\nno leader, in sync \d, replicas \d\nIts only replica is on", title
    )
    square.click()
    visit.page.get_by_role("heading", name=title.split(" ")[0]).wait_for()
    visit.page.go_back()
    visit.page.locator("#map-first").click()
    visit.page.wait_for_url(re.compile("map=first"))
    visit.page.get_by_text("all back").first.wait_for()
    tab_to(visit.page, ".map .square")
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("ArrowDown")
    assert "ledger-1" in visit.page.evaluate("document.activeElement.textContent")
    assert visit.findings() == []


def test_the_picture_of_the_map_stands_alone(exporter):
    status, headers, body = exporter.get("/clusters/rack-lost/map.svg?map=first")
    assert (status, headers["content-type"]) == (200, "image/svg+xml")
    picture = ElementTree.fromstring(body)
    assert (picture.get("width"), picture.get("height")) == ("1200", "630")
    text = "\n".join(picture.itertext())
    assert "rack-lost: Rack eu-1 is down." in text
    assert "4 left" in text
    assert b"var(" not in body
    assert b"<a " not in body
    assert exporter.get("/clusters/south/map.svg")[0] == 404


def test_a_phone_shows_every_incident_on_two_screens(exporter, visit):
    visit.page.set_viewport_size({"width": 390, "height": 844})
    for cluster in ("rack-lost", "long-name", "ghost", "zookeeper-lost"):
        open_page(visit, exporter, f"/clusters/{cluster}")
        incidents = visit.page.locator(".incident")
        ends = incidents.evaluate_all("all => all.map(each => each.getBoundingClientRect().bottom)")
        assert ends, cluster
        assert max(ends) <= 2 * 844, cluster
        assert visit.page.evaluate(_WIDER_THAN_THE_SCREEN) == 0, cluster


def test_the_timeline_keeps_the_beginning_of_the_incident(exporter, visit):
    address = "/clusters/rack-lost/timeline"
    main = eventually(lambda: open_page(visit, exporter, address), lambda text: "still being read" not in text)
    lanes = visit.page.locator("svg.lanes g > text:first-child > title").evaluate_all(
        "all => all.map(e => e.textContent)"
    )
    assert lanes[:5] == ["controller", "broker 1", "broker 2", "broker 3", "broker 4"]
    assert {"ledger (6)", "tmp_scratch (4)"} <= set(lanes)
    assert "PartitionsOffline of broker 1 opened" in main
    assert re.search(r"22 times (at once|within 0\.0\d s): ReplicaLeaderElection: the preferred replica of", main)
    open_page(visit, exporter, "/clusters/zookeeper-lost/timeline")
    assert visit.page.locator("svg.lanes rect.unknown").count() >= 5
    assert visit.findings() == []


@pytest.mark.parametrize("cluster", in_gate("long-name", of=["rack-lost", "long-name", "brokers-200"]))
def test_a_phone_shows_the_timeline_as_a_folded_list(exporter, visit, cluster):
    visit.page.set_viewport_size({"width": 390, "height": 844})
    open_page(visit, exporter, f"/clusters/{cluster}/timeline?at={time.time_ns() // 1_000_000}")
    assert not visit.page.locator("#picture").is_visible()
    lane = visit.page.locator(".phone > details").first
    assert re.match("(broker|[a-z_]+ )", lane.locator("b").inner_text())
    assert lane.locator("svg.lane .down").count() == 1
    lane.locator("summary").click()
    assert re.search(r"\d\d:\d\d:\d\d \(\d", lane.inner_text())
    lane.locator("summary").click()
    assert visit.page.evaluate("document.documentElement.scrollWidth") == 390
    assert visit.page.evaluate(_WIDER_THAN_THE_SCREEN) == 0
    incidents = visit.page.locator("[id^=incident-]")
    ends = incidents.evaluate_all("all => all.map(each => each.getBoundingClientRect().bottom)")
    assert ends
    assert max(ends) <= 2 * 844
    incidents.first.locator("summary").first.click()
    assert incidents.first.get_by_text("Start broker").first.is_visible()
    assert visit.findings() == []


def test_the_picture_zooms_by_dragging_and_by_keys(exporter, visit):
    open_page(visit, exporter, "/clusters/rack-lost/timeline?window=900")
    picture = visit.page.locator("#picture svg").bounding_box()
    assert picture is not None
    across = picture["y"] + picture["height"] / 2
    visit.page.mouse.move(picture["x"] + picture["width"] * 0.3, across)
    visit.page.mouse.down()
    visit.page.mouse.move(picture["x"] + picture["width"] * 0.4, across)
    visit.page.mouse.up()
    visit.page.wait_for_url(re.compile("window=(60|300)&"))
    visit.page.locator("#picture").focus()
    visit.page.keyboard.press("-")
    visit.page.wait_for_url(re.compile("window=(300|900)&"))
    assert visit.page.evaluate("document.activeElement.id") == "picture"


def test_a_ghost_is_no_controller(exporter, visit):
    main = open_page(visit, exporter, "/clusters/ghost")
    assert "No broker acts as controller" in main
    assert "/controller names broker 105, which does not act" in main
    assert "Broker 105 is controller" not in main
    assert "♛" not in visit.page.locator("#impact").inner_html()


def test_the_worst_cluster_is_first_with_its_reason_and_the_healthy_fold(exporter, visit):
    main = open_page(visit, exporter, "/")
    names = visit.page.locator(".line > a").all_inner_texts()
    assert names.index("rack-lost") == 0
    assert names[-1] == "healthy"
    assert "Rack eu-1 is down" in main
    assert "Kontrast has lost ZooKeeper" in main
    assert visit.page.title().startswith("● 6 of 7 clusters: rack-lost: Rack eu-1 is down")
    assert visit.page.locator(".line.affected .strip").first.get_attribute("aria-label") is not None
    visit.page.locator("#well > summary").click()
    assert visit.findings() == []


def test_one_incident_is_one_card_and_names_the_most_important_topic_first(exporter, visit):
    main = open_page(visit, exporter, "/clusters/rack-lost")
    assert visit.page.locator(".incident").count() == 1
    card = visit.page.locator(".incident")
    assert main.index("__consumer_offsets, ledger") > main.index("tmp_scratch are offline")  # offline ones first
    assert "Start broker 1" in visit.page.locator(".band .next").inner_text()
    command = "ssh kafka-1.example sudo systemctl start kafka"
    assert card.locator(".copy").first.get_attribute("data-copy") == command
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card.locator(".copy").first.click()
    assert visit.page.evaluate("navigator.clipboard.readText()") == command
    card.get_by_role("button", name="Copy as text").click()
    copied = visit.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert re.match(r"rack-lost: Rack eu-1 has been down since \S+ [0-9:]{8}Z: crashed\.", copied[0])
    assert copied[2].endswith(f"return. ({command})")
    card.get_by_text("2 alerts and evidence").click()
    assert {"PartitionsOffline", "BrokerCrashed"} <= set(re.findall(r"\w+", card.inner_text()))


def test_each_count_leads_to_its_list_and_the_footer_to_answers(exporter, visit):
    for cluster in ("rack-lost", "healthy"):
        open_page(visit, exporter, f"/clusters/{cluster}")
        counts = visit.page.locator(".counts a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
        assert len(counts) == 6
        for address in counts:
            if address.startswith("#"):
                assert visit.page.locator(address).is_visible(), address
            else:
                assert exporter.get(address)[0] == 200, address
    links = visit.page.locator("footer a").evaluate_all("all => all.map(each => each.pathname)")
    assert {link: exporter.get(link)[0] for link in links} == dict.fromkeys(links, 200)


def typed_into_search(visit: Visit, words: str) -> None:
    visit.page.keyboard.press("/")
    visit.page.keyboard.type(words)
    visit.page.get_by_role("option", name=words.lower().split()[-1]).first.wait_for()


@pytest.mark.parametrize(("words", "keys"), [("LEDGER", ("ArrowDown", "Enter")), ("edge", ("Enter",))])
def test_a_part_of_a_name_in_any_case_is_found_and_opened_by_keys(exporter, visit, words, keys):
    open_page(visit, exporter, "/clusters/rack-lost")
    typed_into_search(visit, words)
    assert visit.findings() == []
    for key in keys:
        visit.page.keyboard.press(key)
    visit.page.get_by_role("heading", name="Topic ledger").wait_for()


def test_search_suggests_partitions_brokers_and_keys_with_their_states(exporter, visit):
    for words, found in (
        ("ledger-3", r"ledger-3partition: \w.*"),
        ("broker 1", r"broker 1broker: down for .*"),
        ("ledg", r"ledgertopic: 6 partitions, \d reject acks=all"),
        ("key 4711 of ledger", r"ledger-\dpartition: has the key 4711, written as text, .*"),
    ):
        open_page(visit, exporter, "/clusters/rack-lost")
        typed_into_search(visit, words)
        assert re.fullmatch(found, visit.page.get_by_role("option").first.text_content() or ""), words


def test_search_answers_without_a_script(exporter, plain):
    for page_of, words, found in (
        ("/clusters/rack-lost", "key 4711 of ledger", r"^Partition ledger-\d"),
        ("/clusters/rack-lost", "broker 3", "^Broker 3"),
        ("/clusters/rack-lost", "LEDG", "^Topic ledger"),
        ("/clusters/rack-lost", "e", r"Search: e.*topic: \d+ partitions"),
        ("/clusters/rack-lost", "zzz", "Nothing"),
        ("/", "EVENTS-07", "^Topic events-07"),
        ("/", "gho", "^No broker acts as controller"),
        ("/", "ledg", "Search: ledg.*ledger of rack-lost"),
        ("/search?of=events-07", "zzz", "Nothing"),
    ):
        plain.goto(f"{exporter.address}{page_of}")
        assert plain.url == f"{exporter.address}{page_of}"
        plain.get_by_role("textbox", name="Search").fill(words)
        with plain.expect_navigation():
            plain.keyboard.press("Enter")
        assert re.search(found, plain.inner_text("main"), re.DOTALL | re.IGNORECASE), words
        answer = json.loads(exporter.page(f"{API}/search?{urlencode({'of': words})}"))
        assert answer["words"] == words, "JSON leads nowhere"


def test_an_update_moves_neither_scroll_nor_focus_nor_what_is_open(exporter, stories, visit):
    _, made = stories
    visit.page.set_viewport_size({"width": 390, "height": 600})
    open_page(visit, exporter, "/clusters/rack-lost")
    visit.page.locator("#as-text > summary").click()
    visit.page.locator("#n-b-2").scroll_into_view_if_needed()
    visit.page.locator("#n-b-2").focus()
    before = visit.page.evaluate(
        "[scrollY, document.querySelectorAll('details[open]').length, document.activeElement.id]"
    )
    shown = visit.page.locator("#age").get_attribute("datetime")
    time.sleep(1.1)  # the page shows seconds
    made["rack-lost"].heartbeat(1_500)
    exporter.write(*made["rack-lost"].rows())
    eventually(lambda: visit.page.locator("#age").get_attribute("datetime"), lambda text: text != shown)
    after = visit.page.evaluate(
        "[scrollY, document.querySelectorAll('details[open]').length, document.activeElement.id]"
    )
    assert after == before
    assert before[1:] == [1, "n-b-2"]


def test_two_hundred_healthy_clusters_fold_and_stay_readable(tmp_path, start_exporter, rows, visit_at):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as exporter:
        write_fleet(exporter, rows, 200)
        page = visit_at(exporter, "/")
        assert page.inner_text("h1") == "All 200 clusters are well."
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollHeight") <= 844
        page.locator("#well > summary").click()
        assert page.locator(".line").count() == 200
        assert page.evaluate("document.documentElement.scrollHeight") < 80 * 844 / 10
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate(_WIDER_THAN_THE_SCREEN) == 0


def test_clusters_with_one_reason_are_a_grid_and_are_found_by_words(tmp_path, start_exporter, rows, visit_at, plain):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as exporter:
        write_fleet(exporter, rows, 40, crashed=30)
        page = visit_at(exporter, "/")
        assert page.locator("summary").all_inner_texts() == [
            "30 clusters: degraded, BrokerCrashed",
            "10 clusters are well",
        ]
        page.get_by_label("Name, state or reason contains").fill("team-02")
        page.wait_for_url("**/?words=team-02")
        page.get_by_text("These have").wait_for()
        assert page.locator(".line > a").all_inner_texts() == [f"team-{number:03}" for number in range(20, 30)]
        plain.goto(f"{exporter.address}/?words=crash")
        assert plain.locator(".line").count() == 30
        plain.get_by_label("Name, state or reason contains").fill("nobody")
        plain.get_by_role("button", name="Show").click()
        assert plain.inner_text("h1") == "No cluster has nobody in its name, state or reason."
        for of, names in (
            (page, [f"team-{number:03}" for number in range(10, 20)]),
            (plain, [f"team-{number:03}" for number in range(40)]),
        ):
            of.goto(f"{exporter.address}/clusters/team-000")
            of.locator(".switch > summary").click()
            of.get_by_label("Clusters that contain").fill("-01")
            assert of.locator(".switch a:visible").all_inner_texts() == names
        assert Visit(page).findings() == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        plain.keyboard.press("Enter")
        plain.wait_for_url("**/?words=-01")
        assert plain.locator(".line > a").all_inner_texts() == [f"team-{number:03}" for number in range(10, 20)]


def test_two_hundred_brokers_are_on_the_first_screen_of_a_laptop(exporter, visit):
    visit.page.set_viewport_size({"width": 1280, "height": 800})
    open_page(visit, exporter, "/clusters/brokers-200")
    last = visit.page.locator("#b-200").bounding_box()
    assert last is not None
    assert last["y"] + last["height"] < 800
    assert visit.page.locator(".map.wide a[data-broker]").count() == 200


def test_no_page_is_wider_than_the_screen(exporter, visit):
    for path in ("/", *(f"/clusters/{name}" for name in ("rack-lost", "long-name", "healthy", "brokers-200"))):
        open_page(visit, exporter, path)
        for width in WIDTHS:
            visit.page.set_viewport_size({"width": width, "height": 844})
            assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} at {width}"


# Light pages are looked at by the tests of what they say.
@pytest.mark.parametrize("screen", in_gate(("dark", 390), of=product(("light", "dark"), WIDTHS)), ids=str)
def test_axe_finds_no_violation(exporter, visit, screen):
    scheme, width = screen
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.set_viewport_size({"width": width, "height": 844})
    of_rack_lost = ("", "/timeline", "/brokers", "/brokers/1", "/topics", "/topics/ledger", "/topics/ledger/0")
    for path in ("/", "/clusters/healthy", *(f"/clusters/rack-lost{page}" for page in of_rack_lost)):
        open_page(visit, exporter, path)
        assert visit.findings() == [], path


@pytest.mark.parametrize(("motion", "scrolls"), [("reduce", "auto"), ("no-preference", "smooth")])
def test_nothing_moves_if_the_reader_prefers_reduced_motion(exporter, visit, motion, scrolls):
    visit.page.emulate_media(reduced_motion=motion)
    open_page(visit, exporter, "/clusters/rack-lost")
    assert visit.page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == scrolls
    visit.page.locator("#as-text > summary").click()
    visit.page.locator(".map.wide .square").first.hover()
    moving = """[...document.querySelectorAll('*')].map((each) => getComputedStyle(each)).filter((style) =>
        style.animationName !== 'none' || style.transitionDuration !== '0s').length + document.getAnimations().length"""
    assert visit.page.evaluate(moving) == 0


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until this element has the focus, as a reader without a mouse does."""
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not reach {selector}")


def test_the_map_and_the_timeline_need_no_mouse(exporter, visit):
    open_page(visit, exporter, "/clusters/rack-lost")
    tab_to(visit.page, ".skip")
    visit.page.keyboard.press("Enter")
    tab_to(visit.page, "#b-2")
    assert visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    visit.page.keyboard.press("Enter")
    visit.page.get_by_role("heading", name="Broker 2", exact=True).wait_for()
    open_page(visit, exporter, "/clusters/rack-lost/timeline?window=900")
    tab_to(visit.page, "#at")
    visit.page.keyboard.press("ArrowLeft")
    visit.page.wait_for_url(re.compile("at="))
    tab_to(visit.page, "#picture")
    visit.page.keyboard.press("+")
    visit.page.wait_for_url(re.compile("window=300&"))


def test_without_a_script_every_page_answers_and_shows_no_dead_button(exporter, plain):
    plain.goto(f"{exporter.address}/clusters/rack-lost")
    assert plain.locator(".copy:visible, .search kbd:visible").count() == 0
    plain.locator("#as-text > summary").click()
    assert plain.locator("#as-text[open] dd a").first.is_visible()
    plain.get_by_role("link", name="Timeline", exact=True).first.click()
    plain.locator("#zoom-out").click()
    plain.locator("#window").select_option(label="an hour")
    plain.get_by_role("button", name="Show").click()
    assert plain.locator("svg.lanes g").count() > 5
    plain.get_by_role("link", name="What if", exact=True).click()
    plain.get_by_label("the whole rack eu-2").check()
    plain.get_by_role("button", name="Play it through").click()
    plain.get_by_role("link", name="Show the answer alone").click()
    assert "Before and after, the worst topic first" in plain.inner_text("main")
    plain.get_by_role("link", name="Topics", exact=True).click()
    plain.get_by_label("only affected topics").check()
    plain.get_by_role("button", name="Show").click()
    assert "ledger" in plain.inner_text("table")


def test_topics_are_sorted_by_links_that_keep_filter_and_moment(exporter, plain, visit):
    overview = f"{API}/clusters/rack-lost"
    before_ms = json.loads(exporter.page(overview))["incidents"][0]["since"]["ms"] - 1_000
    for at, level in (("", "affected"), (f"&at={before_ms}", "zero")):
        counts = json.loads(exporter.page(f"{overview}?{at}"))["health"]["counts"]
        totals = json.loads(exporter.page(f"{overview}/topics?{at}"))["totals"]
        assert (totals["topics"], totals["partitions"]) == (counts["topics"], counts["partitions"])
        damage = [totals[count] for count in ("unusable", "under_min_isr", "under_replicated")]
        assert damage == [counts[count] for count in ("leaderless", "under_min_isr", "under_replicated")]
        plain.goto(f"{exporter.address}/clusters/rack-lost/topics?words=r{at}")
        plain.get_by_role("link", name="Without a leader").click()
        assert f"?words=r{at}&sort=unusable" in plain.url
        head = plain.get_by_role("columnheader", name="Without a leader")
        assert head.get_attribute("aria-sort") == "descending"
        assert level in (plain.locator(".totals td").nth(1).get_attribute("class") or "")
        plain.get_by_label("Names that contain").fill("ledg")
        plain.get_by_role("button", name="Show").click()
        assert plain.get_by_role("rowheader").all_inner_texts() == ["Total", "ledger"]
        assert f"sort=unusable{at}" in plain.url
    visit.page.set_viewport_size({"width": 390, "height": 844})
    open_page(visit, exporter, "/clusters/rack-lost/topics")
    assert visit.page.get_by_role("link", name="Under-replicated").is_visible()
    assert visit.page.evaluate(_WIDER_THAN_THE_SCREEN) == 0


def test_the_switcher_and_the_brokers_need_no_script(exporter, plain):
    plain.goto(f"{exporter.address}/clusters/healthy")
    plain.get_by_role("link", name="Brokers", exact=True).click()
    plain.locator(".switch > summary").click()
    plain.locator(".switch").get_by_role("link", name="rack-lost").click()
    assert plain.url.endswith("/clusters/rack-lost/brokers")
    assert plain.get_by_role("rowheader").all_inner_texts() == [
        "broker 1",
        "broker 4",
        "broker 2",
        "broker 3 ♛ controller",
    ]
    row = plain.get_by_role("row", name="broker 1").inner_text()
    assert re.search(r"down for .*\skafka-1\.example\s+\d.* or later\s+0\s+\d+", row)
    plain.get_by_role("link", name="broker 1", exact=True).click()
    assert "Crashed; for" in plain.inner_text("main")
    assert "zxid" not in plain.inner_text("p.band")
    assert plain.locator("section:has(h2:text('The last minutes')) svg.lanes g").count() == 1


def test_long_names_are_whole_where_there_is_room_and_short_in_sentences(exporter, visit):
    open_page(visit, exporter, "/clusters/long-name")
    assert LONG_NAME in (visit.page.locator("#as-text").text_content() or "")
    assert LONG_NAME not in visit.page.inner_text("section.band")
    assert len(LONG_NAME) == 249


def test_the_time_zone_of_the_reader_stands_beside_utc(exporter, browser):
    context = browser.new_context(timezone_id="Asia/Kolkata")
    page = context.new_page()
    page.goto(f"{exporter.address}/clusters/rack-lost")
    assert re.search(r"since (..):(..):.. UTC, ..:.. local", page.inner_text("section.band"))
    context.close()


def test_a_setting_ranks_topics_and_another_offers_a_silence(tmp_path, start_exporter, visit_at):
    teams = read_teams({"tmp_*": {"rank": 1}, "ledger": {"rank": 200}})
    alertmanager = AlertmanagerConfig(urls=("http://127.0.0.1:1",))
    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", teams=teams, alertmanager=alertmanager)
    with start_exporter(config) as ranked:
        story = (
            Story("orders").begin(topics={"ledger": Size(6, 3, 3), "tmp_a": Size(8, 1, 1)}).crash(1).to_the_present()
        )
        ranked.write(*story.rows())
        ranked.page_with("/api/v1/clusters", '"cluster":"orders","unknown":null')
        page = visit_at(ranked, "/clusters/orders")
        assert page.locator("#as-text dt").all_text_contents() == ["tmp_a", "ledger"]
        silence = page.get_by_role("link", name="Silence Broker 1 (rack eu-1) is down").get_attribute("href")
        assert unquote(silence or "") == (
            f'{alertmanager.urls[0]}/#/silences/new?filter={{kafka_cluster="orders",group="broker 1"}}'
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_components_has_every_state_and_no_violation(browser, scheme):
    context = browser.new_context(color_scheme=scheme)
    with components.serving() as address:
        visit = Visit(context.new_page())
        visit.page.goto(address)
        assert {each.value for each in State} == set(
            visit.page.locator("section.band").evaluate_all("all => all.map(each => each.classList[1])")
        )
        assert visit.findings() == []
        assert visit.said == []
    context.close()


def test_each_picture_names_its_recording_and_moment():
    page = (DOCS / "explanation" / "page-compared.md").read_text(encoding="utf-8")
    shown = {MOMENTS[shot.path.split("/")[2]] for shot in SHOTS}
    assert {f"`{recording}`, {seconds} s" for recording, seconds, _ in shown} == set(
        re.findall(r"(`\w+`, \d+ s) \|", page)
    )
    taken = {shot.name for shot in SHOTS}
    assert taken == {file.stem for file in (DOCS / "page").iterdir()}
    assert all(f"](../page/{name}.png)" in page for name in taken)


def test_each_hour_has_its_worst_state_and_hours_before_the_past_have_none(rows):
    now_ms = 1_700_000_000_000
    hour_ms = 3_600_000
    opened = rows.alert("a", alert="BrokerAway", severity=Severity.WARN, since_ms=now_ms - 3 * hour_ms)
    ended = rows.alert(
        "a", alert="BrokerAway", state="resolved", severity=Severity.WARN, time_ms=now_ms - 2 * hour_ms - 1
    )
    paging = rows.alert("b", since_ms=now_ms - hour_ms // 2)
    hours = hours_of((opened, ended), KnownPast((paging,), now_ms - 5 * hour_ms, None, now_ms))
    assert hours == ("",) * 19 + ("well", "well", "degraded", "well", "affected")
    assert hours_of((), KnownPast((), now_ms, now_ms - 1, now_ms))[-1] == "unknown"
