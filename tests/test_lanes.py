"""Tests of one xdist group, run one after the other in one process, so that they share their servers."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.xdist_group("lanes")


@pytest.mark.parametrize("number", range(4))
def test_a_group_stays_in_one_process(number, worker_id, tmp_path_factory):
    seen = tmp_path_factory.getbasetemp().parent / "lanes"
    seen.mkdir(exist_ok=True)
    (seen / f"{worker_id}-{number}").touch()
    assert {file.name.split("-")[0] for file in seen.iterdir()} == {worker_id}
