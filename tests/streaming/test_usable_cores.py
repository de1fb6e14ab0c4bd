"""Cores within an affinity and the quotas of control groups."""

from __future__ import annotations

import os

import pytest

from streaming.config import usable_cores


@pytest.fixture
def affinity(monkeypatch):
    """Let this process have eight cores, whatever the machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"pod/cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n", "pod/cpu.max": "400000 100000\n"}, 1),  # a group above has less
        ({"pod/cpu.max": "99900000 100000\n"}, 8),
        ({"pod/cpu.max": "nonsense"}, 8),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),  # version 1
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
def test_a_quota_limits_the_cores_of_the_affinity(quotas, expected, affinity, tmp_path):
    own, groups = tmp_path / "own", tmp_path / "groups"
    own.write_text("12:cpu:/other\n0::/pod\n")
    for name, quota in quotas.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(quota)
    assert usable_cores(own, groups) == expected


def test_without_control_groups_the_affinity_counts(affinity, tmp_path):
    assert usable_cores(tmp_path / "none", tmp_path / "none") == 8


def test_this_process_has_a_core():
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
