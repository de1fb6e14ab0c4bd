"""Every alert has a runbook of one shape, and what runbooks name is there: pages, commands, metrics."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from cli.main import main
from controller.contract.alert_kinds.kinds import ALERT_KINDS
from dashboards.alerting.active_alerts import BROKER_VIEW
from dashboards.alerting.message import NAME_PREFIX, STALE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUNBOOKS = DOCS / "runbooks"
KINDS = {f"Kontrast{name}" for name in ALERT_KINDS}
RULES = {
    alert
    for name in ("self", "cluster")
    for alert in re.findall(
        r"^ *- alert: (\w+)$",
        (ROOT / f"deploy/prometheus/kontrast-{name}.yml").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
OF_THE_EXPORTER = {f"{NAME_PREFIX}{STALE}", f"{NAME_PREFIX}{BROKER_VIEW}"}
PARTS = ["Meaning.", "First look.", "Do.", "Do not.", "It ends"]
PAGES = [DOCS / "alerts.md", *sorted(RUNBOOKS.iterdir())]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def test_every_kind_and_every_rule_has_a_runbook_and_there_is_no_other():
    assert {page.name for page in RUNBOOKS.iterdir()} == {f"{name}.md" for name in KINDS | RULES | OF_THE_EXPORTER}


@pytest.mark.parametrize("page", sorted(RUNBOOKS.iterdir()), ids=lambda page: page.stem)
def test_a_runbook_has_all_parts_in_their_order(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}\n")
    assert re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE)[: len(PARTS)] == PARTS


@every_page
def test_every_link_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", text)
    for label, target in links:
        file, _, heading = target.partition("#")
        path = (page.parent / file).resolve()
        assert path.is_file(), target
        assert not heading or heading in _headings(path), target
        assert path.is_relative_to(ROOT), target
        if path.parent == RUNBOOKS:
            assert f"Kontrast{label.removeprefix('Kontrast')}.md" == path.name, f"{label} leads to {target}"


@every_page
def test_every_command_of_kontrast_exists_with_its_flags(page):
    for line in _code(page):
        for said in re.findall(r"\bkontrast ([a-z].*)", line):
            command, arguments = main, shlex.split(said)
            while isinstance(command, click.Group):
                command = command.get_command(click.Context(command), arguments.pop(0))
                assert command is not None, said
            flags = {flag for parameter in command.params for flag in parameter.opts}
            assert {argument for argument in arguments if argument.startswith("--")} <= flags, said


@every_page
def test_every_metric_is_exported(page):
    exported = re.findall(r"^\| `(kontrast_\w+)`", (DOCS / "metrics.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for line in _code(page) for name in re.findall(r"\bkontrast_\w+", line)}
    assert named <= set(exported)


@every_page
def test_a_shell_command_can_be_copied(page):
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for command in block.replace("\\\n", " ").strip().splitlines():
            assert shlex.split(command)


def _headings(page: Path) -> set[str]:
    """The page's headings as links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


def _code(page: Path) -> list[str]:
    """What the page shows as code: in blocks by line, and within sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").strip().splitlines()]
    return lines + re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
