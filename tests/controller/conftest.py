"""What counts as a run of the core's branches: deterministic tests alone, so that none is left to what is drawn."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)  # behind hypothesis, which marks its tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Draw without tracing: it takes a third of the time."""
    for item in items:
        if item.get_closest_marker("hypothesis"):
            item.add_marker("no_cover")
