"""Tables of many columns, on a wide and on a narrow terminal, and in a file."""

from __future__ import annotations

from rich.console import Console

from cli.printing.standard_output import plain_lines
from cli.printing.terminal import renderable
from wording.said import Table, line

COLUMNS = ("part", "of", "state", "last", "lag", "agreement", "version", "problem or note")
CLUSTERS = ("payments-production-eu-west-1", "payments-production-eu-west-2")


def shown(width: int) -> list[str]:
    problem = "no heartbeat reaches `kontrast stream`, because its ZooKeeper session is suspended " * 2
    rows = [("watch", name, "wrong", "12 s ago", "0.02 s", "99.98 %", "1.0.0", problem.strip()) for name in CLUSTERS]
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable(Table(COLUMNS, rows, below=1)))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_narrow_terminal_stacks_two_lines_and_cuts_no_name():
    head, *lines = shown(90)
    assert head.split() == ["part", "of", "state", "last", "lag", "agreement", "version"]
    firsts = [line for line in lines if not line.startswith("  ")]
    assert [line.split()[1] for line in firsts] == list(CLUSTERS)
    assert " ".join("".join(lines).split()).count("its ZooKeeper session is suspended") == 4
    assert max(map(len, lines)) <= 90


def test_a_wide_terminal_shows_a_row_a_line():
    head, *_ = shown(200)
    assert head.split()[-3:] == ["problem", "or", "note"]


def test_in_a_file_columns_are_aligned_and_foreign_text_is_escaped():
    table = Table(("topic", "what"), [("日本", "wide"), ("a\x1b[31m\n", ""), ("e\u0301", "composed")])
    assert list(plain_lines([table, line("a\n", ("b", "page"), indent=2), line("")])) == [
        "topic        what",
        "日本         wide",
        r"a\x1b[31m\n",
        "e\u0301            composed",
        r"  a\nb",
        "",
    ]


def test_on_a_terminal_a_meaning_is_a_colour_and_foreign_text_is_escaped():
    console = Console(width=90, color_system="standard", force_terminal=True)
    with console.capture() as captured:
        console.print(renderable(line("a\x1b[31m\n", ("[bold]", "page"), indent=2)))
    assert captured.get().rstrip("\n ") == "  a\\x1b[31m\\n\x1b[1;31m[bold]\x1b[0m"
