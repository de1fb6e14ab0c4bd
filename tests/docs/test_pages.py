"""Links, commands, metrics and make targets on every page exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from cli.main import main
from cli.sources.options import source_flags
from tests.prose import FOLDERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RECORDINGS = ROOT / "tests" / "conformance" / "recordings" / "README.md"
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.rglob("*.md"))]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", [*PAGES, RECORDINGS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if re.match(r"https?:", target):
            continue
        file, _, heading = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        assert path.is_relative_to(ROOT), target
        assert not heading or heading in _headings(path), target


def test_every_page_is_linked():
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)", _prose(page))
    }
    # A runbook is reached from its alert.
    assert [page for page in PAGES if page not in linked and page.parent not in (ROOT, DOCS / "runbooks")] == []


def test_a_page_that_code_names_exists():
    """Docstrings, comments, units and configurations name pages by their path."""
    files = [file for folder in (*FOLDERS, "deploy", "docs", "tests") for file in (ROOT / folder).rglob("*.py")]
    files += [*ROOT.glob("deploy/**/*.service"), ROOT / "pyproject.toml", ROOT / "Makefile"]
    named = {
        name
        for file in files
        for name in re.findall(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|py|toml|json)\b", file.read_text(encoding="utf-8"))
    }
    assert {name for name in named if not (ROOT / name).exists()} == set()


@every_page
def test_every_command_of_kontrast_exists_with_its_flags(page):
    for line in _code(page):
        for command_line in re.findall(r"(?:^|bin/|\$ )kontrast ([a-z][^|&>#\\]*)", line):
            command, arguments = main, shlex.split(command_line)
            while isinstance(command, click.Group) and arguments:
                name = arguments.pop(0)
                found = command.get_command(click.Context(command), name)
                assert found is not None, command_line
                command = found
            flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
            if command.name == "mcp":  # it passes the flags of a source on
                flags |= {flag for parameter in source_flags.params for flag in parameter.opts}
            given = {argument.partition("=")[0] for argument in arguments if argument.startswith("--")}
            assert given <= flags | {"--help"}, command_line


@every_page
def test_every_metric_is_exported(page):
    exported = re.findall(
        r"^\| `(kontrast_\w+)`", (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    named = {name for line in _code(page) for name in re.findall(r"(?<![:\w])kontrast_\w+(?![\w…])", line)}
    assert {name for name in named if not name.endswith("_")} <= set(exported)


@every_page
def test_a_shell_command_can_be_copied(page):
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for command in block.replace("\\\n", " ").strip().splitlines():
            assert shlex.split(command) or not command.strip()


def test_every_target_of_make_that_a_page_names_is_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target for page in PAGES for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert {"test", "bench-page", "soak", "prose", "docs-site"} <= named
    assert named <= targets


def _prose(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def _headings(page: Path) -> set[str]:
    """Return the page's headings as links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


def _code(page: Path) -> list[str]:
    """Return the lines of shell blocks, and the code within sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").strip().splitlines()]
    return lines + re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
