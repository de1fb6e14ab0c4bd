"""A real shell completes commands and options after the line of docs/reference/cli.md for shell completion."""

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
