"""Coverage of the core's branches, from deterministic tests alone.

Tests that draw their input run without tracing, so that no branch depends on a random draw.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)  # behind hypothesis, which marks its tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Switch tracing off for tests that draw their input. Tracing triples their run time."""
    for item in items:
        if item.get_closest_marker("hypothesis"):
            item.add_marker("no_cover")
