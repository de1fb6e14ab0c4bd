"""The walk through an incident, which matches the output of its commands."""

from __future__ import annotations

import re

import pytest

from lab.pages import DOCS, postmortem


@pytest.mark.generated
def test_the_committed_page_and_its_picture_are_current():
    files = ("how-to/after-an-incident.md", "postmortem.svg")
    kept = [(DOCS / file).read_text(encoding="utf-8") for file in files]
    assert list(postmortem.filled(kept[0])) == kept, "run `make docs`"


def test_every_time_and_zxid_in_the_words_is_in_an_output():
    page = (DOCS / "how-to" / "after-an-incident.md").read_text(encoding="utf-8")
    outputs = "".join(re.findall(r"```console\n\$ [^\n]*\n(.*?)```", page, re.DOTALL))
    words = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    named = re.findall(r"\d\d:\d\d:\d\d\.\d{3}|0x[0-9a-f]+", words)
    assert len(named) >= 5
    assert [name for name in named if name not in outputs] == []
