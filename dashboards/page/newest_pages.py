"""Newest rendering of each page, which its viewers share."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakValueDictionary


class PageState(NamedTuple):
    """State of a page. Two renderings of the same address and state are equal."""

    version: int  # of the rows that the page shows
    second: int  # since 1970, because pages show ages


class RenderedPage(NamedTuple):
    """A page as it is, and compressed. Sending 124 kB as it is to each of 50 viewers took longer than rendering it."""

    plain: bytes
    gzipped: bytes


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
        return page if kept_state == state else None

    def made(self, address: str, state: PageState, make: Callable[[], bytes]) -> RenderedPage:
        """Return the page of this state. If another thread renders it just now, wait for that."""
        with self._being_made.setdefault(address, threading.Lock()):
            page = self.kept(address, state)
            if page is None:
                plain = make()
                page = RenderedPage(plain, gzip.compress(plain, compresslevel=1))
                # Replaced as a whole, because other threads read it meanwhile.
                of_now = {known: kept for known, kept in self._pages.items() if kept[0].second >= state.second}
                self._pages = {**of_now, address: (state, page)}
        return page
