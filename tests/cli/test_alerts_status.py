"""`kontrast alerts` and `status` over real journals and a real exporter, with output and exit codes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
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
from controller.contract.alert_row import Severity
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


def write(derived: Path, *rows: object, raw: bytes | None = None, output: str | None = None) -> None:
    for row in rows:
        with JournalWriter(derived / row.output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, [encode_row(row)])
    if raw is not None:
        with JournalWriter(derived / output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, [raw])


def kontrast(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def now_ms() -> int:
    return int(time.time() * 1000)


def alerts(derived: Path, *arguments: object) -> Result:
    return kontrast("alerts", "--from", f"journal:{derived}", *arguments)


def test_open_alerts_are_printed_worst_first_and_are_a_finding(derived, rows):
    write(derived, rows.gauges(time_ms=now_ms()))
    calm = alerts(derived)
    assert (calm.exit_code, calm.stdout) == (0, "")
    assert "kontrast: no alert is open in north\n" in calm.stderr
    write(derived, rows.alert("info", alert="ControllerMoved", severity=Severity.INFO, cause="it moved"))
    write(derived, rows.alert("warn", alert="BrokerAway", severity=Severity.WARN, cause="it left"))
    write(derived, rows.alert("page", cause="it crashed", examples=("a-0", "a-1"), action="start it"))
    write(derived, rows.alert("over"), rows.alert("over", "resolved"))
    done = alerts(derived)
    assert done.exit_code == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["severity", "page", "warn", "info"]
    assert "it crashed (a-0, a-1)" in done.stdout
    assert not any(line != line.rstrip() for line in done.stdout.splitlines())
    assert [json.loads(line)["id"] for line in alerts(derived, "--json").stdout.splitlines()] == [
        "page",
        "warn",
        "info",
    ]
    assert "info" not in alerts(derived, "--severity", "warn").stdout
    assert "  to do: start it\n" in alerts(derived, "--long").stdout
    other = alerts(derived, "--cluster", "south")
    assert (other.exit_code, other.stdout) == (1, "")
    assert "south: the cluster is unknown" in other.stderr


def test_silence_of_what_is_old_is_no_health(derived, rows, tmp_path):
    write(derived, rows.gauges(time_ms=now_ms() - 90_000))
    old = alerts(derived)
    assert (old.exit_code, "north: the newest heartbeat is 1 min 3" in old.stderr) == (1, True)
    write(derived, rows.gauges(time_ms=now_ms(), ready=False))
    unready = alerts(derived)
    assert (unready.exit_code, "north: its first complete read has not arrived" in unready.stderr) == (1, True)
    write(derived, rows.gauges(time_ms=now_ms()), raw=b'{"kind":"alert","v":99,"cluster":"north"}', output="alerts")
    newer = alerts(derived)
    assert (newer.exit_code, "north: a newer Kontrast wrote its rows" in newer.stderr) == (1, True)


def test_a_past_is_called_so_and_is_no_fault_of_a_part(derived, rows, settings):
    alert = rows.alert("a")
    end_ms = alert.since_ms + 62_000
    write(derived, alert, rows.gauges(session="replay", agreement_of_last_hour=0.5, time_ms=end_ms))
    past = alerts(derived)
    row = past.stdout.splitlines()[1].split()
    assert row[:6] == ["page", "1", "min", "2", "s", "north"], "ages count to the past's end"
    assert "in north for 1 min 2 s" in alerts(derived, "--long").stdout
    assert (past.exit_code, "north: this shows a past that `kontrast replay` published" in past.stderr) == (1, True)
    _, told = parts(settings)
    assert "watch" not in told
    assert (told["replay"]["ok"], told["replay"]["agreement_of_last_hour"]) == (True, 0.5)


@pytest.mark.parametrize("command", [["alerts"], ["status"]])
def test_where_there_is_nothing_it_says_so(command, tmp_path):
    done = kontrast(*command, "--from", f"journal:{tmp_path}")
    assert done.exit_code == 3
    (line,) = (line for line in done.stderr.splitlines() if "kontrast" in line)
    assert line.startswith(f"kontrast: journal:{tmp_path} holds no ")


def test_what_changes_is_shown_as_it_changes_until_ctrl_c(derived, rows, tmp_path):
    write(derived, rows.gauges(time_ms=now_ms()), rows.alert("a", cause="the first"))
    shown = tmp_path / "shown"
    command = [sys.executable, "-m", "cli", "alerts", "--from", f"journal:{derived}", "--watch"]
    with shown.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE) as process:
        eventually(lambda: shown.read_text().count("the first") == 1)
        write(derived, rows.alert("b", cause="the second"), rows.alert("a", "resolved", cause="the first"))
        eventually(lambda: len(shown.read_text().splitlines()) == 3)
        process.send_signal(signal.SIGINT)
        assert b"Traceback" not in process.communicate(timeout=60)[1]
        assert process.returncode == 0
    said = sorted(" ".join(line.split()[1:3]) for line in shown.read_text().splitlines())
    assert said == ["open page", "open page", "resolved page"]


def test_on_a_terminal_what_is_open_is_one_picture_that_fits(derived, rows):
    not_old = now_ms() + 3_600_000  # an hour ahead, so the rows stay fresh on a slow machine, too
    write(derived, rows.gauges(time_ms=not_old), *(rows.alert(f"a{number}", cause="long " * 40) for number in range(9)))
    command = [sys.executable, "-m", "cli", "alerts", "--from", f"journal:{derived}", "--watch"]
    own, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 70, 0, 0))
    shown = bytearray()
    # xdist's processes have a size in COLUMNS and LINES, which would override the terminal's.
    kind = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=kind) as process:
        os.close(terminal)
        try:
            eventually(lambda: _take(own, shown) or b"9 open alerts, 7 more than fit here" in shown)
            write(derived, *(rows.alert(f"a{number}", "resolved") for number in range(7)))
            eventually(lambda: _take(own, shown) or b"2 open alerts, " in shown)
            process.send_signal(signal.SIGINT)
            eventually(lambda: _take(own, shown) or b"\x1b[?1049l" in shown)  # the terminal is given back
            assert b"Traceback" not in process.communicate(timeout=60)[1]
            assert process.returncode == 0
        finally:
            process.kill()
            os.close(own)
    picture = shown.decode().split("2 open alerts, ")[-1]
    assert len([line for line in picture.splitlines() if "north" in line]) == 2  # a line each


def _take(terminal: int, shown: bytearray) -> None:
    """Append the unread output of the terminal."""
    try:
        while select.select([terminal], [], [], 0.05)[0] and (read := os.read(terminal, 65_536)):
            shown += read
    except OSError:  # no process has the terminal open any more
        pass


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
