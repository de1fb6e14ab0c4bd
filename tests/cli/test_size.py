"""`kontrast size`: the formula stays above the measurements that it comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.capacity import Capacity
from cli.main import main

# Megabytes of `kontrast up`: partitions, watch, serve.
MEASURED = [(2_000, 24, 56), (20_000, 33, 85), (200_000, 161, 366)]
GROWTH = json.loads((Path(__file__).parents[2] / "docs" / "scale.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("partitions", "watch", "serve"), MEASURED)
def test_the_memory_is_what_was_measured_and_up_to_a_quarter_more(partitions, watch, serve):
    capacity = Capacity(clusters=1, partitions=partitions, changes_per_second=70)
    assert watch <= capacity.memory_mb["watch"] <= 1.25 * watch
    assert serve <= capacity.memory_mb["serve"] <= 1.25 * serve
    limits_mb = capacity.memory_limits_mb
    assert limits_mb["up"] > 1.25 * sum(capacity.memory_mb.values())
    assert limits_mb["up"] > limits_mb["stream"] > capacity.heap_mb
    assert limits_mb["serve"] >= 1.25 * serve


# Megabytes by `make bench-fleet`: clusters of 500 partitions, watch, stream with Java, serve.
FLEETS = [(60, 93, 851, 95), (200, 200, 1_026, 196)]


@pytest.mark.parametrize(("clusters", "watch", "stream", "serve"), FLEETS)
def test_the_memory_of_a_fleet_over_kafka_is_what_was_measured_or_more(clusters, watch, stream, serve):
    memory_mb = Capacity(clusters=clusters, partitions=clusters * 500, changes_per_second=1).memory_mb
    assert watch <= memory_mb["watch"] <= 1.3 * watch
    assert stream <= memory_mb["stream, Python"] + memory_mb["stream, Java"]
    assert serve <= memory_mb["serve"] <= 1.25 * serve


# The same of `watch` in a container of the image.
CONTAINERS = [(5, 50, 36), (60, 500, 98), (200, 500, 196)]


@pytest.mark.parametrize(("clusters", "partitions", "watch"), CONTAINERS)
def test_the_memory_of_watch_in_a_container_is_what_was_measured_or_more(clusters, partitions, watch):
    size = Capacity(clusters=clusters, partitions=clusters * partitions, changes_per_second=1)
    assert watch <= size.memory_mb["watch"] <= 1.3 * watch


# Megabytes on a standing Spark cluster with a master, and by `make bench-fleet` with an image, without:
# clusters, partitions, executors, and the driver, executors and daemons together.
SPARK_CLUSTERS = [
    (200, 400_000, 1, 2, 2_768),
    (200, 400_000, 2, 3, 3_830),
    (200, 400_000, 3, 4, 4_714),
    (60, 30_000, 3, 3, 3_576),
    (200, 100_000, 3, 3, 3_458),
]


@pytest.mark.parametrize(("clusters", "partitions", "executors", "daemons", "measured"), SPARK_CLUSTERS)
def test_the_memory_of_a_standing_spark_cluster_is_what_was_measured_or_more(
    clusters, partitions, executors, daemons, measured
):
    size = Capacity(clusters=clusters, partitions=partitions, changes_per_second=1, executors=executors)
    of_spark = {part: mb for part, mb in size.memory_mb.items() if part not in ("watch", "serve")}
    without = (executors + 1 - daemons) * of_spark["master or worker"]
    assert measured <= sum(mb * size.processes_of(part) for part, mb in of_spark.items()) - without <= 1.3 * measured
    assert size.memory_limits_mb.keys() == {"watch", "driver", "executor", "serve"}
    of_an_executor = sum(mb for part, mb in of_spark.items() if part.startswith("executor"))
    assert size.memory_limits_mb["executor"] > 1.25 * of_an_executor


@pytest.mark.parametrize(("partitions", "peak_mb"), [(20_000, 60), (200_000, 199)])
def test_the_limit_of_watch_alone_is_above_its_peak_in_a_complete_read(partitions, peak_mb):
    capacity = Capacity(clusters=1, partitions=partitions, changes_per_second=1)
    assert peak_mb < capacity.memory_limits_mb["watch"] < 1.25 * peak_mb


NEAR_UP_TO_PARTITIONS = 1_000_000  # the formula is a line through the runs up to there


@pytest.mark.parametrize("size", GROWTH)
def test_the_job_stays_within_its_memory_and_checkpoint(size):
    clusters, _, partitions = size.rpartition("x")
    figures, clusters = GROWTH[size]["figures"], int(clusters or 1)
    capacity = Capacity(clusters=clusters, partitions=clusters * int(partitions), changes_per_second=250)
    for part, needed_mb in (
        ("Python", capacity.memory_mb["stream, Python"]),
        ("Java", capacity.memory_mb["stream, Java"]),
        ("checkpoint", capacity.checkpoint_bytes / 1e6),
    ):
        most = max(figures[f"{part}, when ready"], figures[f"{part}, at the end"])
        assert most <= needed_mb, part
        if clusters == 1 and int(partitions) <= NEAR_UP_TO_PARTITIONS and part != "checkpoint":
            assert needed_mb <= 1.25 * most, part


@pytest.mark.parametrize(("clusters", "changes_per_second", "tasks"), [(1, 5_000, 1), (60, 1, 2), (60, 5_000, 10)])
def test_a_task_works_on_one_cluster_while_there_are_cores(clusters, changes_per_second, tasks):
    size = Capacity(clusters=clusters, partitions=20_000, changes_per_second=changes_per_second)
    assert size.tasks == tasks


def test_more_changes_need_more_cores_and_disk_and_longer_retention_too():
    little, much = (Capacity(clusters=1, partitions=100, changes_per_second=rate) for rate in (1, 2_000))
    longer = Capacity(clusters=1, partitions=100, changes_per_second=1, days=14)
    assert (little.cores, much.cores) == (2, 4)
    assert little.outputs_bytes < longer.outputs_bytes < much.outputs_bytes
    assert little.retain_bytes >= little.changes_bytes
    assert little.checkpoint_bytes < much.checkpoint_bytes


def test_it_is_printed_for_people_and_for_programs():
    shown = CliRunner().invoke(main, ["size", "--partitions", "20000", "--days", "2"])
    assert shown.exit_code == 0
    for command in ("up", "watch", "stream", "serve"):
        assert re.search(rf"MemoryMax=\d+M of kontrast@{command}\b", shown.stdout)
    assert "retention.ms=172800000" in shown.stdout
    printed = CliRunner().invoke(main, ["size", "--partitions", "20000", "--json"])
    assert json.loads(printed.stdout)["cores"] == 2
    assert CliRunner().invoke(main, ["size"]).exit_code == 2


def test_a_spark_cluster_has_limits_of_pods_in_place_of_the_unit_of_the_job():
    shown = CliRunner().invoke(main, ["size", "--partitions", "400000", "--clusters", "200", "--executors", "3"]).stdout
    assert re.search(r"limit of executor +[\d,]+ MB +memoryLimit of the executor", shown)
    assert "kontrast@stream" not in shown
    assert "spark.{driver,executor}.memory=1024m" in shown
    assert re.search(r"tasks of the job +3\b", shown)
    assert re.search(r"memory of executor, Java +\d+ MB +resident, each of 3\n", shown)
    assert re.search(r"memory of master or worker +\d+ MB +resident, each of 4\n", shown)
