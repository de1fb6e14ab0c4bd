"""Every step that mends a flawed znode is followed on real clusters of three releases."""

from __future__ import annotations

import pytest

from controller.contract.consequences import CONSEQUENCES, Release
from tests.remedies.mending_steps import RELEASES, STEPS, TRIED_ELSEWHERE, UNTRIED


def pair_of(release: str) -> Release:
    major, minor, _ = release.split(".")
    return int(major), int(minor)


TRIED = [
    (release, name)
    for release in RELEASES
    for name, each in STEPS.items()
    if each.consequence(pair_of(release)) is not None
]


@pytest.mark.nightly
@pytest.mark.xdist_group("remedies")
@pytest.mark.parametrize(("cluster", "name"), TRIED, indirect=["cluster"], ids=[f"{r}-{n}" for r, n in TRIED])
def test_a_step_mends_its_znode(cluster, name):
    STEPS[name].do(cluster)


def test_each_step_of_the_table_is_followed():
    followed = {
        found.mend for each in STEPS.values() for release in RELEASES if (found := each.consequence(pair_of(release)))
    }
    for place, flaw in TRIED_ELSEWHERE:
        followed |= {row.mend for row in CONSEQUENCES[place] if flaw in row.flaws}
    assert {row.mend for rows in CONSEQUENCES.values() for row in rows} - followed == UNTRIED
