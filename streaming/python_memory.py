"""Time and memory of Python's processes, most of all while they take in a complete read."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_MANY: Final = 10_000
# Of 273 MB of a `serve` that had rendered pages for an hour, 143 MB were free. To return free memory takes 13 ms of one
# heap with 64 MB in use and 62 ms with 413 MB, and 0.4 ms for each MB that it returns. Six visitors of a `serve` leave
# 30,000 objects a minute in circles. To collect them takes 80 to 104 ms beside 200,000 partitions with 6,000 alerts.
_RETURN_EVERY_SECONDS: Final = 60.0
_C: Final = ctypes.CDLL(None)
_returned_at = time.monotonic()


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Build the objects of a batch without Python's collector, which would walk a complete read again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def return_free_memory(objects: int = 0, *, collect: bool = False) -> None:
    """Return free memory to the system, which glibc keeps: once a minute, and at once that of many objects.

    With `collect`, objects that only refer to each other are removed before.
    """
    global _returned_at  # noqa: PLW0603 (a process has one C library)
    now = time.monotonic()
    if (objects >= _MANY or now >= _returned_at + _RETURN_EVERY_SECONDS) and hasattr(_C, "malloc_trim"):
        if collect:
            gc.collect()
        _C.malloc_trim(0)
        _returned_at = now


def leave_pandas_out() -> None:
    """Keep pandas out of a Python process of Spark. Pyspark and pyarrow import it only to compare types."""
    if not any(isinstance(finder, _WithoutPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder):
    """Finder for which pandas is not installed."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (Python's)
        target: ModuleType | None = None,  # noqa: ARG002 (Python's)
    ) -> ModuleSpec | None:
        """Return no module, so that the next finder looks. Raise ModuleNotFoundError for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError("Spark's Python processes do without pandas", name=fullname)
        return None
