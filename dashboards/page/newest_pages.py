"""Settings of the pages, and the newest rendering of each page, which its viewers share."""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from dashboards.alerting.config import STALE_AFTER_SECONDS
from questions.page.incident_cards import Presentation


@dataclass(frozen=True, slots=True, kw_only=True)
class PageConfig(Presentation):
    """Settings of the page, which include the settings of overviews."""

    source: str = ""  # the outputs in words, for the foot of each page
    stale_after_ms: int = int(STALE_AFTER_SECONDS * 1000)  # age of a heartbeat at which its cluster is unknown
    links: tuple[str, ...] = ()  # other pages that are switched on


# The pages of 200,000 partitions that are all offline take 8 s each.
_SLOW_SECONDS: Final = 2.0
# Parts that only follow the clock. The browser lets ages go on by itself, from the times in their elements.
_CLOCKS: Final = re.compile(
    rb'(<time id="age")[^>]*>[^<]*|(data-since="\d+"[^>]*>)[^<]*|data-now="\d+"|\bseen=\d+|\bat=\d+(&amp;map=)'
)
_HEARD: Final = re.compile(rb'<time id="age" datetime="([^"]+)"')


class PageState(NamedTuple):
    """State of a page. Two renderings of the same address and state are equal."""

    version: int  # of the rows that the page shows
    second: int  # since 1970, because pages show ages


class RenderedPage(NamedTuple):
    """A page as it is, and compressed. Sending 124 kB as it is to each of 50 viewers took longer than rendering it."""

    plain: bytes
    gzipped: bytes
    tag: str  # equal for pages of one state
    heard: str  # time of the newest heartbeat, empty if the page has none
    until: float = 0  # by the monotonic clock: a slow page stays current for as long as it took, so others get a turn


def compressed(plain: bytes, level: int = 1) -> RenderedPage:
    """Return the page in both forms, with the tag of its state."""
    tag = hashlib.blake2b(_CLOCKS.sub(rb"\1\2\3", plain), digest_size=12).hexdigest()
    heard = _HEARD.search(plain)
    return RenderedPage(plain, gzip.compress(plain, level), f'W/"{tag}"', heard[1].decode() if heard else "")


class NewestPages:
    """Pages of this second, by address. All viewers of a cluster request its page at each change, so one is for all.

    Pages of earlier seconds are dropped, because nobody gets them any more. Sixty-four of them took 6 MB between other
    objects, and the gaps that they left took more.
    """

    def __init__(self) -> None:
        self._pages: dict[str, tuple[PageState, RenderedPage]] = {}
        self._being_made: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def kept(self, address: str, state: PageState) -> RenderedPage | None:
        """Return the page of this state, if it is already rendered."""
        kept_state, page = self._pages.get(address, (None, None))
        return page if page is not None and (kept_state == state or time.monotonic() < page.until) else None

    def made(self, address: str, state: PageState, make: Callable[[], bytes]) -> RenderedPage:
        """Return the page of this state. If another thread renders it just now, wait for that."""
        with self._being_made.setdefault(address, threading.Lock()):
            page = self.kept(address, state)
            if page is None:
                began = time.monotonic()
                plain = make()
                now = time.monotonic()
                took = now - began
                page = compressed(plain)._replace(until=now + took if took > _SLOW_SECONDS else now)
                # Replaced as a whole, because other threads read it meanwhile.
                current = {
                    known: kept
                    for known, kept in self._pages.items()
                    if kept[0].second >= state.second or kept[1].until > now
                }
                self._pages = {**current, address: (state, page)}
        return page
