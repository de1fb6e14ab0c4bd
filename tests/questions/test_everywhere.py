"""A plain question is one file: its command, its path of the page's interface, and its tool follow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests import recorded_moment

FILE = Path(__file__).with_name("count_topics.txt").read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path):
    """Return a function that runs Python in a process whose `questions/everywhere/` has one more file."""
    (tmp_path / "count_topics.py").write_text(FILE)
    added = f"from questions import everywhere\neverywhere.__path__.append({str(tmp_path)!r})\n"

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", added + code], capture_output=True, text=True, check=False)

    return run


def test_a_file_is_a_command(run, recorded_files):
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run(f"from cli.main import main\nmain({list(arguments)!r})")

    where = ["--zk-data", str(recorded_files), "--cluster", "shop", "--until", str(recorded_moment.MOMENT_MS)]
    assert "count-topics  Count topics by a part of their name." in command("--help").stdout
    help_page = command("count-topics", "--help").stdout
    assert "It serves a test." in help_page
    assert "kontrast count-topics --part orders" in help_page
    assert "A part of the name." in help_page
    everything, one = command("count-topics", *where), command("count-topics", "--part", "t3", "--json", *where)
    assert (everything.returncode, one.returncode) == (0, 0), everything.stderr + one.stderr
    assert everything.stdout.endswith(" topics\n")
    assert msgspec.json.decode(one.stdout) == {"topics": 1}


def test_a_file_is_a_tool_and_a_path(run):
    shown = run(
        "import json\n"
        "from cli.mcp_server.tools import TOOLS, input_schema\n"
        "from dashboards.page.interface import document\n"
        "tool, paths = input_schema(TOOLS['count_topics']), document()['paths']\n"
        "print(json.dumps([tool, paths['/api/v1/clusters/{cluster}/count-topics']['get']]))"
    )
    tool, path = msgspec.json.decode(shown.stdout)
    assert tool["properties"]["part"]["description"] == "A part of the name."
    assert path["summary"] == "Count topics by a part of their name"
    assert [each["name"] for each in path["parameters"]] == ["cluster", "part"]
