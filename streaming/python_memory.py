"""Time and memory of Python's processes while they take in a complete read."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_MANY: Final = 10_000
_C: Final = ctypes.CDLL(None)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Build the objects of a batch without Python's collector, which would walk a complete read again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def return_free_memory(objects: int) -> None:
    """Return the free memory of so many objects to the system, if they are many. Otherwise glibc keeps it."""
    if objects >= _MANY and hasattr(_C, "malloc_trim"):
        _C.malloc_trim(0)


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
