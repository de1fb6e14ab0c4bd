"""Screenshots of the live page in every state that matters, for docs/page: `make pictures`.

Clusters are recorded ones, each at a moment of `recorded_cases`. `kontrast serve` and chromium are real.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser, FloatRect, sync_playwright

from dashboards.alerting.config import AlertmanagerConfig
from dashboards.exporter.config import ServeConfig
from questions.overview.impact_map import Moment
from tests.dashboards.conftest import Exporter, running_exporter
from tests.dashboards.page_cases import MINUTE_MS, Story
from tests.dashboards.recorded_cases import MOMENTS, recorded_story, replayed_rows
from tests.programs import program
from tests.rows import Rows
from tests.waiting import eventually
from transport.address import JournalAddress

_PICTURES: Final = Path(__file__).parents[2] / "docs" / "page"
_LAPTOP, _PHONE = (1280, 800), (390, 844)
_MARGIN: Final = 12  # pixels below the last element of a cut picture


class Shot(NamedTuple):
    """A picture, with its file's name, its page, and its viewport. It ends with `last`, if that names an element."""

    name: str
    path: str
    size: tuple[int, int] = _LAPTOP
    scheme: str = "light"
    last: str = ""


SHOTS: Final = (
    Shot("no-controller", "/clusters/no-controller"),
    Shot("broker-killed", "/clusters/broker-lost"),
    Shot("incident", "/clusters/broker-lost", (1000, 800), last="#impact"),
    Shot("shut-down", "/clusters/shut-down"),
    Shot("ghost", "/clusters/ghost"),
    Shot("zookeeper-lost", "/clusters/zookeeper-lost"),
    Shot("watch-dead", "/clusters/watch-dead"),
    Shot("migration", "/clusters/migration"),
    Shot("well", "/clusters/healthy"),
    Shot("rack-lost", "/clusters/rack-lost"),
    Shot("rack-lost-dark", "/clusters/rack-lost", scheme="dark"),
    Shot("rack-lost-phone", "/clusters/rack-lost", _PHONE),
    *(
        Shot(f"map-{moment.value}", f"/clusters/rack-lost?map={moment.value}")
        for moment in Moment
        if moment != Moment.NOW
    ),
    Shot("brokers-30", "/clusters/brokers-30"),
    Shot("brokers-200", "/clusters/brokers-200"),
    Shot("topics-2000", "/clusters/topics-2000"),
    Shot("long-name-phone", "/clusters/long-name", _PHONE),
    Shot("replayed", "/clusters/recorded"),
    Shot("all-clusters", "/"),
    Shot("timeline", "/clusters/rack-lost/timeline?window=300"),
    Shot("what-if", "/clusters/healthy/whatif?broker=1&broker=2&controlled=1"),
    Shot("broker", "/clusters/rack-lost/brokers/1"),
    Shot("brokers", "/clusters/rack-lost/brokers"),
    Shot("brokers-phone", "/clusters/rack-lost/brokers", _PHONE),
    Shot("topic", "/clusters/rack-lost/topics/ledger", scheme="dark"),
    Shot("timeline-phone", "/clusters/rack-lost/timeline", _PHONE),
)
"""Pictures of one server with all clusters."""

JOB_DEAD: Final = Shot("job-dead", "/clusters/job-dead")
"""Picture with a server of its own, because in all other pictures the job runs."""


def take(browser: Browser, address: str, shot: Shot) -> None:
    """Open the page and save its picture, without the footer, which names this machine's folder."""
    width, height = shot.size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if shot.scheme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(address + shot.path)
    while page.get_by_text("are still being read").count():  # the server reads transitions at the first request
        page.reload()
    page.locator("#result h2, #live, #history, main h1").first.wait_for()
    if "whatif" in shot.path:
        page.get_by_text("Before and after").wait_for()
    page.evaluate("document.querySelector('footer').remove()")
    end = page.locator(shot.last).bounding_box() if shot.last else None
    clip = None if end is None else FloatRect(x=0, y=0, width=width, height=end["y"] + end["height"] + _MARGIN)
    page.screenshot(path=_PICTURES / f"{shot.name}.png", full_page=True, clip=clip)
    context.close()


@contextmanager
def serving(directory: Path) -> Iterator[Exporter]:
    """Run a server over the journals in this directory, with addresses of runbooks."""
    directory.mkdir()
    runbooks = AlertmanagerConfig(runbook_url="https://kontrast.example/runbooks", stale_after_seconds=31)
    config = ServeConfig(source=JournalAddress(directory), listen="127.0.0.1:0", alertmanager=runbooks)
    with running_exporter(config) as exporter:
        yield exporter


def written(exporter: Exporter, stories: list[Story]) -> None:
    """Write the stories up to now, and wait until the server has read them."""
    for story in stories:
        if story.cluster != "watch-dead":
            story.to_the_present(session="suspended" if story.cluster == "zookeeper-lost" else "connected")
        exporter.write(*story.rows())
    newest = [f'"as_of_ms":{story.now_ms}' for story in stories]
    eventually(lambda: exporter.page("/api/v1/clusters"), lambda text: all(each in text for each in newest))


def main() -> None:
    """Take every picture."""
    rows = Rows()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        stories = [recorded_story(name) for name in MOMENTS if name != JOB_DEAD.name]
        with serving(Path(scratch) / "outputs") as exporter:
            exporter.write(*replayed_rows(Path(scratch)))
            for shot in SHOTS:
                written(exporter, stories)
                exporter.write(rows.job(time_ms=time.time_ns() // 1_000_000, clusters={}))
                eventually(lambda: "is silent" in exporter.page("/clusters/watch-dead"))
                take(browser, exporter.address, shot)
        with serving(Path(scratch) / "dead") as exporter:
            exporter.write(*recorded_story(JOB_DEAD.name).rows())
            exporter.write(rows.job(time_ms=time.time_ns() // 1_000_000 - 2 * MINUTE_MS, clusters={}))
            exporter.page_with("/api/v1/clusters", "`kontrast stream` is silent")
            take(browser, exporter.address, JOB_DEAD)
        browser.close()


if __name__ == "__main__":
    main()
