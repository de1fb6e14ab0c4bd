"""Hooks of mkdocs, which add runbooks and decisions to the navigation, and change links that leave `docs/`.

`make docs-site` runs them. The repository has no address of its own, so a link to a file outside of `docs/`, or to a
folder, becomes the file's path. A link to a file that does not exist fails the build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def on_config(config: Any) -> Any:  # noqa: ANN401 (mkdocs' own object)
    """Add every runbook and decision to the navigation, and to each section the pages of its folder that it lacks."""
    for section in config["nav"]:
        for pages in section.values():
            if isinstance(pages, list):
                folder = pages[0].partition("/")[0]
                pages += [page for page in _pages(folder) if page not in pages]
    config["nav"] += [{"Runbooks": _pages("runbooks")}, {"Decisions": _pages("decisions")}]
    return config


def _pages(folder: str) -> list[str]:
    return sorted(f"{folder}/{page.name}" for page in (DOCS / folder).glob("*.md"))


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:  # noqa: ANN401
    """Return the page's text with links that leave `docs/` as paths."""
    folder = (DOCS / page.file.src_uri).parent

    def within(link: re.Match[str]) -> str:
        if re.match(r"[a-z]+:", link["target"]):
            return link[0]
        target = (folder / link["target"]).resolve()
        if not target.exists():
            raise FileNotFoundError(f"{page.file.src_uri} links to {link['target']}, which does not exist")
        if target.is_file() and target.is_relative_to(DOCS):
            return link[0]
        path = target.relative_to(ROOT)
        return link["text"] if link["text"].strip("`") == str(path) else f"{link['text']} (`{path}`)"

    return _LINK.sub(within, markdown)
