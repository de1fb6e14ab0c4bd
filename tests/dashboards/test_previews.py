"""Previews of a Prometheus's answers, which state that they are not Grafana's pictures."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dashboards.preview.board import Filling, all_boards
from dashboards.preview.drawing import View, draw
from dashboards.preview.prometheus import Prometheus
from dashboards.preview.values import color_of, in_words
from tests.dashboards.incident import BEGIN, RATE_INTERVAL, SCRAPE_SECONDS

DOCS = Path(__file__).parents[2] / "docs"
BOARDS = all_boards()
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def prometheus(incident_prometheus: Prometheus) -> Prometheus:
    return incident_prometheus


def words(svg: str) -> list[str]:
    """Return all words in a picture, in order."""
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def drawn(uid: str, prometheus: Prometheus, cluster: str, seconds: int) -> str:
    (board,) = (board for board in BOARDS if board.uid == uid)
    filling = Filling(clusters=cluster, rate_interval=RATE_INTERVAL)
    return draw(board, prometheus, View(filling=filling, start=BEGIN, end=BEGIN + seconds, step_seconds=SCRAPE_SECONDS))


def test_numbers_rows_and_bars_are_what_prometheus_says(prometheus):
    told = words(drawn("kontrast-overview", prometheus, "south", 148))
    at = told.index("Offline by Kontrast")
    assert told[at : at + 6] == ["Offline by Kontrast", "4", "south", "Offline by JMX", "0", "south"]
    table = told.index("Offline partitions")
    assert told[table + 8 : table + 12] == ["south", "t13", "0", "no_live_in_sync_replica"]
    assert "controller" in told
    assert "south broker 4" in told


def test_a_cluster_without_jmx_says_so(prometheus):
    told = words(drawn("kontrast-overview", prometheus, "west", 100))
    assert told.count("JMX is not scraped") == 2
    assert "west by Kontrast" in told
    assert "west by JMX" not in told


def test_a_cluster_that_nothing_is_known_of_is_unknown_not_well(prometheus):
    told = words(drawn("kontrast-overview", prometheus, "nowhere", 100))
    assert told.count("unknown") >= 8
    assert "none known" in told


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_a_committed_preview_shows_every_panel_and_says_what_it_is(board):
    picture = DOCS / "boards" / f"{board.uid}.svg"
    assert picture.stat().st_size < 200_000
    told = words(picture.read_text(encoding="utf-8"))
    assert told[0].startswith("Preview of the board")
    assert "Grafana draws the same data" in told[1]
    shown = {word.removesuffix("…") for word in told}
    for panel in board.panels:
        assert any(panel.title.startswith(word) for word in shown if word), "run `make previews`"


def test_the_page_shows_every_board_and_every_alert_on_kontrast_itself():
    page = (DOCS / "reference" / "boards.md").read_text(encoding="utf-8")
    for board in BOARDS:
        assert f"](../boards/{board.uid}.svg)" in page
    rules = (DOCS.parent / "deploy" / "prometheus" / "kontrast-self.yml").read_text(encoding="utf-8")
    severities = re.findall(r"alert: (\w+)\n(?:.*\n)*?\s+severity: (\w+)", rules)
    assert re.findall(r"^\| \[(\w+)\]\(../runbooks/\1.md\) \| (\w+) \|", page, re.MULTILINE) == severities
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", page):
        assert (DOCS / "reference" / link).exists(), link


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0175, "s", "17.5 ms"),
        (0, "s", "0 s"),
        (234, "s", "3.9 min"),
        (12_345, "short", "12.3 K"),
        (0.6667, "percentunit", "66.7 %"),
        (2_000_000, "bytes", "1.91 MiB"),
        (2.5, "ops", "2.5/s"),
        (1, "bool_yes_no", "yes"),
        (1_700_000_000_000, "dateTimeAsIso", "2023-11-14 22:13:20"),
        (1795252145, "none", "1795252145"),
        (float("nan"), "short", "–"),
    ],
)
def test_a_value_reads_as_its_unit_says(value, unit, text):
    assert in_words(value, unit) == text


def test_the_colour_is_that_of_the_highest_limit_reached():
    steps = [{"value": None, "color": "green"}, {"value": 1, "color": "orange"}, {"value": 5, "color": "red"}]
    defaults = {"thresholds": {"steps": steps}}
    assert [color_of(value, defaults) for value in (0, 1, 4.9, 5)] == ["green", "orange", "orange", "red"]
