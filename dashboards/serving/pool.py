"""Limits on the work that clients can cause: few threads, a bounded wait, and no work for a client that left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import anyio
from anyio import CapacityLimiter, Semaphore, to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

WAIT_SECONDS: Final = 5.0
RETRY_AFTER_SECONDS: Final = 5
BUSY: Final = f"Kontrast computes other pages at the moment. Ask again in {RETRY_AFTER_SECONDS} seconds."


class Pool:
    """Threads for answers that take long to compute.

    Python computes in one thread at a time, so more threads finish no earlier, but delay the event loop.
    """

    def __init__(self, threads: int) -> None:
        self._free = Semaphore(threads)
        self._threads = CapacityLimiter(math.inf)  # without a limit, because `_free` limits the threads

    async def answer(
        self,
        request: Request,
        make: Callable[[Request], Response],
        at_hand: Callable[[Request], Response | None] = lambda _: None,
    ) -> Response:
        """Make the answer in a thread, unless the client has left. Raise HTTPException 503 if none is free in time.

        An answer that is `at_hand` needs no thread. While others waited for one, it may have been made.
        """
        if (answer := at_hand(request)) is not None:
            return answer
        try:
            with anyio.fail_after(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise HTTPException(503, BUSY, {"Retry-After": str(RETRY_AFTER_SECONDS)}) from None
        try:
            if await request.is_disconnected():
                return Response()  # no client is left to read it
            answer = at_hand(request)
            return await to_thread.run_sync(make, request, limiter=self._threads) if answer is None else answer
        finally:
            self._free.release()
