"""Every remedy is followed on real clusters of the releases that it names, and keeps its promise."""

from __future__ import annotations

import pytest

from controller.contract.remedies.table import REMEDIES
from tests.remedies.situations import CASES

_TRIED = sorted((release, name) for name, remedy in REMEDIES.items() for release in remedy.tried_on if name in CASES)


@pytest.mark.nightly
@pytest.mark.xdist_group("remedies")
@pytest.mark.parametrize(("cluster", "name"), _TRIED, indirect=["cluster"], ids=[f"{r}-{n}" for r, n in _TRIED])
def test_a_remedy_keeps_its_promise(cluster, name):
    CASES[name](cluster)
