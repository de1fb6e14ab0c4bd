"""`kontrast check` of every cluster of a source, once or followed, over real journals and ZooKeeper."""

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
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from cli.main import main
from controller.contract.alert_row import Severity
from controller.contract.outputs import encode_row
from controller.contract.records import encode_record
from tests.recorded_moment import MOMENT_MS, history
from tests.waiting import eventually
from transport.journal import JournalWriter


@pytest.fixture
def derived(tmp_path: Path) -> Path:
    return tmp_path / "derived"


def append(derived: Path, output: str, line: bytes) -> None:
    with JournalWriter(derived / output, batches=True) as journal:
        journal.append_batch(journal.last_batch_id + 1, [line])


def write(derived: Path, *rows: object) -> None:
    for row in rows:
        append(derived, row.output, encode_row(row))


def write_cluster(derived: Path, rows, cluster: str, **gauges: object) -> None:
    place = {"cluster": cluster}
    fresh = {"time_ms": now_ms(), **gauges}
    write(derived, rows.gauges(**fresh, **place), rows.controller(1, **place), rows.broker(1, **place))


def now_ms() -> int:
    return int(time.time() * 1000)


def kontrast(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def check(derived: Path, *arguments: object) -> Result:
    return kontrast("--from", f"journal:{derived}", *arguments)


def listed(done: Result) -> list[tuple[str, str]]:
    return [(each["cluster"], each["state"]["state"]) for each in map(json.loads, done.stdout.splitlines())]


def test_clusters_are_listed_worst_first_with_their_alerts_and_next_steps(derived, rows):
    for cluster in ("north", "south", "west", "east"):
        write_cluster(derived, rows, cluster)
    write(derived, rows.alert("page", cause="it crashed", action="start it", since_ms=now_ms() - 62_000))
    write(derived, rows.alert("warn", alert="BrokerAway", severity=Severity.WARN, cause="it left", cluster="east"))
    write(derived, rows.alert("info", alert="ControllerMoved", severity=Severity.INFO, cause="moved", cluster="south"))
    done = check(derived)
    assert done.exit_code == 1
    paragraphs = done.stdout.split("\n\n")
    assert [each.split("  ")[0] for each in paragraphs] == [
        "4 clusters: 1 clients affected, 1 degraded, 2 well",
        "north: clients affected (1 alert pages)",
        "east: degraded (1 warning)",
        "well: south, west\n",
    ]
    assert "page  PartitionsOffline of partition orders-0, for 1 min " in done.stdout
    assert "      do: start it\n" in done.stdout
    assert "ControllerMoved" in check(derived, "--long").stdout
    assert listed(check(derived, "--json")) == [
        ("north", "affected"),
        ("east", "degraded"),
        ("south", "well"),
        ("west", "well"),
    ]
    one = check(derived, "--cluster", "east")
    assert (one.exit_code, one.stdout.splitlines()[0].startswith("east: degraded (1 warning)")) == (1, True)
    calm = check(derived, "--cluster", "west")
    assert (calm.exit_code, calm.stdout.startswith("west: well")) == (0, True)


def test_a_cluster_that_is_not_known_is_no_well_one(derived, rows, tmp_path):
    write_cluster(derived, rows, "north")
    write_cluster(derived, rows, "old", time_ms=now_ms() - 90_000)
    write(derived, rows.gauges(time_ms=now_ms(), ready=False, cluster="unread"))
    append(derived, "alerts", b'{"kind":"alert","v":99,"cluster":"newer"}')
    file = tmp_path / "kontrast.toml"
    file.write_text('[clusters.unwatched]\nzookeeper = "127.0.0.1:1"\n')
    done = check(derived, "--config", file)
    assert done.exit_code == 3
    told = {each.split(": ")[0]: each for each in done.stdout.split("\n\n")[1:]}
    assert "unknown  the state is not known, last known 1 min 3" in told["old"]
    assert "unknown  no complete read of cluster unread has arrived yet" in told["unread"]
    assert "unknown  a newer Kontrast wrote the rows of cluster newer. Upgrade this one" in told["newer"]
    assert "unknown  no complete read of cluster unwatched has arrived yet" in told["unwatched"]
    assert listed(check(derived, "--config", file, "--json"))[-1] == ("north", "well")
    alone = check(derived, "--cluster", "unread")
    assert (alone.exit_code, "kontrast: no complete read of cluster unread" in alone.stderr) == (2, True)


def test_a_probe_asks_one_cluster(derived, rows):
    for cluster in ("north", "south"):
        write_cluster(derived, rows, cluster)
    several = check(derived, "--probe")
    assert (several.exit_code, several.stdout) == (
        3,
        "KAFKA UNKNOWN - which cluster? Give --cluster with one of north, south\n",
    )
    assert check(derived, "--probe", "--cluster", "south").stdout.startswith("KAFKA OK - south: controller broker 1")


def test_changes_of_several_clusters_are_read_once(recorded_files, tmp_path):
    records = list(history(recorded_files, "shop").records())
    with JournalWriter(tmp_path / "changes") as journal:
        for cluster in ("a", "b"):
            journal.append([encode_record(replace(record, cluster=cluster)) for record in records])
        journal.append([encode_record(replace(records[0], cluster="c"))])
    done = kontrast("--from", f"journal:{tmp_path / 'changes'}", "--until", MOMENT_MS, "--json")
    assert listed(done) == [("a", "affected"), ("b", "affected"), ("c", "unknown")]
    a, b, c = map(json.loads, done.stdout.splitlines())
    assert (a["counts"], [each["cause"] for each in a["findings"]]) == (
        b["counts"],
        [each["cause"] for each in b["findings"]],
    )
    assert len(a["findings"]) > 5
    assert c["doubts"][0].endswith("holds no complete read of cluster c before that moment")


def test_several_configured_clusters_are_those_of_the_configured_outputs(derived, rows, tmp_path):
    for cluster in ("north", "south"):
        write_cluster(derived, rows, cluster)
    file = tmp_path / "kontrast.toml"
    clusters = "".join(f'[clusters.{name}]\nzookeeper = "127.0.0.1:1"\n' for name in ("north", "south"))
    file.write_text(f'{clusters}[stream]\nto = "journal:{derived}"\n')
    assert listed(kontrast("--config", file, "--json")) == [("north", "well"), ("south", "well")]
    assert "from the running Kontrast" in kontrast("--config", file, "--cluster", "north").stdout
    file.write_text(clusters)
    assert (kontrast("--config", file).exit_code, "which cluster?" in kontrast("--config", file).stderr) == (2, True)


def test_what_changes_is_a_line_until_ctrl_c(derived, rows, tmp_path):
    write_cluster(derived, rows, "north")
    write(derived, rows.alert("a", cause="the first"))
    shown = tmp_path / "shown"
    command = [sys.executable, "-m", "cli", "check", "--from", f"journal:{derived}", "--watch", "--every", "0.5"]
    with shown.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE) as process:
        eventually(lambda: "the first" in shown.read_text())
        write(derived, rows.alert("b", alert="BrokerAway", cause="the second"))
        eventually(lambda: "the second" in shown.read_text())
        write(derived, rows.alert("a", "resolved", cause="the first"))
        eventually(lambda: "resolved" in shown.read_text())
        write_cluster(derived, rows, "south")
        eventually(lambda: "south" in shown.read_text())
        process.send_signal(signal.SIGINT)
        assert b"Traceback" not in process.communicate(timeout=60)[1]
        assert process.returncode == 0
    assert [line.partition("  ")[2] for line in shown.read_text().splitlines()] == [
        "north  clients affected",
        "north  open      page  PartitionsOffline of partition orders-0: the first",
        "north  open      page  BrokerAway of partition orders-0: the second",
        "north  degraded",
        "north  resolved  page  PartitionsOffline of partition orders-0: the first",
        "south  well",
    ]


def test_on_a_terminal_the_worst_is_one_screen_that_fits(derived, rows):
    for number in range(9):
        write_cluster(derived, rows, f"c{number}", time_ms=now_ms() + 3_600_000)  # fresh on a slow machine, too
    command = [sys.executable, "-m", "cli", "check", "--from", f"journal:{derived}", "--watch", "--every", "0.5"]
    own, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 70, 0, 0))
    shown = bytearray()
    # xdist's processes have a size in COLUMNS and LINES, which would override the terminal's.
    kind = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=kind) as process:
        os.close(terminal)
        try:
            eventually(lambda: _take(own, shown) or b"9 clusters: 9 well" in shown)
            write(derived, rows.alert("a", cluster="c7", cause="long " * 40))
            eventually(lambda: _take(own, shown) or b"1 clients affected, 8 well" in shown)
            process.send_signal(signal.SIGINT)
            eventually(lambda: _take(own, shown) or b"\x1b[?1049l" in shown)  # the terminal is given back
            assert b"Traceback" not in process.communicate(timeout=60)[1]
            assert process.returncode == 0
        finally:
            process.kill()
            os.close(own)
    picture = shown.decode().split("1 clients affected")[-1].split("\x1b[?1049l")[0]
    assert "c7: " in picture
    assert "well: c0" not in picture, "the well ones do not fit"


def _take(terminal: int, shown: bytearray) -> None:
    """Append the unread output of the terminal."""
    try:
        while select.select([terminal], [], [], 0.05)[0] and (read := os.read(terminal, 65_536)):
            shown += read
    except OSError:  # no process has the terminal open any more
        pass
