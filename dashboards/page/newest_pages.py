"""Newest rendering of each page, which its viewers share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

_MOST: Final = 64


class PageState(NamedTuple):
    """State of a page. Two renderings of the same address and state are equal."""

    version: int  # of the rows that the page shows
    second: int  # since 1970, because pages show ages


class NewestPages:
    """Pages by address. All viewers of a cluster request its page at each change, so it is rendered once for all."""

    def __init__(self) -> None:
        self._pages: dict[str, tuple[PageState, bytes]] = {}
        self._being_made: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def kept(self, address: str, state: PageState) -> bytes | None:
        """Return the page of this state, if it is already rendered."""
        kept_state, page = self._pages.get(address, (None, b""))
        return page if kept_state == state else None

    def made(self, address: str, state: PageState, make: Callable[[], bytes]) -> bytes:
        """Return the page of this state. If another thread renders it just now, wait for that."""
        with self._being_made.setdefault(address, threading.Lock()):
            page = self.kept(address, state)
            if page is None:
                page = make()
                if len(self._pages) >= _MOST:
                    self._pages.clear()
                self._pages[address] = state, page
        return page
