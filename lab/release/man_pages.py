"""Writer of the man pages, one for each command, from the help texts: `lab/release/man_pages.py DIRECTORY VERSION DAY`.

`make release` packs them. A page ends with the command's examples and exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click_man.core import generate_man_page

sys.path.insert(0, str(Path(__file__).parents[2]))

from cli.main import main  # noqa: E402 (needs the path above)


def pages(command: click.Command, parent: click.Context | None, version: str, day: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of a command's page, and of the pages of its subcommands."""
    context = click.Context(command, info_name=command.name, parent=parent)
    text = generate_man_page(context, version=version, date=day)
    if command.epilog:
        lines = command.epilog.replace("\b\n", "").replace("\\", "\\e").replace("-", "\\-").splitlines()
        text += "\n".join(["\n.SH EXAMPLES AND EXIT CODES", ".nf", *(f"\\&{line}" for line in lines), ".fi", ""])
    yield f"{context.command_path.replace(' ', '-')}.1", text
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                yield from pages(below, context, version, day)


def write(directory: Path, version: str, day: str) -> None:
    """Write all pages into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    main.name = "kontrast"
    for name, text in pages(main, None, version, day):
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), *sys.argv[2:])
