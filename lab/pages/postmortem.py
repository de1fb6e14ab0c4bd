"""Fill `how-to/after-an-incident.md` with the output of its commands, and draw its picture.

`make docs` runs it. People write the page's text, and this program replaces the output below each `$ kontrast`, whose
first lines are enough where the command ends with `| head -N`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from click.testing import CliRunner

from cli.main import main as kontrast
from dashboards.colours import VARIABLES
from dashboards.drawn_timeline.picture import STYLE
from lab.pages import DOCS
from tests.recorded_moment import zk_data

PAGE = DOCS / "how-to" / "after-an-incident.md"
PICTURE = DOCS / "postmortem.svg"
_BLOCK = re.compile(r"```console\n\$ kontrast (?P<command>[^\n|]*?)(?P<cut> \| head -(\d+))?\n.*?```", re.DOTALL)
_SVG = re.compile(r"<svg.*</svg>", re.DOTALL)


def filled(page: str) -> tuple[str, str]:
    """Return the page with the output of its commands, and the drawn timeline."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "copy").symlink_to(zk_data(directory / "recording"), target_is_directory=True)
        with _inside(directory):
            text = _BLOCK.sub(_printed, page)
        return text, _picture((directory / "postmortem.html").read_text(encoding="utf-8"))


def _printed(block: re.Match[str]) -> str:
    done = CliRunner().invoke(kontrast, shlex.split(block["command"]))
    assert done.exit_code in (0, 1), f"{block['command']}: {done.output}"
    shown = "".join(done.stdout.splitlines(keepends=True)[: int(block[3] or sys.maxsize)])
    return f"```console\n$ kontrast {block['command']}{block['cut'] or ''}\n{shown}```"


def _picture(html: str) -> str:
    found = _SVG.search(html)
    assert found is not None, "the page has no picture"
    svg = ElementTree.fromstring(found[0])  # noqa: S314 (our own)
    svg.set("xmlns", "http://www.w3.org/2000/svg")
    style = ElementTree.Element("style")
    style.text = VARIABLES + STYLE + "svg { background: var(--card); color: var(--text); }\n"
    svg.insert(1, style)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


@contextlib.contextmanager
def _inside(directory: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def main() -> None:
    """Write the page and its picture."""
    for file, text in zip((PAGE, PICTURE), filled(PAGE.read_text(encoding="utf-8")), strict=True):
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
