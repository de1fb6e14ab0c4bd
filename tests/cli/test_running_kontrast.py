"""`check`, `explain` and `timeline` of a configuration: by the Kontrast that runs with it, or by ZooKeeper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from tests.cli.test_check_every_cluster import now_ms, write, write_cluster
from tests.clients import zookeeper_client

RUNNING = "the running Kontrast"
READ = "one read of ZooKeeper, because "


def kontrast(command: str, file: Path, *more: str) -> Result:
    return CliRunner().invoke(main, [*command.split(), "--config", str(file), *more])


@pytest.fixture
def file(tmp_path: Path, shared_chroot: str) -> Path:
    """Return the configuration of a cluster in a real ZooKeeper, which holds one broker and the controller's epoch."""
    with zookeeper_client(shared_chroot) as client:
        client.create("/brokers/ids/7", b'{"version":1,"host":"h","port":1}', makepath=True)
        client.create("/controller_epoch", b"1")
    made = tmp_path / "kontrast.toml"
    made.write_text(
        f'[clusters.orders]\nzookeeper = "{shared_chroot}"\n'
        f'[stream]\nfrom = "journal:{tmp_path}/changes"\nto = "journal:{tmp_path}/derived"\n'
        f'checkpoint = "{tmp_path}/checkpoint"\n'
    )
    return made


def test_a_fresh_heartbeat_gives_the_answer_of_the_page(tmp_path, rows, file):
    derived = tmp_path / "derived"
    write_cluster(derived, rows, "orders")
    write(derived, rows.alert("page", cluster="orders", cause="it crashed", since_ms=now_ms() - 62_000))
    done = kontrast("check", file)
    assert f"\nfrom {RUNNING}\n" in done.stdout
    assert "page  PartitionsOffline of partition orders-0, for 1 min " in done.stdout
    told = json.loads(kontrast("check --json", file).stdout)
    assert (told["source"], [each["alert"] for each in told["findings"]]) == (RUNNING, ["PartitionsOffline"])
    explained = kontrast("explain broker 1", file)
    assert (explained.exit_code, RUNNING in explained.stderr) == (0, True)
    assert "reads" not in kontrast("timeline", file).stderr


@pytest.mark.parametrize("last_heard_seconds", [None, 90])
def test_without_a_fresh_heartbeat_zookeeper_answers(tmp_path, rows, file, last_heard_seconds):
    if last_heard_seconds is not None:
        write_cluster(tmp_path / "derived", rows, "orders", time_ms=now_ms() - last_heard_seconds * 1000)
    told = json.loads(kontrast("check --json", file).stdout)
    assert told["source"].startswith(READ)
    assert ("no fresh heartbeat" in told["source"]) == (last_heard_seconds is not None)
    explained = kontrast("explain controller", file)
    assert (explained.exit_code, READ in explained.stderr) == (1, True)


def test_a_named_zookeeper_is_asked_whatever_runs(tmp_path, rows, file, shared_chroot):
    write_cluster(tmp_path / "derived", rows, "orders")
    done = kontrast("explain controller", file, "--zookeeper", shared_chroot, "--cluster", "orders")
    assert (done.exit_code, done.stderr) == (1, "")


def test_a_probe_has_the_answer_of_the_page_too(tmp_path, rows, file):
    write_cluster(tmp_path / "derived", rows, "orders")
    write(tmp_path / "derived", rows.alert("warn", cluster="orders", cause="it lags"))
    done = kontrast("check --probe", file)
    assert (done.exit_code, "it lags" in done.stdout) == (2, True)
