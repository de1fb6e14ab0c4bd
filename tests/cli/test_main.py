"""The command for its users, with help, one sentence for a mistake, and exit codes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kafka.admin import NewTopic

from cli.main import main
from controller.contract.outputs import encode_row
from tests.clients import kafka_admin, zookeeper_client
from tests.lanes import in_gate
from tests.recorded_moment import MOMENT_MS
from tests.rows import Rows
from transport.journal import JournalWriter

KONTRAST = [sys.executable, "-m", "cli"]
WIRED = ["watch", "stream", "serve"]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def refusing_port() -> Iterator[int]:
    # Bound but not listening, so that the port stays taken and every connection to it is refused.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def run(*arguments: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KONTRAST, *arguments], capture_output=True, text=True, timeout=seconds, check=False)


def sentences(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("kontrast: ")]


def test_help_names_every_command_and_exit_code():
    result = invoke("--help")
    assert result.exit_code == 0
    for word in [*WIRED, "demo", "Exit codes:", "  2    ", "  3    "]:
        assert word in result.output


@pytest.mark.parametrize("command", WIRED)
def test_help_of_a_command_names_its_flags_defaults_and_variables(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    assert "--config FILE" in text
    assert f"[default: 30.0; env: KONTRAST_{command.upper()}__CONNECT_TIMEOUT_SECONDS]" in text


@pytest.mark.parametrize("command", WIRED)
def test_the_overview_says_of_a_command_what_its_own_help_says(command):
    context = main.make_context("kontrast", ["--help"], resilient_parsing=True)
    own = main.get_command(context, command).get_short_help_str(limit=200)
    assert own in " ".join(invoke("--help").output.split())


@pytest.mark.parametrize("command", ["check", "explain", "lint"])
def test_help_of_a_question_has_examples_its_own_options_first_and_where_to_ask(command):
    text = invoke(command, "--help").output
    places = [text.index(part) for part in ("\nOptions:", "--json", "Where the cluster comes from:", "Examples:")]
    assert places == sorted(places)
    assert all(f"  {option} " in text for option in ("--zookeeper", "--zk-data", "--from"))
    assert f"  kontrast {command} " in text


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a command loads if nobody sees its output directly."""
    script = (
        f"import sys\nfrom cli.main import main\ntry:\n    main({list(arguments)})\nfinally:\n    print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments", [["--help"], *([command, "--help"] for command in [*WIRED, "check", "explain", "lint"])]
)
def test_help_is_given_without_loading_the_libraries_of_the_parts(arguments):
    assert loaded_by(*arguments).isdisjoint({"pyspark", "pandas", "kazoo", "kafka", "uvicorn", "starlette"})


@pytest.mark.parametrize("question", [["check"], ["explain", "t3-0"]])
def test_an_answer_in_a_pipe_is_written_without_rich(question, recorded_files):
    loaded = loaded_by(*question, "--zk-data", str(recorded_files), "--until", str(MOMENT_MS))
    assert "controller.step" in loaded
    assert "rich" not in loaded


def test_an_answer_from_outputs_loads_nothing_that_applies_records(tmp_path):
    rows = Rows()
    for row in (rows.controller(1), rows.gauges()):
        with JournalWriter(tmp_path / row.output, batches=True) as writer:
            writer.append_batch(0, [encode_row(row)])
    loaded = loaded_by("check", "--from", f"journal:{tmp_path}")
    assert "controller.restore.context_of_rows" in loaded
    assert loaded.isdisjoint({"controller.step", "questions.gathering", "ingest.files.history"})


def test_the_version_is_printed():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output.startswith("kontrast")


def test_without_a_command_it_prints_its_help():
    assert invoke().stdout == invoke("--help").stdout != ""


def test_the_configuration_file_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "kontrast.toml"
    file.write_text("[serve]\nlissten = 'x'")
    monkeypatch.setenv("KONTRAST_CONFIG", str(file))
    result = invoke("serve", "--from", "journal:/x")
    assert result.exit_code == 2
    assert f"{file}: [serve]: unknown key 'lissten'. Did you mean listen?" in result.stderr


def test_every_command_refuses_an_unknown_setting_of_any_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KONTRAST_STREAM__CHEKPOINT", "x")
    for command in WIRED:
        result = invoke(command)
        assert result.exit_code == 2
        assert "KONTRAST_STREAM__CHEKPOINT. Did you mean KONTRAST_STREAM__CHECKPOINT" in result.stderr


def test_an_unreachable_zookeeper_ends_in_one_sentence_with_its_address_in_time(refusing_port):
    address = f"127.0.0.1:{refusing_port}"
    began = time.monotonic()
    done = run("snapshot", "--zookeeper", address, "--connect-timeout-seconds", "2")
    assert done.returncode == 3
    assert time.monotonic() - began < 60
    (sentence,) = sentences(done.stderr)
    assert address in sentence
    assert "Traceback" not in done.stderr
    assert "kazoo" not in done.stderr


def test_a_port_in_use_ends_in_one_sentence_with_the_port(taken_port, tmp_path):
    (tmp_path / "outputs").mkdir()
    done = run("serve", "--from", f"journal:{tmp_path / 'outputs'}", "--listen", f"127.0.0.1:{taken_port}")
    assert done.returncode == 3
    (sentence,) = sentences(done.stderr)
    assert str(taken_port) in sentence
    assert "Traceback" not in done.stderr


def test_json_makes_every_line_an_object(refusing_port):
    done = run("--json", "snapshot", "--zookeeper", f"127.0.0.1:{refusing_port}", "--connect-timeout-seconds", "1")
    assert done.returncode == 3
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["level"] for line in lines if line["logger"] == "kontrast.cli"] == ["ERROR"]


@pytest.mark.parametrize("command", in_gate("watch", of=["watch", "stream", "serve", "snapshot", "replay"]))
def test_ctrl_c_while_it_is_still_importing_is_no_failure(command, tmp_path):
    # One import waits for the signal, which so comes in the middle however loaded the machine is.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        "class Waiting:\n"
        "    imported = 0\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if 'cli.main' in sys.modules:\n"
        "            self.imported += 1\n"
        "            sys.stdout.write('.'); sys.stdout.flush()\n"
        "            time.sleep(60 if self.imported == int(os.environ['WAITS_AT']) else 0)\n"
        "sys.meta_path.insert(0, Waiting())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])}
    arguments = {"replay": ["--zk-data", str(tmp_path)]}.get(command, ["--config", "/absent.toml"])
    for imported in (1, 10, 25):
        with subprocess.Popen(
            [*KONTRAST, command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "WAITS_AT": str(imported)},
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(imported) == b"." * imported
            process.send_signal(signal.SIGINT)
            assert process.stderr.read() == b""
            assert process.wait(60) == 130


def test_nothing_is_imported_before_ctrl_c_is_taken_care_of():
    code = "import sys; before = set(sys.modules); import cli.start; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cli", "cli.interrupts", "cli.start"]


def test_no_process_of_it_leaves_a_core_with_passwords():
    code = (
        "import cli.main, cli.start, resource; hard = resource.getrlimit(4)[1]; resource.setrlimit(4, (hard, hard))\n"
    )
    code += "cli.main.main = lambda **_: print(resource.getrlimit(4)[0])\ncli.start.main()"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"0\n"


@pytest.mark.parametrize("command", in_gate("serve", of=WIRED))
def test_while_kafka_is_away_one_line_says_so(command, refusing_port, tmp_path):
    kafka = f"kafka://127.0.0.1:{refusing_port}/t"
    arguments = {
        "watch": ["--cluster", "a", "--zookeeper", "127.0.0.1:1", "--to", kafka],
        "stream": ["--from", kafka, "--to", f"journal:{tmp_path / 'out'}", "--checkpoint", str(tmp_path / "c")],
        "serve": ["--from", kafka, "--listen", "127.0.0.1:0"],
    }[command]
    done = run(command, *arguments, "--connect-timeout-seconds", "8")
    assert done.returncode == 3
    assert (re.search(r"page: (http://\S+)/ +metrics: \1/metrics", done.stderr) is not None) is (command == "serve")
    said = [line for line in done.stderr.splitlines() if "metrics:" not in line and "serving" not in line]
    assert len(said) == 2, done.stderr
    assert "trying again" in said[0]
    assert said[1].startswith("kontrast: ")
    assert all(str(refusing_port) in line for line in said)
    assert not any("Error:" in line for line in said)  # the library's own names


def test_check_reaches_what_is_named_and_starts_nothing(watched, refusing_port, taken_port, tmp_path):
    changes, derived = tmp_path / "changes", tmp_path / "derived"
    to = ["--cluster", "a", "--to", f"journal:{changes}"]
    with zookeeper_client(watched) as client:
        client.create("/brokers/ids/1", b"{}", makepath=True)
    good = invoke("watch", "--check", "--zookeeper", watched, *to, "--metrics-listen", "127.0.0.1:0")
    assert good.exit_code == 0
    assert f"ok     a: ZooKeeper {watched}: 1 broker, 1 znode\n" in good.stdout
    assert f"will be made in {tmp_path}" in good.stdout
    absent = ["--zookeeper", f"127.0.0.1:{refusing_port}", "--connect-timeout", "0.5"]
    bad = invoke("watch", "--check", *absent, *to, "--metrics-listen", f"127.0.0.1:{taken_port}")
    assert bad.exit_code == 3
    assert [line.split()[0] for line in bad.stdout.splitlines()] == ["wrong", "wrong", "ok", "wrong"]
    sink = f"kafka://127.0.0.1:{refusing_port}/out"
    job = ["--from", f"journal:{changes}", "--checkpoint", str(tmp_path / "checkpoint"), "--connect-timeout", "1"]
    done = invoke("stream", "--check", *job, "--to", sink)
    assert (
        done.exit_code,
        f"wrong  sink {sink}: Kafka at 127.0.0.1:{refusing_port} does not answer" in done.stdout,
    ) == (3, True)
    assert invoke("stream", "--check", *job, "--to", f"journal:{derived}").exit_code == 0
    urls = ["--alertmanager-urls", f"http://127.0.0.1:{refusing_port}"]
    done = invoke("serve", "--check", "--from", f"journal:{derived}", "--listen", "127.0.0.1:0", *urls)
    assert done.exit_code == 3
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["wrong", "ok", "wrong"]
    assert sorted(path.name for path in tmp_path.iterdir()) == []
    assert invoke("watch", "--check", "--zookeeper", watched, "--to", "nowhere", "--cluster", "a").exit_code == 2


def test_check_refuses_what_the_start_would_refuse_of_kafka(shared_broker, shared_chroot, own_name, tmp_path):
    """The cases are the watched cluster as the stream, by its id, and topics that lose records."""
    with kafka_admin(shared_broker) as admin:
        cluster_id = admin.describe_cluster()["cluster_id"]
        admin.create_topics([NewTopic(own_name, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    with zookeeper_client(shared_chroot) as client:
        client.create("/brokers/ids", makepath=True)
        where = [
            "--check",
            "--cluster",
            "a",
            "--zookeeper",
            shared_chroot,
            "--to",
            f"kafka://{shared_broker}/{own_name}",
        ]
        lossy = invoke("watch", *where)
        assert lossy.exit_code == 3
        assert f"topic {own_name} has cleanup.policy=compact, all messages but the newest of each key" in lossy.stdout
        client.create("/cluster/id", json.dumps({"version": "1", "id": cluster_id}).encode(), makepath=True)
    watched = invoke("watch", *where)
    assert watched.exit_code == 3
    assert f"is the watched cluster itself (cluster id {cluster_id})" in watched.stdout
    _check_of_the_job_refuses_it_too(f"kafka://{shared_broker}/{own_name}-2", shared_chroot, cluster_id, tmp_path)


def _check_of_the_job_refuses_it_too(stream: str, zookeeper: str, cluster_id: str, directory: Path) -> None:
    """Check the refusal with the cluster's ZooKeeper in the file. An unreachable ZooKeeper is no mistake."""
    file = directory / "kontrast.toml"
    job = [
        "--check",
        "--config",
        file,
        "--from",
        stream,
        "--to",
        f"{stream}-out",
        "--checkpoint",
        directory / "checkpoint",
    ]
    file.write_text(f'[clusters.a]\nzookeeper = "{zookeeper}"\n')
    refused = invoke("stream", *map(str, job), "--connect-timeout", "5")
    assert refused.exit_code == 3
    assert refused.stdout.count(f"is the watched cluster itself (cluster id {cluster_id})") == 2
    file.write_text('[clusters.a]\nzookeeper = "127.0.0.1:1"\n')
    unreached = invoke("stream", *map(str, job), "--connect-timeout", "1")
    assert [line.split()[0] for line in unreached.stdout.splitlines()][1:3] == ["ok", "ok"]


def test_check_refuses_the_watched_ensemble_for_the_election(shared_zookeeper, shared_chroot, refusing_port):
    with zookeeper_client(shared_chroot) as client:
        client.create("/brokers/ids", makepath=True)
    to = f"kafka://127.0.0.1:{refusing_port}/t"
    where = ["--check", "--cluster", "a", "--zookeeper", shared_chroot, "--to", to, "--connect-timeout", "5"]
    port = shared_zookeeper.rpartition(":")[2]
    other_name = f"localhost:{port}" if "127.0.0.1" in shared_zookeeper else f"127.0.0.1:{port}"
    done = invoke("watch", *where, "--election-zookeeper", f"{other_name}/kontrast")
    assert done.exit_code == 3
    assert "is the watched ensemble under another name" in done.stdout


def test_the_options_of_serve_are_grouped_by_what_they_are_for():
    text = invoke("serve", "--help").output
    places = [
        text.index(word) for word in ("--listen", "[serve.alertmanager]:", "--alertmanager-urls", "[serve.probe]:")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("command", [*WIRED, "status", "check", "snapshot", "replay", "maintenance"])
def test_every_help_page_has_an_example_and_the_exit_codes(command):
    text = invoke(command, "--help").output
    assert f"  kontrast {command}" in text
    assert "Exit codes:\n" in text
