"""What an open page fetches, and in which order its lists begin, in a real browser."""

from __future__ import annotations

import gzip
import re
import time

import pytest

from dashboards.exporter.config import ServeConfig
from dashboards.page.newest_pages import compressed
from questions.timeline.events import EntryKind
from tests.dashboards import page_cases
from tests.dashboards.page_cases import Story
from tests.waiting import eventually
from transport.address import JournalAddress

pytestmark = pytest.mark.xdist_group("browser")

HOME = "/clusters/brokers-200"


@pytest.fixture(scope="module")
def served(tmp_path_factory, start_exporter):
    """Run a server with 200 brokers, one of them down."""
    config = ServeConfig(source=JournalAddress(tmp_path_factory.mktemp("outputs")), listen="127.0.0.1:0")
    with start_exporter(config) as running:
        story = page_cases.two_hundred_brokers()
        running.write(*story.rows())
        running.page_with("/api/v1/clusters", '"cluster":"brokers-200","unknown":null')
        yield running, story


@pytest.fixture
def exporter(served):
    return served[0]


def beat(served, ms: int = 1_000) -> None:
    """Send a heartbeat without news, and wait until the server has read it."""
    exporter, story = served
    story.heartbeat(ms)
    exporter.write(*story.rows())
    exporter.page_with("/api/v1/clusters/brokers-200", f'"as_of_ms":{story.now_ms}')
    time.sleep(1.1)  # a page is kept for its second


def within_a_minute(seconds: float = 10) -> None:
    """Wait for the next minute if this one ends so soon, because the strip of time ends with a minute."""
    left = 60 - time.time() % 60
    if left < seconds:
        time.sleep(left)


@pytest.mark.parametrize("path", [HOME, f"{HOME}/brokers", f"{HOME}/topics", "/"])
def test_a_heartbeat_without_news_is_answered_304(served, path):
    exporter, _ = served
    within_a_minute()
    _, first, body = exporter.get(path)
    beat(served)
    status, then, rest = exporter.get(path, **{"If-None-Match": first["etag"]})
    assert (status, rest, then["etag"]) == (304, b"", first["etag"])
    assert ("heard" in then) is (path != "/")
    if path != "/":
        assert then["heard"] > first["heard"]
        assert f'datetime="{first["heard"]}"' in body.decode()


def test_pages_that_differ_only_in_their_clocks_have_one_tag():
    one = b'<time id="age" datetime="2026-11-24T00:21:38.937Z" data-words="live,">live, 1 s ago</time> for '
    other = one.replace(b"38.937", b"39.940").replace(b"1 s ago", b"2 s ago")
    began = b'<time data-since="%d">%b</time>'
    assert compressed(one + began % (7, b"4 s")).tag == compressed(other + began % (7, b"5 s")).tag
    assert compressed(one + began % (7, b"4 s")).tag != compressed(one + began % (8, b"4 s")).tag
    assert compressed(one).heard == "2026-11-24T00:21:38.937Z"


def test_ages_go_on_in_the_browser_and_a_hidden_page_asks_for_nothing(served, visit):
    within_a_minute(25)
    page, answers = visit.page, []
    page.on("response", lambda answer: answers.append((answer.url.rpartition("/")[2], answer.status)))
    page.goto(f"{served[0].address}{HOME}")
    age, heard = page.locator("h1 time[data-since]"), page.locator("#age")

    def seen() -> list[tuple[str, int]]:
        page.wait_for_timeout(300)  # Playwright hands over answers only while it waits
        return answers

    eventually(lambda: (beat(served), ("brokers-200", 304) in seen())[1])
    before, heard_before = age.inner_text(), heard.get_attribute("datetime")
    answers.clear()
    beat(served)
    eventually(lambda: age.inner_text() != before and heard.get_attribute("datetime") != heard_before)
    assert ("brokers-200", 304) in seen()
    page.evaluate("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(1_000)
    answers.clear()
    for _ in range(2):
        beat(served)
    assert seen() == []
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    eventually(lambda: any(name == "brokers-200" for name, _ in seen()))
    assert not page.locator("#lost").is_visible()


@pytest.mark.parametrize("name", ["static/live.js", "static/page.css", "static/icon-well.svg", "colours.css"])
def test_files_are_sent_compressed_and_once(exporter, name):
    _, headers, plain = exporter.get(f"/{name}")
    _, short, body = exporter.get(f"/{name}", **{"Accept-Encoding": "gzip"})
    assert (short["content-encoding"], gzip.decompress(body)) == ("gzip", plain)
    assert short["content-type"].split(";")[0] in ("text/javascript", "text/css", "image/svg+xml")
    assert exporter.get(f"/{name}", **{"If-None-Match": headers["etag"]})[0] == 304


@pytest.mark.parametrize(("width", "most"), [(1280, 1_000), (390, 1_300)])
def test_of_200_brokers_the_ones_that_are_away_come_first_on_one_screen(exporter, visit, width, most):
    page = visit.page
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{exporter.address}{HOME}/brokers")
    assert page.get_by_role("rowheader").first.inner_text() == "broker 17"
    assert page.evaluate("document.documentElement.scrollHeight") <= most
    page.get_by_label("Id, host, rack, release or state contains").fill("kafka-42.")
    page.get_by_role("rowheader", name="broker 42").wait_for()
    assert page.get_by_role("rowheader").count() == 1
    assert page.url.endswith("words=kafka-42.")
    page.get_by_label("Id, host, rack, release or state contains").fill("none such")
    page.get_by_text("No broker has none such in its").wait_for()
    assert visit.findings() == []


def test_the_timeline_is_complete_without_a_reload_and_shows_nothing_of_now(tmp_path, start_exporter, visit_at):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as exporter:
        story = Story("orders").begin().crash(1).to_the_present()
        exporter.write(*story.rows())
        exporter.page_with("/api/v1/clusters", '"cluster":"orders","unknown":null')
        page = visit_at(exporter, "/clusters/orders/timeline?window=900")
        page.locator("#history:not([data-again])").wait_for()
        page.get_by_text("BrokerChange: broker 1 left").first.wait_for()
        assert page.locator("#history .band, .counts, #impact, .incident").count() == 0
        times = page.locator(".events > li > a:first-child").all_inner_texts()
        assert times == sorted(times, reverse=True)
        assert page.locator(".events").bounding_box()["y"] < 900
        page.get_by_label("Events").select_option(EntryKind.ALERT.value)
        page.wait_for_url(re.compile("kind=alerts$"))  # of the present, because nobody moved the slider
        shown = page.locator(".events > li").all_inner_texts()
        assert shown
        assert all(re.search("(opened|resolved)", each) for each in shown)
        page.get_by_role("link", name="Previous event").click()
        page.wait_for_url(re.compile("kind=alerts.*at="))
        page.locator("#history .band").first.wait_for()


def test_news_changes_the_tag_and_a_late_answer_takes_no_typed_words_away(served, visit):
    exporter, story = served
    page, late = visit.page, []
    page.goto(f"{exporter.address}{HOME}/brokers")
    page.route(re.compile("/brokers$"), lambda route: late.append(route))  # noqa: PLW0108 (a method of its own)
    _, first, _ = exporter.get(HOME)
    story.broker_leaves(18)
    exporter.write(*story.rows())
    exporter.page_with(f"/api/v1{HOME}", '"brokers_away":2')
    assert exporter.get(HOME, **{"If-None-Match": first["etag"]})[0] == 200
    eventually(lambda: (page.wait_for_timeout(100), late)[1])
    page.get_by_label("Id, host, rack, release or state contains").fill("kafka-42.")
    page.wait_for_url("**words=kafka-42.")
    late[0].continue_()
    page.wait_for_timeout(700)  # the page has asked again, for the chosen brokers
    assert page.get_by_role("rowheader").all_inner_texts() == ["broker 42"]
    assert page.get_by_label("Id, host, rack, release or state contains").input_value() == "kafka-42."


@pytest.mark.parametrize("path", [HOME, f"{HOME}/timeline", f"{HOME}/topics/events-16", f"{HOME}/controller", "/"])
def test_no_sentence_has_a_transaction_or_a_listener_and_full_agreement_is_not_said(exporter, path):
    shown = re.sub(r"<dt>Evidence</dt><dd>.*?</dd>", "", exporter.page(path))
    assert re.findall(r"zxid 0x\w+|PLAINTEXT://\S+|agrees 100 %", re.sub("<[^>]+>", " ", shown)) == []
    assert "brokers-200" in shown
