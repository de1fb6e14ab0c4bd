"""The list of traps and their tests agree."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_each_listed_trap_has_a_test_and_each_test_a_listed_trap():
    listed = set(re.findall(r"^\| (\d+) \|", (HERE / "traps.md").read_text(encoding="utf-8"), re.MULTILINE))
    sources = "".join(file.read_text(encoding="utf-8") for file in HERE.glob("test_traps_*.py"))
    assert {str(int(number)) for number in re.findall(r"def test_trap_(\d\d)_", sources)} == listed
