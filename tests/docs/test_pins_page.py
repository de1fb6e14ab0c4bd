"""Every pin is in the list of pins, and a day on which it was audited holds for its version only."""

from __future__ import annotations

import shutil

import pytest

from tests.docs.scripts import script


@pytest.fixture
def pins_page(tmp_path, monkeypatch):
    """Load the program, with copies of the page and the requirements."""
    program = script("pins")
    shutil.copytree(program.REQUIREMENTS, tmp_path / "requirements")
    shutil.copy(program.PAGE, tmp_path / "pins.md")
    monkeypatch.setattr(program, "REQUIREMENTS", tmp_path / "requirements")
    monkeypatch.setattr(program, "PAGE", tmp_path / "pins.md")
    return program


@pytest.mark.generated
def test_every_pin_is_in_the_list(pins_page):
    assert pins_page.pins()
    assert list(pins_page.listed()) == list(pins_page.pins()), "run `make docs`"
    assert pins_page.PAGE.read_text(encoding="utf-8") == pins_page.page(pins_page.listed()), "run `make docs`"


def test_a_new_pin_is_missed_and_then_listed_as_never_audited(pins_page):
    with (pins_page.REQUIREMENTS / "run.txt").open("a", encoding="utf-8") as file:
        file.write("a-new-one==1.2.3 ; python_full_version < '3.11' \\\n    --hash=sha256:00\n")
    pin = pins_page.Pin("a-new-one", "1.2.3")
    assert pin in pins_page.pins()
    assert pin not in pins_page.listed()
    assert "| a-new-one | 1.2.3 | run |  | never | never |" in pins_page.page(pins_page.listed())


def test_a_day_is_kept_until_the_version_changes(pins_page):
    page = pins_page.PAGE.read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| kazoo | "))
    audited = f"{row.rsplit(' | ', 2)[0]} | 2026-01-02 | 2026-01-01 |"
    pins_page.PAGE.write_text(page.replace(row, audited), encoding="utf-8")
    assert audited in pins_page.page(pins_page.listed())
    file = pins_page.REQUIREMENTS / "run.txt"
    other = file.read_text(encoding="utf-8").replace("kazoo==2.11.0", "kazoo==2.12.0")
    file.write_text(other, encoding="utf-8")
    rows = [line for line in pins_page.page(pins_page.listed()).splitlines() if line.startswith("| kazoo | 2.12.0")]
    assert [line.endswith("| never | never |") for line in rows] == [True]
