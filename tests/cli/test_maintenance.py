"""`kontrast maintenance` with real files."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from ingest.maintenance import read_windows
from tests.clients import zookeeper_client

CONFIG = """
[watch]
maintenance_file = "{directory}/all.toml"
to = "journal:{directory}/changes"
connect_timeout_seconds = 0.2
[clusters.north]
zookeeper = "127.0.0.1:1"
[clusters.south]
zookeeper = "127.0.0.1:2"
maintenance_file = "{directory}/south.toml"
"""


@pytest.fixture
def config(tmp_path) -> Path:
    file = tmp_path / "kontrast.toml"
    file.write_text(CONFIG.format(directory=tmp_path))
    return file


def kontrast(*arguments: object) -> tuple[int, str, str]:
    """Return exit code, standard output and error."""
    result = CliRunner().invoke(main, ["maintenance", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def listed(config: Path) -> list[dict]:
    code, out, _ = kontrast("list", "--config", config, "--json")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def test_a_window_is_begun_listed_and_ended(config, tmp_path):
    code, _, told = kontrast("start", "--config", config, "--cluster", "north", "--broker", 3, "--broker", 1,
                             "--for", "1h30m", "--reason", "new disks")  # fmt: skip
    assert code == 0
    (window,) = read_windows(tmp_path / "all.toml")
    assert (window.cluster, window.brokers, window.reason) == ("north", (1, 3), "new disks")
    assert window.id in told
    assert "broker 1, 3 until" in told
    assert listed(config) == [
        {"id": window.id, "cluster": "north", "brokers": [1, 3], "until_ms": window.until_ms, "reason": "new disks"}
    ]
    assert kontrast("start", "--config", config, "--cluster", "south", "--all", "--for", "10m")[0] == 0
    assert [(one["cluster"], one["brokers"]) for one in listed(config)] == [("north", [1, 3]), ("south", [])]
    assert read_windows(tmp_path / "south.toml")[0].brokers == ()
    assert "south: all brokers until" in kontrast("list", "--config", config)[1]
    assert kontrast("end", window.id, "--config", config)[0] == 0
    assert [one["cluster"] for one in listed(config)] == ["south"]
    code, _, told = kontrast("end", window.id, "--config", config)
    assert code == 2
    assert window.id in told


def test_windows_that_are_over_are_not_listed_and_go_with_the_next_change(config, tmp_path):
    file = tmp_path / "all.toml"
    file.write_text('[[window]]\ncluster = "north"\nuntil = 2020-01-01T00:00:00Z\n')
    assert listed(config) == []
    kontrast("start", "--config", config, "--cluster", "north", "--all", "--for", "1h")
    (window,) = read_windows(file)
    assert window.until.year > 2020


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cluster", "north", "--for", "1h"], "--broker ID"),
        (["--cluster", "north", "--for", "1h", "--all", "--broker", "1"], "either --broker ID"),
        (["--cluster", "north", "--all"], "--for"),
        (["--cluster", "north", "--all", "--for", "soon"], "'soon' is not a duration"),
        (["--cluster", "north", "--all", "--for", ""], "is not a duration"),
        (["--cluster", "north", "--all", "--for", "0m"], "must be positive"),
        (["--cluster", "north", "--all", "--for", "999999999999d"], "at most"),
        (["--cluster", "nort", "--all", "--for", "1h"], "Did you mean north"),
        (["--cluster", "north", "--broker", "-1", "--for", "1h"], "-1"),
        (["--cluster", "north", "--broker", "99999999999", "--for", "1h"], "99999999999 is not in the range"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(config, tmp_path, arguments, said):
    code, _, told = kontrast("start", "--config", config, *arguments)
    assert code == 2
    assert said in told
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "all.toml").exists()


def test_without_a_file_to_write_the_setting_is_named(tmp_path):
    code, _, told = kontrast("start", "--cluster", "north", "--all", "--for", "1h")
    assert code == 2
    assert "KONTRAST_WATCH__MAINTENANCE_FILE" in told
    assert kontrast("list")[0] == 2
    file = tmp_path / "windows.toml"
    assert kontrast("start", "--cluster", "north", "--all", "--for", "1h", "--maintenance-file", file)[0] == 0
    assert len(read_windows(file)) == 1


def test_of_a_cluster_or_broker_that_is_perhaps_none_people_are_warned(shared_chroot, tmp_path, monkeypatch):
    with zookeeper_client(shared_chroot) as client:
        for broker in (1, 3):
            client.create(f"/brokers/ids/{broker}", b"{}", makepath=True)
    file = tmp_path / "windows.toml"
    named = ["--maintenance-file", file, "--cluster", "north", "--for", "1h"]
    assert "the name north was not checked" in kontrast("start", *named, "--all")[2]
    monkeypatch.setenv("KONTRAST_CLUSTERS__NORTH__ZOOKEEPER", "127.0.0.1:1")
    monkeypatch.setenv("KONTRAST_CLUSTERS__NORTH__CONNECT_TIMEOUT_SECONDS", "0.2")
    code, _, told = kontrast("start", *named, "--broker", 1)
    assert (code, "whether the brokers are registered was not checked: ZooKeeper at 127.0.0.1:1" in told) == (0, True)
    monkeypatch.setenv("KONTRAST_CLUSTERS__NORTH__ZOOKEEPER", shared_chroot)
    monkeypatch.setenv("KONTRAST_CLUSTERS__NORTH__CONNECT_TIMEOUT_SECONDS", "30")
    code, _, told = kontrast("start", *named, "--broker", 1, "--broker", 2)
    assert (code, "broker 2 is not registered in north now (registered: 1, 3). If it is a mistake" in told) == (0, True)
    assert len(kontrast("start", *named, "--broker", 3)[2].splitlines()) == 1
    code, _, told = kontrast("start", "--maintenance-file", file, "--cluster", "nroth", "--for", "1h", "--all")
    assert (code, "Did you mean north" in told) == (2, True)


def test_a_file_that_is_no_file_of_windows_is_not_overwritten(config, tmp_path):
    file = tmp_path / "all.toml"
    file.write_text("[[window]\n")
    for arguments in (["start", "--cluster", "north", "--all", "--for", "1h"], ["list"], ["end", "x"]):
        code, _, told = kontrast(*arguments, "--config", config)
        assert code == 3
        assert "not a TOML file" in told
    assert file.read_text() == "[[window]\n"


def test_commands_at_the_same_time_lose_no_window(config, tmp_path):
    command = [sys.executable, "-m", "cli", "maintenance", "start", "--config", config, "--cluster", "north"]

    def begin(broker: int) -> None:
        subprocess.run([*command, "--broker", str(broker), "--for", "1h"], check=True, env=os.environ)

    threads = [threading.Thread(target=begin, args=(broker,)) for broker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(window.brokers for window in read_windows(tmp_path / "all.toml")) == [(n,) for n in range(6)]


def test_a_reason_without_end_is_refused_and_writes_nothing(config, tmp_path):
    named = ["--config", config, "--cluster", "north", "--all", "--for", "1h", "--reason"]
    code, _, told = kontrast("start", *named, "x" * 3_000_000)
    assert (code, "--reason" in told, "3,000,000 characters, at most 500 are allowed" in told) == (2, True, True)
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "all.toml").exists()
    assert kontrast("start", *named, "x" * 500)[0] == 0


def test_a_file_that_has_no_room_for_a_window_stays_as_it_is(config, tmp_path):
    file = tmp_path / "all.toml"
    window = f'[[window]]\ncluster = "north"\nuntil = 2999-01-01T00:00:00Z\nreason = "{"x" * 490}"\n'
    file.write_text(window * 118)  # a line with an id for each is longer than the bound
    before = file.read_text()
    code, _, told = kontrast("start", "--config", config, "--cluster", "north", "--all", "--for", "1h")
    assert (code, "longer than 65,536 bytes" in told) == (3, True)
    assert file.read_text() == before


def test_a_link_to_the_file_stays_a_link(config, tmp_path):
    target = tmp_path / "elsewhere" / "windows.toml"
    target.parent.mkdir()
    link = tmp_path / "all.toml"
    link.symlink_to(target)
    for broker in (1, 2):
        code = kontrast("start", "--config", config, "--cluster", "north", "--broker", broker, "--for", "1h")[0]
        assert code == 0
    assert link.is_symlink()
    assert [window.brokers for window in read_windows(target)] == [(1,), (2,)]


def test_a_lock_that_another_process_keeps_is_one_sentence(config, tmp_path):
    with (tmp_path / "all.toml.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, told = kontrast("start", "--config", config, "--cluster", "north", "--all", "--for", "1h")
    assert (code, f"another process has held the lock {lock.name} for 5 s" in told) == (3, True)
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "all.toml").exists()


@pytest.mark.parametrize("number", ["9" * 5_000, "0x" + "f" * 5_000, str(2**63)])
def test_a_number_without_end_in_either_file_is_one_sentence(config, tmp_path, number):
    (tmp_path / "all.toml").write_text(f"window = {number}\n")
    code, _, told = kontrast("list", "--config", config)
    assert (code, "an integer in it has more than 64 bits" in told, len(told.splitlines())) == (3, True, 1)
    config.write_text(f"watch = {number}\n")
    for arguments in (["maintenance", "list"], ["watch"], ["status"]):
        done = CliRunner().invoke(main, [*arguments, "--config", str(config)])
        assert (done.exit_code, "an integer in it has more than 64 bits" in done.stderr) == (2, True)
        assert len(done.stderr.splitlines()) == 1
