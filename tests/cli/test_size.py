"""`kontrast size`: the formula stays above the measurements that it comes from."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cli.capacity import Capacity
from cli.main import main

# Megabytes by `make bench-capacity`: partitions, watch, Python and Java of the job, serve.
MEASURED = [(2_000, 24, 390, 553, 56), (20_000, 33, 445, 541, 85), (200_000, 161, 748, 575, 366)]


@pytest.mark.parametrize(("partitions", "watch", "python", "java", "serve"), MEASURED)
def test_the_memory_is_what_was_measured_and_up_to_a_quarter_more(partitions, watch, python, java, serve):
    capacity = Capacity(clusters=1, partitions=partitions, changes_per_second=70)
    for measured, needed in zip((watch, python, java, serve), capacity.memory_mb.values(), strict=True):
        assert measured <= needed <= 1.25 * measured
    assert capacity.memory_limit_mb > 1.25 * sum(capacity.memory_mb.values())


def test_more_changes_need_more_cores_and_disk_and_longer_retention_too():
    little, much = (Capacity(clusters=1, partitions=100, changes_per_second=rate) for rate in (1, 2_000))
    longer = Capacity(clusters=1, partitions=100, changes_per_second=1, days=14)
    assert (little.cores, much.cores) == (2, 4)
    assert little.outputs_bytes < longer.outputs_bytes < much.outputs_bytes
    assert little.retain_bytes >= little.changes_bytes


def test_it_is_printed_for_people_and_for_programs():
    shown = CliRunner().invoke(main, ["size", "--partitions", "20000", "--days", "2"])
    assert shown.exit_code == 0
    assert "MemoryMax=" in shown.stdout
    assert "retention.ms=172800000" in shown.stdout
    printed = CliRunner().invoke(main, ["size", "--partitions", "20000", "--json"])
    assert json.loads(printed.stdout)["cores"] == 2
    assert CliRunner().invoke(main, ["size"]).exit_code == 2
