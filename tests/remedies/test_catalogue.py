"""Every remedy is followed on real clusters of the releases that it names, and keeps its promise."""

from __future__ import annotations

import pytest

from tests.remedies.situations import CASES
from tests.remedies.table import REMEDIES

# Each case once for each release, because several remedies can share a case, which leaves a topic of its name.
_TRIED = sorted(
    {
        (release, CASES[name].__name__)
        for name, remedy in REMEDIES.items()
        for release in remedy.tried_on
        if name in CASES
    }
)
_BY_NAME = {case.__name__: case for case in CASES.values()}


@pytest.mark.nightly
@pytest.mark.xdist_group("remedies")
@pytest.mark.parametrize(("cluster", "name"), _TRIED, indirect=["cluster"], ids=[f"{r}-{n}" for r, n in _TRIED])
def test_a_remedy_keeps_its_promise(cluster, name):
    _BY_NAME[name](cluster)
