"""`kontrast status` over real journals and a real exporter, with output and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from cli.embedded.process import free_port
from cli.main import main
from controller.contract.job_row import ClusterProgress
from controller.contract.outputs import encode_row
from dashboards.exporter.watch_page import open_page, run as run_page
from tests.controller.ensembles import ensemble, one_lost
from tests.waiting import eventually
from transport.forwarding import Forwarding
from transport.journal import JournalWriter
from transport.listening import Listening


@pytest.fixture
def derived(tmp_path: Path) -> Path:
    return tmp_path / "derived"


def write(derived: Path, *rows: object) -> None:
    for row in rows:
        with JournalWriter(derived / row.output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, [encode_row(row)])


def kontrast(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def now_ms() -> int:
    return int(time.time() * 1000)


def test_where_there_is_nothing_it_says_so(tmp_path):
    done = kontrast("status", "--from", f"journal:{tmp_path}")
    assert done.exit_code == 3
    (line,) = (line for line in done.stderr.splitlines() if "kontrast" in line)
    assert line.startswith(f"kontrast: journal:{tmp_path} holds no ")


@pytest.fixture
def settings(derived: Path, tmp_path: Path) -> Path:
    file = tmp_path / "kontrast.toml"
    file.write_text(
        f'[clusters.north]\nzookeeper = "127.0.0.1:1"\nto = "journal:{tmp_path / "changes"}"\n'
        f'[serve]\nfrom = "journal:{derived}"\nlisten = "127.0.0.1:{free_port()}"\n'
    )
    return file


@pytest.fixture
def serving(settings: Path, tmp_path: Path) -> Iterator[None]:
    log = tmp_path / "serve.log"
    command = [sys.executable, "-m", "cli", "serve", "--config", settings]
    with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr) as process:
        try:
            eventually(lambda: "metrics: http" in log.read_text())
            yield
        finally:
            process.kill()


def parts(settings: Path) -> tuple[int, dict[str, dict]]:
    done = kontrast("status", "--config", settings, "--json")
    return done.exit_code, {line["part"]: line for line in map(json.loads, done.stdout.splitlines())}


def test_the_status_of_all_parts_and_what_is_wrong_with_them(derived, settings, rows, serving):
    fresh = {"north": ClusterProgress(records=2, observed_ms=now_ms(), lag_ms=150)}
    write(
        derived,
        rows.gauges(time_ms=now_ms(), agreement_of_last_hour=0.9979),
        rows.job(time_ms=now_ms(), clusters=fresh, version="9.9"),
        rows.alert("a"),
        rows.broker(1),  # the job has all outputs from its start on
    )
    code, told = eventually(lambda: parts(settings), lambda answer: answer[0] == 0)
    assert {part: line["wrong"] for part, line in told.items()} == {"watch": "", "stream": "", "serve": ""}
    assert (told["stream"]["lag_seconds"], told["stream"]["version"]) == (0.15, "9.9")
    assert told["watch"]["agreement_of_last_hour"] == 0.9979
    heading, watch, *_ = kontrast("status", "--config", settings).stdout.splitlines()
    assert heading.startswith("part    of")
    assert watch[heading.index("agreement") :].startswith("99.7 %")
    write(derived, rows.gauges(time_ms=now_ms() - 60_000))
    write(derived, rows.job(time_ms=now_ms() - 60_000, clusters=fresh))
    code, told = parts(settings)
    assert code == 1
    assert (told["watch"]["wrong"], told["watch"]["ok"]) == ("", False), "only the stream is known to be silent"
    assert told["watch"]["note"] == "`kontrast stream` passes nothing on, so no heartbeat can be seen"
    assert told["stream"]["wrong"].startswith("it has finished no batch for 1 min")
    write(derived, rows.job(time_ms=now_ms()), rows.gauges(time_ms=now_ms(), session="suspended"))
    assert parts(settings)[1]["watch"]["wrong"] == "its ZooKeeper session is suspended"


def test_the_status_has_the_ensemble_with_its_trouble_or_as_a_note(derived, settings, rows):
    whole, broken = ensemble((2, {"refused": ("mntr",)}), asked_ms=now_ms()), replace(one_lost(), asked_ms=now_ms())
    write(derived, rows.gauges(time_ms=now_ms(), ensemble=whole))
    told = parts(settings)[1]["zookeeper"]
    assert (told["wrong"], told["ok"], told["version"]) == ("", True, "3.9.5")
    assert told["note"] == "zk1:2181 is leader with 2 of 2 followers in sync. mntr is not allowed"
    write(derived, rows.gauges(time_ms=now_ms(), ensemble=broken))
    told = parts(settings)[1]["zookeeper"]
    assert told["wrong"].startswith("zk3:2181 does not answer (Connection refused), and served last at ")
    assert told["wrong"].endswith("Z. zk1:2181 is leader with 1 of 2 followers in sync")
    write(derived, rows.gauges(time_ms=now_ms()))  # a heartbeat with an old description
    assert "zookeeper" not in parts(settings)[1]


def test_a_part_that_does_not_answer_is_named(derived, settings, rows):
    settings.write_text(settings.read_text().replace("[serve]", f'metrics_listen = "127.0.0.1:{free_port()}"\n[serve]'))
    write(derived, rows.gauges(time_ms=now_ms()))
    code, told = parts(settings)
    assert code == 1
    assert told["watch"]["wrong"] == "its page does not answer: Connection refused"
    assert told["serve"]["wrong"] == "it does not answer: Connection refused"
    assert told["stream"]["wrong"].startswith("it has finished no batch")
    assert (told["stream"]["is_starting"], told["watch"]["is_starting"]) == (True, False)


def test_a_source_of_the_job_that_is_away_or_deleted_is_named(derived, settings, rows, shared_broker, own_name):
    write(derived, rows.gauges(time_ms=now_ms()), rows.job(time_ms=now_ms()))
    file = settings.read_text()
    for address, wrong in (
        (f"journal:{derived}/none", f"its source journal:{derived}/none does not exist. Find out who deleted it"),
        (f"kafka://{shared_broker}/{own_name}", f"its source kafka://{shared_broker}/{own_name} does not exist. Find"),
        (f"kafka://127.0.0.1:1/{own_name}", "Kafka at 127.0.0.1:1 does not answer: "),
    ):
        settings.write_text(f'{file}[stream]\nfrom = "{address}"\n')
        code, told = parts(settings)
        assert code == 1
        assert told["stream"]["wrong"].startswith(wrong)


def test_the_page_of_a_watcher_says_its_version(derived, settings, rows):
    listening = Listening(listen=f"127.0.0.1:{free_port()}")
    settings.write_text(settings.read_text().replace("[serve]", f'metrics_listen = "{listening.listen}"\n[serve]'))
    write(derived, rows.gauges(time_ms=now_ms()))
    stop = threading.Event()
    page = open_page(listening, [Forwarding("north", is_connected=True)])
    thread = threading.Thread(target=run_page, args=(page, stop))
    thread.start()
    try:
        watch = eventually(lambda: parts(settings)[1]["watch"], lambda watch: not watch["wrong"])
    finally:
        stop.set()
        thread.join()
    assert watch["version"] == version("kontrast")
