"""Newest rendering of each page, which its viewers share."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

_MOST: Final = 64


class PageState(NamedTuple):
    """State of a page. Two renderings of the same address and state are equal."""

    version: int  # of the rows that the page shows
    second: int  # since 1970, because pages show ages


class RenderedPage(NamedTuple):
    """A page as it is, and compressed. Sending 124 kB as it is to each of 50 viewers took longer than rendering it."""

    plain: bytes
    gzipped: bytes


class NewestPages:
    """Pages by address. All viewers of a cluster request its page at each change, so it is rendered once for all."""

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
                if len(self._pages) >= _MOST:
                    self._pages.clear()
                self._pages[address] = state, page
        return page
