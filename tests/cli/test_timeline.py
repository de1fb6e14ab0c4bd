"""`kontrast timeline` of a recorded cluster, equal from files, changes and outputs, and a page for postmortems."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.main import main
from controller.contract.metadata_rows import PartitionRow
from controller.contract.outputs import OUTPUTS, encode_row
from controller.contract.records import LATEST_MS, Record, encode_record
from controller.restore.stored_context import new_context
from controller.step import steps
from dashboards.drawn_timeline.picture import page_of
from questions.explain.explanation import Certainty
from questions.timeline.events import Change, Entry
from questions.timeline.lanes import Lane, LaneCondition, Lanes, Span
from questions.timeline.timeline import Timeline
from tests.recorded_moment import MOMENT_MS, history
from transport.journal import JournalWriter
from wording.facts import without_zxid
from wording.sentences import in_order

_VOID = {"meta", "br"}


@pytest.fixture(scope="module")
def records(recorded_files: Path) -> list[Record]:
    return list(history(recorded_files, "shop").records())


def ask(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["timeline", *map(str, arguments)])


def of_files(recorded_files: Path, *arguments: object) -> dict:
    done = ask("--zk-data", recorded_files, "--cluster", "shop", "--json", *arguments)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def headlines(timeline: dict) -> list[tuple]:
    """Return the events without their changes."""
    return [(event["time_ms"], event["zxid"], event["says"]) for event in timeline["events"]]


class Parsed(HTMLParser):
    """The tags of a page, with how many of each class, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.titles: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.titles if self.open and self.open[-1] == "title" else self.words).append(data)


def check_is_self_contained(page: str) -> Parsed:
    parsed = Parsed(page)
    assert parsed.open == []
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & parsed.tags.keys()
    assert not [one for one in parsed.attributes if one[1] in ("src", "href", "style") or one[1].startswith("on")]
    assert "url(" not in page
    assert "@import" not in page
    policies = [value for _, name, value in parsed.attributes if name == "content" and "default-src" in value]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    return parsed


def test_the_page_draws_what_the_json_has_and_takes_nothing_from_elsewhere(recorded_files, tmp_path):
    until = ("--until", MOMENT_MS)
    done = ask("--zk-data", recorded_files, "--cluster", "shop", *until, "--html", tmp_path / "page.html")
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"wrote {tmp_path / 'page.html'}" in done.stderr
    parsed = check_is_self_contained((tmp_path / "page.html").read_text(encoding="utf-8"))
    timeline = of_files(recorded_files, *until)
    spans = [span for lane in timeline["pictured"]["lanes"] for span in lane["spans"]]
    drawn = Counter(value for tag, name, value in parsed.attributes if (tag, name) == ("rect", "class"))
    by_word = {condition.value: condition.name.lower() for condition in LaneCondition}
    assert drawn == Counter(by_word[span["condition"]] for span in spans)
    assert drawn.keys() == set(by_word.values()) - {"unknown"}  # Kontrast saw the whole recording
    assert all(any(without_zxid(span["says"]) in title for title in parsed.titles) for span in spans)
    assert parsed.tags["tr"] == len(timeline["events"]) + 1
    words = "".join(parsed.words)
    assert all(event["says"] in words for event in timeline["events"])
    assert "inferred: unclean-election" in words
    assert timeline["pictured"]["left_out"]
    assert all(sentence in words for sentence in timeline["pictured"]["left_out"])


def test_the_lanes_show_the_ghost_controller_and_when_brokers_were_away(recorded_files):
    lanes = {
        lane["name"]: lane["spans"] for lane in of_files(recorded_files, "--until", MOMENT_MS)["pictured"]["lanes"]
    }
    assert list(lanes)[:5] == ["controller", "broker 1", "broker 2", "broker 3", "broker 4"]
    assert list(lanes)[5:] == sorted(
        lanes.keys() - set(list(lanes)[:5]), key=lambda name: [*map(int, name[1:].split("-"))]
    )
    without = [span for span in lanes["controller"] if span["condition"] == LaneCondition.DOWN.value]
    assert {span["label"] for span in without} == {"none", "GhostController"}
    assert [(s["label"], s["end_ms"] - s["begin_ms"]) for s in without][-1] == ("GhostController", 3_984)
    assert all(
        span["end_ms"] <= following["begin_ms"]
        for spans in lanes.values()
        for span, following in zip(spans, spans[1:], strict=False)
    )
    away = [span for span in lanes["broker 2"] if span["condition"] == LaneCondition.DOWN.value]
    assert [span["end_ms"] - span["begin_ms"] for span in away] == [1_236, 5_455, 4_930]
    assert {span["condition"] for span in lanes["t3-2"]} >= {LaneCondition.WELL.value, LaneCondition.DOWN.value}


@pytest.mark.parametrize("ends", [("0x198", "0x199"), ("1795373040000", "1795373040001")])
def test_a_window_is_the_same_in_files_and_in_a_stream(tmp_path, records, recorded_files, ends):
    with JournalWriter(tmp_path / "changes") as journal:
        journal.append([encode_record(record) for record in records])
    stream = ("--from", f"journal:{tmp_path / 'changes'}", "--json")
    until, since = ends
    before = json.loads(ask(*stream, "--until", until).stdout)
    after = json.loads(ask(*stream, "--since", since).stdout)
    assert headlines(before) == headlines(of_files(recorded_files, "--until", until))
    whole = of_files(recorded_files, "--until", MOMENT_MS)
    assert before["events"]
    assert after["events"]
    assert changes(before) + changes(after) == changes(whole)


def changes(timeline: dict) -> Counter:
    """Count each partition's changes, and the other events."""
    return Counter(
        (event["says"], name, change["says"].partition(":")[0])
        for event in timeline["events"]
        for change in event["changes"]
        for name in change["partitions"] or [change["subject"]]
    )


def test_what_people_wrote_into_znodes_is_inert_on_the_page():
    hostile = "<script>alert(1)</script>\x1b\u202e\"'>"
    change = Change(subject=hostile, says=hostile, certainty=Certainty.EXPECTED, time_ms=1, last_ms=1, zxid=1)
    several = Change(
        subject="2 partitions",
        says="",
        certainty=Certainty.SEEN,
        time_ms=1,
        last_ms=2,
        zxid=1,
        partitions=(hostile, "b"),
    )
    event = Entry(
        time_ms=1, zxid=-1, says=hostile, certainty=Certainty.INFERRED, rule=hostile, inferred_from=hostile,
        changes=(change, several),
    )  # fmt: skip
    lane = Lane(hostile, (Span(0, 1_000, LaneCondition.WELL, hostile, hostile),))
    page = page_of(
        Timeline(
            cluster=hostile,
            about=hostile,
            begin_ms=0,
            end_ms=1_000,
            events=(event,),
            pictured=Lanes((lane,), (hostile,)),
        ),
        doubts=[hostile],
    )
    check_is_self_contained(page)
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_the_last_moment_of_the_calendar_is_drawn(tmp_path, records):
    with JournalWriter(tmp_path / "changes") as journal:
        journal.append([encode_record(msgspec.structs.replace(one, observed_ms=LATEST_MS)) for one in records])
    page = tmp_path / "page.html"
    done = ask("--from", f"journal:{tmp_path / 'changes'}", "--html", page)
    assert (done.exit_code, "failed unexpectedly" in done.stderr) == (0, False)
    assert "9999-12-31 23:59:59" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("moment", ["9" * 16, "9" * 5_000, "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"])
def test_a_moment_outside_the_calendar_is_one_sentence(recorded_files, option, moment):
    done = ask("--zk-data", recorded_files, option, moment)
    assert (done.exit_code, "not within the years 1970 to 9999" in done.stderr) == (2, True)
    assert len(done.stderr.splitlines()) == 1


_WROTE_ISR = re.compile(r"in sync: (none|[0-9]+(?:(?:, | and )[0-9]+)*)")


@pytest.mark.parametrize("name", ["t1-0", "t1-5", "t4-2", "t6-3"])
def test_every_isr_of_a_partition_is_in_its_timeline(recorded_files, records, name):
    wanted = []
    for row in steps(new_context("shop"), records).effects:
        if isinstance(row, PartitionRow) and f"{row.topic}-{row.partition}" == name and row.leader_epoch >= 0:
            isr = in_order(sorted(row.isr))
            wanted += [isr] if wanted[-1:] != [isr] else []
    events = of_files(recorded_files, "--partition", name, "--until", MOMENT_MS)["events"]
    changed = sorted((c["time_ms"], c["zxid"], c["says"]) for event in events for c in event["changes"])
    shown = [found[1] for _, _, says in changed if (found := _WROTE_ISR.search(says))]
    assert list(dict.fromkeys(wanted)) == list(dict.fromkeys(shown))
    assert len(wanted) <= len(shown)


def test_a_completed_reassignment_names_the_replicas_before_and_after(recorded_files):
    events = of_files(recorded_files, "--partition", "t1-1", "--until", MOMENT_MS)["events"]
    said = [change["says"] for event in events for change in event["changes"] if "reassignment" in change["says"]]
    assert said[:2] == [
        "a reassignment began (replicas from 4, 3 and 1 to 4 and 2, once broker 2 is in sync)",
        "a reassignment was completed (replicas from 4, 3 and 1 to 4 and 2)",
    ]


def test_a_journal_without_a_failover_names_the_controller(tmp_path, records):
    effects = steps(new_context("shop"), records).effects
    late_ms = records[-1].observed_ms - 4_000  # after the last failover
    for output in OUTPUTS:
        kept = [row for row in effects if row.output == output and (output != "transitions" or row.time_ms > late_ms)]
        with JournalWriter(tmp_path / output, batches=True) as journal:
            journal.append_batch(1, [encode_row(row) for row in kept])
    done = ask("--controller", "--from", f"journal:{tmp_path}", "--since", late_ms)
    assert done.exit_code == 0, done.stderr
    assert "broker 2 is controller in epoch 3" in done.stdout
