"""Many clients load the pages of a real `kontrast serve`; health and metrics answer, and memory stays bounded."""

from __future__ import annotations

import gzip
import threading
import time
from types import SimpleNamespace

import pytest

from dashboards.exporter.config import ServeConfig
from dashboards.page import newest_pages, routes
from dashboards.page.interface import API
from dashboards.page.newest_pages import NewestPages, PageState
from dashboards.serving import http
from lab.bench.serve import BROKERS, Outputs, serving
from questions.page.known_clusters import KnownCluster
from tests.dashboards.page_load import ask_and_leave, asking, at_once, slowest_seconds, status_of
from tests.waiting import eventually
from transport.address import JournalAddress

PARTITIONS = 20_000
BOUND_SECONDS = 2.0  # on a loaded machine, because an idle one needs a tenth
TIMELINE = "/clusters/bench/timeline?window=604800"
WHAT_IF = "/clusters/bench/consequences?broker=2"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Run a server in its own process, with 20,000 partitions and a past."""
    directory = tmp_path_factory.mktemp("load") / "outputs"
    directory.mkdir()
    outputs = Outputs(directory, PARTITIONS)
    outputs.write([*map(outputs.broker, range(BROKERS)), outputs.controller()])
    topics = outputs.write(map(outputs.partition, range(PARTITIONS)))
    with serving(directory) as running:
        running.wait_for(topics)
        running.wait_for(outputs.write(outputs.partition(at, leader_epoch=5) for at in range(3_000)))
        assert status_of(running.address, TIMELINE) == 200
        yield running


def test_health_and_metrics_answer_while_pages_are_asked_for(loaded):
    with at_once(loaded.address, TIMELINE, 60) as (busy, statuses):
        slowest = slowest_seconds(loaded.address, busy)
    print("60 timelines at once:", slowest)
    assert max(slowest.values()) < BOUND_SECONDS
    assert len(statuses) == 60
    assert set(statuses) <= {200, 503}


@pytest.mark.parametrize("path", [TIMELINE, WHAT_IF], ids=["timelines", "what-ifs"])
def test_requests_that_were_left_keep_nobody_waiting(loaded, path):
    ask_and_leave(loaded.address, path, 250)
    began = time.perf_counter()
    with at_once(loaded.address, path, 1) as (busy, statuses):
        slowest = slowest_seconds(loaded.address, busy)
    print("after 250 closed requests:", slowest, "and the page", time.perf_counter() - began)
    assert max(slowest.values()) < BOUND_SECONDS
    assert statuses == [200]


def test_what_ifs_that_were_left_are_not_computed(tmp_path, start_exporter, rows, monkeypatch):
    played = []
    whole = KnownCluster.whole

    def slowly(*asked):
        played.append(asked)
        time.sleep(1)
        return whole(*asked)

    monkeypatch.setattr(KnownCluster, "whole", slowly)
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as running:
        running.write(rows.broker(1), rows.controller(1), rows.gauges())
        running.metrics_with(r"^kontrast_ready\{.*\} 1")
        path = "/clusters/north/consequences?broker=1"
        ask_and_leave(running.address, path, 200)
        assert running.get(path)[0] == 200
    assert 1 <= len(played) <= 3  # the first may begin before its client leaves


def test_viewers_who_ask_at_once_share_one_rendering_in_the_form_that_each_accepts(exporter, rows, monkeypatch):
    exporter.write(rows.broker(1), rows.controller(1), rows.gauges())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    now_ms, threads, made = routes.now_ms(), [], NewestPages.made
    monkeypatch.setattr(routes, "now_ms", lambda: now_ms)  # a page is kept for a second
    monkeypatch.setattr(NewestPages, "made", lambda *asked: (threads.append(1), time.sleep(0.5), made(*asked))[2])
    with at_once(exporter.address, "/clusters/north", 40) as (busy, statuses):
        eventually(lambda: not busy())
    assert statuses == [200] * 40
    assert len(threads) <= 2  # one for each thread of the pool
    plain, compressed = (
        exporter.get("/clusters/north", **{"Accept-Encoding": accepted}) for accepted in ("identity", "gzip")
    )
    assert compressed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(compressed[2]) == plain[2]


@pytest.mark.parametrize(("prefix", "media_type"), [("", "text/html; charset=utf-8"), (API, "application/json")])
def test_a_full_pool_is_said_with_the_time_to_ask_again(exporter, rows, monkeypatch, prefix, media_type):
    monkeypatch.setattr(http, "WAIT_SECONDS", 0.1)
    begun, released = threading.Event(), threading.Event()
    whole = KnownCluster.whole
    monkeypatch.setattr(KnownCluster, "whole", lambda *asked: (begun.set(), released.wait(30), whole(*asked))[2])
    exporter.write(rows.broker(1), rows.controller(1), rows.gauges())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    path = f"{prefix}/clusters/north/consequences?broker=1"
    with asking(exporter.address, path):
        assert begun.wait(30)
        status, headers, body = exporter.get(path)
        assert (status, headers["retry-after"], headers["content-type"]) == (503, "5", media_type)
        assert http.BUSY in body.decode()
        assert exporter.get(f"{prefix}/clusters/north")[0] == 200  # other pages have their own threads
        released.set()


def test_a_page_is_kept_for_its_second():
    pages = NewestPages()
    first, second = PageState(1, 100), PageState(1, 101)
    pages.made("/", first, lambda: b"first")
    pages.made("/topics", first, lambda: b"topics")
    assert pages.made("/", first, lambda: b"not made again").plain == b"first"
    pages.made("/", second, lambda: b"second")
    assert pages.kept("/topics", first) is None
    assert pages.kept("/", second) == pages.made("/", second, lambda: b"not made again")


def test_a_slow_page_stays_current_for_as_long_as_it_took(monkeypatch):
    now = 100.0
    monkeypatch.setattr(newest_pages, "time", SimpleNamespace(monotonic=lambda: now))

    def slow() -> bytes:
        nonlocal now
        now += 8
        return b"slow"

    pages, later = NewestPages(), PageState(2, 108)
    pages.made("/", PageState(1, 100), slow)
    pages.made("/topics", later, lambda: b"topics")
    now += 7.9
    assert pages.made("/", later, lambda: b"not made again").plain == b"slow"
    now += 0.1
    assert pages.kept("/", later) is None
    assert pages.made("/", later, lambda: b"made again").plain == b"made again"
