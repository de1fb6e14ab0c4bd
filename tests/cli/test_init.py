"""`kontrast init` on a real ZooKeeper, which writes a configuration of the cluster that it found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient

from cli.commands.run.init import Needs
from cli.main import main
from cli.settings.config import read_settings, serve_config, stream_config, watch_configs
from cli.settings.disagreements import refuse_parted_pipeline
from tests.clients import zookeeper_client
from tests.ingest.conftest import make_cluster, server_zxid


@pytest.fixture
def kafka(zookeeper) -> Iterator[KazooClient]:
    with zookeeper_client(zookeeper.connect_string) as client:
        yield client


def add_brokers(kafka: KazooClient, chroot: str) -> None:
    for broker, rack in ((2, "a"), (3, "b"), (4, "a")):
        registration = {"version": 5, "jmx_port": -1, "endpoints": [f"PLAINTEXT://b{broker}:9092"], "rack": rack}
        kafka.create(f"{chroot}/brokers/ids/{broker}", json.dumps(registration).encode(), ephemeral=True)
    topic = {
        "version": 3,
        "topic_id": "xAAAAAAAAAAAAAAAAAAAAA",
        "partitions": {str(partition): [2, 3] for partition in range(11)},
    }
    kafka.create(f"{chroot}/brokers/topics/orders", json.dumps(topic).encode())


def init(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["init", *map(str, arguments)])


def test_the_only_chroot_release_racks_and_sizes_are_found_and_nothing_is_written(kafka, zookeeper, tmp_path):
    make_cluster(kafka, "/prod/orders")
    add_brokers(kafka, "/prod/orders")
    file, before = tmp_path / "kontrast.toml", server_zxid(zookeeper)
    done = init("--zookeeper", zookeeper.connect_string, "--out", file, "--state", tmp_path / "state")
    assert done.exit_code == 0, done.stderr
    where = f"{zookeeper.connect_string}/prod/orders"
    says = f"orders at {where}: Kafka 2.8 to 3.3, 4 brokers in 2 racks: a (2, 4), b (3); 2 topics, 12 partitions"
    assert says in done.stderr
    assert file.read_text().startswith(f"# {says}.\n")
    assert server_zxid(zookeeper) - before == 6, "more than three sessions that come and go"

    settings = read_settings(file, {})
    (watch,) = watch_configs(settings, (), {})
    stream, serve = stream_config(settings, {}), serve_config(settings, {})
    refuse_parted_pipeline([watch], stream, serve)
    assert (watch.cluster, watch.zookeeper, watch.journal_retain_bytes) == ("orders", where, 2**29)
    assert (stream.driver_memory, stream.checkpoint) == ("1024m", f"{tmp_path}/state/checkpoint")
    assert {kept.seconds for kept in stream.retention.values()} == {7 * 86_400}

    again = init("--zookeeper", where, "--out", file)
    assert again.exit_code == 2
    assert f"{file} exists. Add the cluster to it with --add" in again.stderr


def test_a_cluster_is_added_to_a_file_whose_other_clusters_stay(kafka, zookeeper, tmp_path):
    for chroot in ("/a", "/b"):
        make_cluster(kafka, chroot)
    file = tmp_path / "kontrast.toml"
    first = ("--zookeeper", f"{zookeeper.connect_string}/a", "--out", file, "--state", tmp_path)
    second = ("--zookeeper", f"{zookeeper.connect_string}/b", "--out", file, "--add")
    assert init(*first).exit_code == 0
    before = file.read_text()
    assert init(*second, "--multi-read-paths", 7).exit_code == 0
    assert file.read_text().startswith(before)
    known = {each.cluster: each for each in watch_configs(read_settings(file, {}), (), {})}
    assert {name: each.zookeeper for name, each in known.items()} == {
        name: f"{zookeeper.connect_string}/{name}" for name in ("a", "b")
    }
    assert known["a"].to == known["b"].to
    assert (known["a"].multi_read_paths, known["b"].multi_read_paths) != (7, 7)
    assert known["b"].multi_read_paths == 7
    twice = init(*second)
    assert (twice.exit_code, f"{file} has cluster b already" in twice.stderr) == (2, True)
    missing = init(*second[:2], "--out", tmp_path / "none.toml", "--add")
    assert (missing.exit_code, "cannot read the configuration" in missing.stderr) == (2, True)


def test_of_several_chroots_a_person_chooses_one_and_the_settings_given_are_kept(kafka, zookeeper, tmp_path):
    for chroot in ("/a", "/b"):
        make_cluster(kafka, chroot)
    several = init("--zookeeper", zookeeper.connect_string, "--out", tmp_path / "kontrast.toml")
    assert several.exit_code == 2
    assert f"there is one at {zookeeper.connect_string}/a and at {zookeeper.connect_string}/b" in several.stderr
    chosen = init(
        "--zookeeper", f"{zookeeper.connect_string}/b", "--multi-read-paths", 7, "--cluster", "x", "--out", "-"
    )
    assert chosen.exit_code == 0
    assert '[clusters."x"]' in chosen.stdout
    assert "multi_read_paths = 7" in chosen.stdout


def test_what_was_found_is_one_object_for_programs(kafka, zookeeper, tmp_path):
    make_cluster(kafka)
    done = init("--zookeeper", zookeeper.connect_string, "--json", "--out", tmp_path / "kontrast.toml")
    found = json.loads(done.stdout)
    assert (found["cluster"], found["partitions"], found["racks"]) == ("kafka", 1, {"": [1]})


@pytest.mark.parametrize("wrong", [("--cluster", "a b"), ("--json", "--out", "-")])
def test_what_cannot_be_written_is_one_sentence(wrong, tmp_path):
    refused = init("--zookeeper", "127.0.0.1:1", *wrong)
    assert refused.exit_code == 2
    assert refused.stderr.count("kontrast: ") == 1


# Megabytes and partitions, as a benchmark of each size measured them: watch, serve.
MEASURED = [(2_000, 24, 56), (20_000, 33, 85), (200_000, 161, 366)]
MEASURED_JOBS = json.loads((Path(__file__).parents[2] / "docs" / "scale.json").read_text(encoding="utf-8"))
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "capacity.md"


@pytest.mark.parametrize(("partitions", "watch", "serve"), MEASURED)
def test_limits_leave_more_than_a_quarter_above_the_measured_memory(partitions, watch, serve):
    limits_mb = Needs(partitions).memory_limits_mb
    assert 1.25 * watch < limits_mb["watch"] < 1.6 * watch + 25
    assert 1.25 * serve < limits_mb["serve"] < 1.6 * serve + 25
    assert limits_mb["up"] > 1.25 * Needs(partitions).memory_mb


@pytest.mark.parametrize("partitions", [20_000, 200_000, 1_000_000])
def test_the_limit_of_the_job_is_above_its_measured_memory(partitions):
    figures, needs = MEASURED_JOBS[str(partitions)]["figures"], Needs(partitions)
    used_mb = sum(max(figures[f"{part}, when ready"], figures[f"{part}, at the end"]) for part in ("Python", "Java"))
    assert 1.25 * used_mb < needs.memory_limits_mb["stream"] < 2.2 * used_mb
    assert used_mb < needs.memory_mb


def test_the_table_of_the_guide_has_what_init_proposes():
    lines = [line.strip("| ").split(" | ") for line in GUIDE.read_text(encoding="utf-8").splitlines()]
    rows = {line[0]: line[1:] for line in lines if len(line) == 5}
    sizes = [Needs(int(words.split()[0].replace(",", ""))) for words in rows["setting or need"]]
    assert rows["resident memory of all commands, MB"] == [f"{needs.memory_mb:,}" for needs in sizes]
    for command in ("up", "watch", "stream", "serve"):
        limits = [f"{needs.memory_limits_mb[command]:,}" for needs in sizes]
        assert rows[f"`MemoryMax` of `kontrast@{command}`, M"] == limits
    assert rows["`journal_retain_bytes` in `[watch]`"] == [str(needs.retain_bytes) for needs in sizes]
    assert rows["`driver_memory` in `[stream]`"] == [f"{needs.heap_mb}m" for needs in sizes]
    assert rows["disk of the outputs, GB"] == [f"{needs.outputs_bytes / 1e9:.1f}" for needs in sizes]
    assert all(needs.changes_bytes <= needs.retain_bytes for needs in sizes)
