"""`kontrast report` in every form, for two recorded clusters, with its endings, and the sentence of each mistake."""

from __future__ import annotations

import contextlib
import json
import threading
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.main import main
from cli.printing.report_tables import write_tables
from dashboards.drawn_report.page import page_of
from questions.report.cluster_report import ClusterReport, ReportWindow, TopicAvailability
from questions.report.report import Report, report_against
from streaming.report import job
from streaming.report.config import ReportConfig, ZooKeeperFiles
from tests.kept_texts import assert_as_before
from tests.streaming.report.conftest import Recorded

ANSWERS = Path(__file__).parent / "answers"


@pytest.fixture
def ask(spark, monkeypatch):
    """Ask in the existing session, because this process cannot have a second one."""

    @contextlib.contextmanager
    def session(*_arguments, **_settings):
        yield spark

    def ask(*arguments: object) -> Result:
        monkeypatch.setattr(job, "spark_session", session)
        return CliRunner().invoke(main, ["report", *map(str, arguments)])

    return ask


@pytest.fixture(scope="session")
def found(recorded, spark) -> tuple[ClusterReport, ...]:
    """Return the job's reports of both clusters' files, made once."""
    directories = {name: (cluster.files,) for name, cluster in recorded.items()}
    return job.reports_of(spark, ReportConfig(source=ZooKeeperFiles(directories, "/")), threading.Event())


@pytest.fixture
def told(found, monkeypatch):
    """Return a function that prints these reports in another form."""

    def told(*arguments: object) -> Result:
        monkeypatch.setattr(job, "run", lambda _config, _stop: found)
        return CliRunner().invoke(main, ["report", "--zk-data", "/any", *map(str, arguments)])

    return told


def check(name: str, text: str) -> None:
    assert_as_before(text, ANSWERS / name)


def directories(recorded: dict[str, Recorded]) -> list[str]:
    return [word for name, cluster in recorded.items() for word in ("--zk-data", f"{name}={cluster.files}")]


def test_the_answer_for_people_names_who_missed_the_objective(ask, recorded):
    done = ask(*directories(recorded), "--slo", 95)
    assert done.exit_code == 1
    assert done.stderr == ""
    check("report.txt", done.stdout)


def test_json_is_one_object(told, found):
    done = told("--slo", 95, "--format", "json")
    assert done.exit_code == 1
    check("report-json.txt", json.dumps(json.loads(done.stdout), indent=1) + "\n")
    assert msgspec.json.decode(done.stdout, type=Report).clusters == found


def test_csv_is_a_file_a_table(told, tmp_path):
    done = told("--format", "csv", "--slo", 95, "--out", tmp_path / "tables")
    assert done.exit_code == 1
    files = sorted((tmp_path / "tables").iterdir())
    check("report-csv.txt", "\n".join(f"{file.name}\n{file.read_text()}" for file in files))


class Parsed(HTMLParser):
    """The tags of a page and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_html_is_one_page_with_nothing_from_elsewhere(told, tmp_path):
    page = tmp_path / "review.html"
    assert told("--format", "html", "--slo", 95, "--out", page).exit_code == 1
    text = page.read_text(encoding="utf-8")
    check("report.html", text)
    parsed = Parsed(text)
    assert not {"script", "link", "img", "iframe", "object"} & set(parsed.tags)
    assert not [value for name, value in parsed.attributes if name in ("src", "href") or "http:" in value]
    assert [value for name, value in parsed.attributes if name == "content" and "default-src 'none'" in value]
    assert parsed.tags.count("svg") == 2
    assert "objective" in [value for name, value in parsed.attributes if name == "class"]


def test_hostile_names_stay_text(tmp_path, monkeypatch):
    hostile = "=cmd|' /C calc'!A0<script>alert(1)</script>\x1b[31m\u202e\u2028"
    topic = TopicAvailability(
        topic=hostile,
        partition_minutes=10.0,
        offline_partition_minutes=1.0,
        unwritable_partition_minutes=2.0,
        online=0.9,
        writable=0.8,
    )
    window = ReportWindow(since_ms=0, until_ms=1, seen_from_ms=0, seen_until_ms=1, seen_seconds=1.0, unseen_seconds=0.0)
    nothing = dict.fromkeys(("without_controller_seconds", "partition_minutes"), 0.0)
    minutes = dict.fromkeys(("offline_partition_minutes", "unwritable_partition_minutes"), 0.0)
    empty = dict.fromkeys(("failovers", "reactions", "brokers", "alerts"), ())
    of_cluster = ClusterReport(
        cluster="a",
        window=window,
        topics=(topic,),
        elections={},
        writes={},
        agreement=None,
        **nothing,
        **minutes,
        **empty,
    )
    found = report_against(None, [of_cluster])
    assert "script" not in Parsed(page_of(found)).tags
    assert "\x1b" not in page_of(found)
    write_tables(found, tmp_path)
    assert (tmp_path / "topics.csv").read_text().splitlines()[1].startswith("a,'=cmd")
    monkeypatch.setattr(job, "run", lambda _config, _stop: (of_cluster,))
    for form in ("text", "json", "html"):
        printed = CliRunner().invoke(main, ["report", "--zk-data", "/any", "--format", form]).stdout
        assert "u202e" in printed, form
        assert all(character.isprintable() for line in printed.split("\n") for character in line), form


def test_each_form_has_the_impact_by_team(told, tmp_path):
    config = tmp_path / "kontrast.toml"
    config.write_text(
        '[topics]\n"t*" = { team = "ledger", contact = "#ledger" }\nb = { team = "accounts", rank = 1 }\n'
    )
    forms = ("text", "json", "html", "csv")
    for form in forms:
        assert told("--config", config, "--format", form, "--out", tmp_path / form).exit_code == 0
    check("teams.txt", "".join(about_teams(form, tmp_path / form) for form in forms))


def about_teams(form: str, out: Path) -> str:
    """Return the lines about teams."""
    if form == "csv":
        return (out / "teams.csv").read_text()
    if form == "json":
        return json.dumps(json.loads(out.read_text())["teams"], indent=1) + "\n"
    text = out.read_text()
    begin, end = ("<h2>Impact by team", "<h2>Without") if form == "html" else ("partition-minutes of", "bank: ")
    return text[text.index(begin) : text.index(end)] + "\n"


def test_an_objective_that_everything_met_is_exit_code_0(told):
    assert told("--slo", 1).exit_code == 0
    assert told().exit_code == 0


def test_a_cluster_that_cannot_be_read_is_exit_code_3_and_the_others_are_told(ask, recorded, tmp_path):
    done = ask("--zk-data", f"bank={recorded['bank'].files}", "--zk-data", f"gone={tmp_path / 'absent'}")
    assert done.exit_code == 3
    assert done.stdout.startswith("bank: ")
    assert f"cluster gone: {tmp_path / 'absent'} is no directory" in done.stderr


def test_nothing_of_a_cluster_is_exit_code_2(ask, changes):
    done = ask("--from", f"journal:{changes}", "--cluster", "north")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "the kept data has no rows of cluster north" in done.stderr


def test_what_was_not_seen_is_said_beside_every_form(ask, changes):
    done = ask("--from", f"journal:{changes}", "--cluster", "bank", "--since", "2020-01-01", "--format", "html")
    assert done.exit_code == 0
    assert "of the window is missing from the data" in done.stdout
    assert "of the window is missing from the data" in done.stderr


def test_a_place_that_cannot_be_written_is_one_sentence(told):
    for form in ("html", "csv", "text"):
        done = told("--format", form, "--out", "/proc/nowhere/file")
        assert done.exit_code == 2
        assert "cannot be written: No such file or directory. Give --out another place" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "give either --from ADDRESS or --zk-data DIR"),
        (["--from", "journal:/x", "--zk-data", "/y"], "give either --from ADDRESS or --zk-data DIR"),
        (["--zk-data", "/a/zk", "--zk-data", "/b/zk"], "two directories are called 'zk'"),
        (["--zk-data", "a="], "'a=' is not NAME=DIR"),
        (["--zk-data", "a=/x", "--cluster", "b"], "names no cluster b"),
        (["--zk-data", "/a", "--cluster", "b", "--cluster", "c"], "names no cluster b, c"),
        (["--zk-data", "/"], "give the name of the cluster in /"),
        (["--zk-data", "a=/x", "--format", "csv"], "--format csv needs --out"),
        (["--zk-data", "a=/x", "--since", "0x1f"], "is a zxid"),
        (["--zk-data", "a=/x", "--since", "30 days"], "'30 days'"),
        (["--zk-data", "a=/x", "--since", "2024-01-02", "--until", "2024-01-01"], "ends before it begins"),
        (["--zk-data", "a=/x", "--slo", "101"], "101"),
        (["--zk-data", "a=/x", "--master", "yarn"], "local[N]"),
        (["--zk-data", "a=/x", "--driver-memory", "much"], "512m or 2g"),
        (["--from", "nfs:/x"], "nfs:/x"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, named):
    done = CliRunner().invoke(main, ["report", *arguments])
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert named in done.stderr
