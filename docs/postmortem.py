"""Fill `how-to/after-an-incident.md` with the output of its commands, and draw its two pictures.

`make docs` runs it. People write the page's text, and this program replaces the output below each `$ kontrast`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from click.testing import CliRunner  # noqa: E402 (needs the path above)

from cli.main import main as kontrast  # noqa: E402
from dashboards.colours import VARIABLES  # noqa: E402
from dashboards.drawn_timeline.picture import STYLE  # noqa: E402
from tests.recorded_moment import zk_data  # noqa: E402

PAGE = Path(__file__).parent / "how-to" / "after-an-incident.md"
PICTURE = Path(__file__).with_name("postmortem.svg")
MAP = Path(__file__).with_name("postmortem-map.svg")
_BLOCK = re.compile(r"```console\n\$ kontrast (?P<command>[^\n]*)\n.*?```", re.DOTALL)
_SVG = re.compile(r"<svg.*</svg>", re.DOTALL)
_COPY, _HTML, _MAP = "copy", "postmortem.html", "map.svg"  # names in the page's commands


def filled(page: str) -> tuple[str, str, str]:
    """Return the page with the output of its commands, the drawn timeline, and the map of the bad moment."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / _COPY).symlink_to(zk_data(directory / "recording"), target_is_directory=True)
        with _inside(directory):
            text = _BLOCK.sub(_printed, page)
        timeline = _picture((directory / _HTML).read_text(encoding="utf-8"))
        return text, timeline, (directory / _MAP).read_text(encoding="utf-8")


def _printed(block: re.Match[str]) -> str:
    done = CliRunner().invoke(kontrast, shlex.split(block["command"]))
    assert done.exit_code in (0, 1), f"{block['command']}: {done.output}"
    return f"```console\n$ kontrast {block['command']}\n{done.stdout}```"


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
def _inside(directory: Path):  # noqa: ANN202 (a generator's)
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def main() -> None:
    """Write the page and its pictures."""
    for file, text in zip((PAGE, PICTURE, MAP), filled(PAGE.read_text(encoding="utf-8")), strict=True):
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
