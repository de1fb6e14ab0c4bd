"""Screenshots of the live page for docs/page: `make pictures`.

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
from tests.dashboards.conftest import Exporter, running_exporter
from tests.dashboards.page_cases import Story
from tests.dashboards.recorded_cases import recorded_story
from tests.programs import program
from tests.rows import Rows
from tests.waiting import eventually
from transport.address import JournalAddress

_PICTURES: Final = Path(__file__).parents[2] / "docs" / "page"
_MARGIN: Final = 12  # pixels below the last element of a cut picture


class Shot(NamedTuple):
    """A picture, with its file's name, its page, and its viewport. It ends with `last`, if that names an element."""

    name: str
    path: str
    size: tuple[int, int] = (1280, 800)
    last: str = ""


SHOTS: Final = (
    Shot("well", "/clusters/healthy"),
    Shot("what-if", "/clusters/healthy/whatif?broker=1&broker=2&controlled=1"),
    Shot("broker-killed", "/clusters/broker-lost"),
    Shot("incident", "/clusters/broker-lost", (1000, 800), last="#impact"),
    Shot("rack-lost", "/clusters/rack-lost"),
    Shot("timeline", "/clusters/rack-lost/timeline?window=300"),
    Shot("no-controller", "/clusters/no-controller"),
    Shot("migration", "/clusters/migration"),
)
"""Pictures of one server with all clusters."""


def take(browser: Browser, address: str, shot: Shot) -> None:
    """Open the page and save its picture, without the footer, which names this machine's folder."""
    width, height = shot.size
    context = browser.new_context(viewport={"width": width, "height": height})
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
        exporter.write(*story.to_the_present().rows())
    newest = [f'"as_of_ms":{story.now_ms}' for story in stories]
    eventually(lambda: exporter.page("/api/v1/clusters"), lambda text: all(each in text for each in newest))


def main() -> None:
    """Take every picture."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        stories = [recorded_story(name) for name in sorted({shot.path.split("/")[2] for shot in SHOTS})]
        with serving(Path(scratch) / "outputs") as exporter:
            for shot in SHOTS:
                written(exporter, stories)
                exporter.write(Rows().job(time_ms=time.time_ns() // 1_000_000, clusters={}))
                take(browser, exporter.address, shot)
        browser.close()


if __name__ == "__main__":
    main()
