"""A plain question is one file: its command, its path of the page's interface, and its tool follow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests import recorded_moment

FILE = Path(__file__).with_name("one_replica.txt").read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path):
    """Return a function that runs Python in a process whose `questions/everywhere/` has one more file."""
    (tmp_path / "one_replica.py").write_text(FILE)
    added = f"from questions import everywhere\neverywhere.__path__.append({str(tmp_path)!r})\n"

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", added + code], capture_output=True, text=True, check=False)

    return run


def test_a_file_is_a_command(run, recorded_files):
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run(f"from cli.main import main\nmain({list(arguments)!r})")

    where = ["--zk-data", str(recorded_files), "--cluster", "shop", "--until", str(recorded_moment.MOMENT_MS)]
    assert "one-replica  List topics that have a partition with one replica.\n  place  " in command("--help").stdout
    help_page = command("one-replica", "--help").stdout
    for said in ("Clients lose such", "one-replica --part orders", "Only topics with this", "1  a partition has"):
        assert said in help_page
    everything, one = command("one-replica", *where), command("one-replica", "--part", "t3", "--json", *where)
    assert (everything.stdout, everything.returncode) == ("t1\nt3\nt4\nt6\nt9\n", 1), everything.stderr
    assert msgspec.json.decode(one.stdout) == {"topics": ["t3"]}


def test_a_file_is_a_tool_and_a_path(run):
    shown = run(
        "import json\n"
        "from cli.mcp_server.tools import TOOLS, input_schema\n"
        "from dashboards.page.interface import document\n"
        "tool, paths = input_schema(TOOLS['one_replica']), document()['paths']\n"
        "print(json.dumps([tool, paths['/api/v1/clusters/{cluster}/one-replica']['get']]))"
    )
    tool, path = msgspec.json.decode(shown.stdout)
    assert tool["properties"]["part"]["description"] == "Only topics with this text in their name."
    assert path["summary"] == "List topics that have a partition with one replica"
    assert [each["name"] for each in path["parameters"]] == ["cluster", "part"]
