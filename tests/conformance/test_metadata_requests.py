"""UpdateMetadata of every recording: the partitions that brokers were told, by the controller's log and by our rows.

`REWRITE=1 pytest tests/conformance/test_metadata_requests.py` writes the figures, and their table by release into
docs/explanation/what-a-replica-cannot-know.md. A figure may only rise.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.metadata_requests import metadata_agreement
from tests.conformance.test_row_digests import NAMES

FIGURES = Path(__file__).with_name("metadata-requests.json")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "what-a-replica-cannot-know.md"
REWRITES = os.environ.get("REWRITE") == "1"
_BEGIN, _END = "<!-- metadata: begin -->\n", "<!-- metadata: end -->\n"
_HEAD = "| release | recordings | in the log | published | in both | share |\n| --- | --- | --- | --- | --- | --- |\n"


def figures() -> dict[str, list]:
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else {}


def table() -> str:
    """Return the figures by release."""
    sums: dict[str, Counter[str]] = {}
    for release, matched, real, derived in figures().values():
        if real:  # KRaft's recordings have no such log
            sums.setdefault(release, Counter()).update(n=1, matched=matched, real=real, derived=derived)
    lines = [
        f"| {release} | {of['n']} | {of['real']:,} | {of['derived']:,} | {of['matched']:,} "
        f"| {100 * of['matched'] / max(of['real'], of['derived']):.1f} % |\n"
        for release, of in sorted(sums.items(), key=lambda item: [int(part) for part in re.findall(r"\d+", item[0])])
    ]
    return _HEAD + "".join(lines)


@pytest.mark.parametrize("name", NAMES)
def test_brokers_are_told_of_partitions_as_counted(name, recordings, report):
    recording, replay = recordings(name)
    found = metadata_agreement(recording, replay.rows)
    report.append(f"{name:8} partitions in UpdateMetadata {found}")
    now = [recording.release(), *found]
    if REWRITES:
        FIGURES.write_text(json.dumps({**figures(), name: now}, sort_keys=True).replace("], ", "],\n") + "\n")
    assert figures()[name] == now


def test_the_page_has_the_figures_by_release():
    before, begin, rest = PAGE.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    page = f"{before}{begin}{table()}{end}{after}"
    if REWRITES:
        PAGE.write_text(page)
    assert PAGE.read_text() == page
    assert begin
    assert end
