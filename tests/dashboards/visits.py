"""Visits of the live page in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).parent / "axe" / "axe.min.js"
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)<\u202e'  # no znode's name has a slash


class Visit:
    """A visitor's page, with the browser's messages and requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: set[str] = set()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: self.asked.add(request.url.split("/")[2]))

    def findings(self) -> list[str]:
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        # The other results are large, and take the browser several times as long to hand over as to find.
        violations = self.page.evaluate("axe.run({resultTypes: ['violations']}).then(found => found.violations)")
        return [f"{each['id']}: {node['html']}" for each in violations for node in each["nodes"]]
