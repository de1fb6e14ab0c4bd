"""A real shell completes commands and options after the line of docs/reference/cli.md for shell completion.

Mistyped names get a suggestion.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
_ASK = """
{install}
COMP_WORDS=({words}); COMP_CWORD={at}
_kontrast_completion kontrast
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(*words: str) -> list[str]:
    """Return bash's completions of the last word, with the documented line in its start-up file."""
    (install,) = re.findall(
        r'`(eval "\$\(_KONTRAST_COMPLETE=bash_source kontrast\)")`', PAGE.read_text(encoding="utf-8")
    )
    script = _ASK.format(install=install, words=" ".join(("kontrast", *words)), at=len(words))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ti"], ["timeline"]),
        (["migration", "co"], ["compare"]),
        (["timeline", "--ht"], ["--html"]),
        (["explain", "--key-format", "u"], ["utf8", "uuid"]),
    ],
)
def test_bash_completes_commands_options_and_choices(words, offered):
    assert completed(*words) == offered


def kontrast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "cli", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explan"], "No such command 'explan'. Did you mean explain?"),
        (["migration", "chek"], "No such command 'chek'. Did you mean check?"),
        (["check", "--zookeper", "x"], "--zookeeper"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(arguments, says):
    done = kontrast(*arguments)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "tt4-0"], "there is no tt4-0 in cluster cluster. Did you mean t4-0?"),
        (["explain", "tt4"], "there is no tt4 in cluster cluster. Did you mean t4?"),
        (["explain", "tt4", "--key", "a"], "there is no topic tt4 in cluster cluster. Did you mean t4?"),
        (["place", "tt4", "--brokers", "1,2"], "there is no topic tt4. Did you mean t4?"),
        (["explain", "zzzzzz-0"], "there is no zzzzzz-0 in cluster cluster\n"),
    ],
)
def test_a_mistyped_topic_or_partition_gets_a_suggestion(recorded_files, arguments, says):
    done = kontrast(*arguments, "--zk-data", str(recorded_files))
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
