"""Visitors of the live page, who load pages with their files, and follow a page as its script does.

Their requests belong here. `tests/dashboards` tests the answers.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter

import httpx

from lab.soak.clusters import REAL, SYNTHETIC, SYNTHETIC_BROKERS

_FOLLOW_SECONDS = (5, 40)
_FILES = ("/static/page.css", "/static/icon-none.svg", "/static/idiomorph.min.js", "/static/live.js")
_CHANGES = re.compile(r'data-changes="([^"]+)"')
_TOPIC = re.compile(r'href="(/clusters/[^/"]+/topics/[^/"?]+)"')
_AGAIN_SECONDS = 0.5  # the script's own pause between an answer and the next question
_LATER_SECONDS = 1.0  # after a connection that was refused
_TIMEOUT_SECONDS = 60
_BUSY = (503,)  # valid answers, because the server may be too busy or without data yet


class Visitor:
    """One browser, until it is closed."""

    def __init__(self, listen: str, seed: int) -> None:
        self._address = f"http://{listen}"
        self._random = random.Random(seed)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._visit, name="visitor", daemon=True)
        self.answers: Counter[int] = Counter()
        self.errors: list[str] = []  # answers that no page may give
        self._thread.start()

    def close(self) -> None:
        """Leave."""
        self._closed.set()
        self._thread.join(_TIMEOUT_SECONDS)

    def _visit(self) -> None:
        while not self._closed.is_set():
            try:
                with httpx.Client(base_url=self._address, timeout=_TIMEOUT_SECONDS) as client:
                    for path in _FILES:
                        self._get(client, path)
                    for _ in range(self._random.randint(3, 10)):
                        self._look(client, self._path(client))
            except httpx.HTTPError:  # `kontrast serve` is being restarted
                self._closed.wait(_LATER_SECONDS)

    def _path(self, client: httpx.Client) -> str:
        cluster = self._random.choice((REAL, SYNTHETIC))
        root = f"/clusters/{cluster}"
        path = self._random.choice(("/", root, root, "topic", "topics", "broker", "controller", "timeline", "whatif"))
        if path == "topic":
            topics = _TOPIC.findall(self._get(client, f"{root}/topics"))
            path = self._random.choice(topics) if topics else root
            return path if self._random.random() < 0.5 else f"{path}/0"
        if path == "broker":
            broker = self._random.randint(1, 4) if cluster == REAL else self._random.choice(SYNTHETIC_BROKERS)
            return f"{root}/brokers/{broker}"
        if path == "timeline" and self._random.random() < 0.5:
            return f"{root}?at={time.time_ns() // 1_000_000 - self._random.randint(1, 600) * 1000}"
        return path if path.startswith("/") else f"{root}/{path}"

    def _look(self, client: httpx.Client, path: str) -> None:
        """Load a page and its JSON, and stay on it for a while."""
        page = self._get(client, path)
        if path != "/" and not path.endswith("whatif"):
            self._get(client, f"/api/v1{path}")
        followed = _CHANGES.search(page)
        if followed is not None:
            self._follow(client, path, followed[1].replace("&amp;", "&"))

    def _follow(self, client: httpx.Client, path: str, changes: str) -> None:
        until = time.monotonic() + self._random.uniform(*_FOLLOW_SECONDS)
        with client.stream("GET", changes) as events:
            for line in events.iter_lines():
                if self._closed.is_set() or time.monotonic() > until:
                    return
                if line.startswith("event:"):
                    self._get(client, path, {"HX-Request": "true", "HX-Target": "live"})
                    self._closed.wait(_AGAIN_SECONDS)

    def _get(self, client: httpx.Client, path: str, headers: dict[str, str] | None = None) -> str:
        answer = client.get(path, headers=headers)
        self.answers[answer.status_code] += 1
        if answer.status_code >= 500 and answer.status_code not in _BUSY:
            self.errors.append(f"GET {path} was answered with {answer.status_code}")
        return answer.text
