"""kazoo's worker threads, once for all sessions of a process instead of two for each."""

from __future__ import annotations

import threading
from typing import ClassVar

from kazoo.handlers.threading import SequentialThreadingHandler


class SharedThreadsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Handler of one client that hands its callbacks to two threads of the process.

    Callbacks of all sessions run one after another, so they must not wait. Kontrast's only leave states in an inbox.
    The threads stay for the life of the process, because the next session needs them again.
    """

    _workers_of_all: ClassVar[SequentialThreadingHandler | None] = None
    _starting: ClassVar[threading.Lock] = threading.Lock()

    def start(self) -> None:
        """Take the queues of the process's threads, which the first session starts."""
        with self._starting:
            if SharedThreadsHandler._workers_of_all is None:
                SharedThreadsHandler._workers_of_all = SequentialThreadingHandler()
                SharedThreadsHandler._workers_of_all.start()
            workers = SharedThreadsHandler._workers_of_all
        self.callback_queue, self.completion_queue = workers.callback_queue, workers.completion_queue
        self._running = True

    def stop(self) -> None:
        """End this client's use. Its waiting callbacks still run."""
        self._running = False
