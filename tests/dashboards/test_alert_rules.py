"""The alert rules do what they say, by Prometheus's own tool, and lead to a runbook."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import promql_parser
import pytest

from controller.health import UNUSABLE_WORDS
from dashboards.catalogue import CATALOGUE, CLUSTER_LABEL
from tests.dashboards.incident import BEGIN, END, SCRAPE_SECONDS

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = (PROMETHEUS / "kontrast-rules.yml").read_text(encoding="utf-8")
RULES_TESTS = sorted((PROMETHEUS / "tests").glob("*.test.yml"))
CASES = "".join(path.read_text(encoding="utf-8") for path in RULES_TESTS)
BOARDS = {path.stem for path in (ROOT / "dashboards" / "grafana").glob("*.json")}
ALWAYS_FIRES = {"KontrastWatchdog"}
_HEAD_OF_TESTS = "rule_files: [kontrast-rules.yml]\nevaluation_interval: 15s\ntests:\n"
ALERTS = re.findall(r"^ +- alert: (\w+)$", RULES, re.MULTILINE)


def blocks() -> dict[str, str]:
    """Each alert's text in the file."""
    parts = re.split(r"^ +- (?:alert: (\w+)|record: .*|name: .*)$", RULES, flags=re.MULTILINE)[1:]
    return {name: text for name, text in zip(parts[::2], parts[1::2], strict=True) if name is not None}


def cases_of(alert: str) -> list[str]:
    """The cases of the rules' tests that ask for the alert."""
    return [
        f"  - name: {case}"
        for path in RULES_TESTS
        for case in re.split(r"^  - name: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        if f"alertname: {alert}\n" in case
    ]


def expressions() -> dict[str, str]:
    """The expression of each alert and of each recording rule, on one line."""
    found = {}
    for name, text in re.findall(
        r"- (?:alert|record): (\S+)\n(?: +#.*\n)*( +expr: (?:.|\n)*?)(?=\n +for:|\n +-|\n\n)", RULES
    ):
        found[name] = " ".join(text.replace("expr:", "").replace(">-", "").split())
    return found


def test_there_is_an_alert_for_each_thing_that_must_not_stay_unseen():
    assert {"KontrastPartitionOffline", "KontrastNoActiveController", "KontrastReplicaStale"} <= set(ALERTS)
    assert len(ALERTS) == len(set(ALERTS))


def test_promtool_accepts_the_rules_and_the_scrape_example(promtool):
    for command in (("check", "rules", "--lint=all", "--lint-fatal"), ("check", "config", "--lint=all")):
        name = "kontrast-rules.yml" if "rules" in command else "prometheus.yml"
        result = promtool(*command, str(PROMETHEUS / name))
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("path", RULES_TESTS, ids=lambda path: path.name)
def test_the_rules_fire_and_stay_quiet_as_their_tests_say(path, promtool):
    result = promtool("test", "rules", str(path))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_removing_an_alert_breaks_the_rules_tests(alert, promtool, tmp_path):
    silenced = re.sub(rf"(alert: {alert}\n(?:.*\n)*?\s+for: )\w+", r"\g<1>9h", RULES, count=1)
    assert silenced != RULES
    (tmp_path / "kontrast-rules.yml").write_text(silenced)
    (tmp_path / "cases.test.yml").write_text(_HEAD_OF_TESTS + "".join(cases_of(alert)))
    result = promtool("test", "rules", str(tmp_path / "cases.test.yml"))
    assert result.returncode != 0
    assert f"alertname: {alert}," in result.stdout + result.stderr


@pytest.mark.generated
def test_the_operators_rules_are_the_same(promtool, tmp_path):
    manifest = (ROOT / "deploy" / "kubernetes" / "kontrast-prometheusrule.yml").read_text(encoding="utf-8")
    head, groups = manifest.split("spec:\n")
    assert "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n" in head
    rules = textwrap.dedent(groups)
    assert rules == RULES[RULES.index("groups:\n") :], "run deploy/prometheus/prometheus_rule.py"
    (tmp_path / "rules.yml").write_text(rules)
    result = promtool("check", "rules", "--lint=all", "--lint-fatal", str(tmp_path / "rules.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("form", [[], ["--plain"]])
def test_addresses_are_put_in_front_of_runbooks_and_boards(form):
    command = [sys.executable, PROMETHEUS / "prometheus_rule.py", *form]
    addresses = ["--docs", "https://docs.example/kontrast/", "--grafana", "https://grafana.example"]
    written = subprocess.run([*command, *addresses], capture_output=True, text=True, check=True).stdout
    runbooks = re.findall(r"runbook_url: (\S+)", written)
    assert [Path(url).stem for url in runbooks] == ALERTS
    assert all(url.startswith("https://docs.example/kontrast/runbooks/") for url in runbooks)
    boards = re.findall(r"dashboard_url: (\S+)", written)
    assert len(boards) == len(ALERTS)
    assert all(url.startswith("https://grafana.example/d/kontrast-") for url in boards)
    assert ("kind: PrometheusRule" in written) is not bool(form)


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_labels_annotations_and_a_runbook(alert):
    block = blocks()[alert]
    assert re.search(r"severity: (critical|warning|info|none)$", block, re.MULTILINE)
    assert re.search(r"component: (controller|partition|broker|replica)$", block, re.MULTILINE)
    assert "summary: " in block
    assert "description: " in block
    assert f"runbook_url: docs/runbooks/{alert}.md" in block
    board = re.search(r"dashboard_url: d/([\w-]+)", block)
    assert board is not None
    assert board[1] in BOARDS
    page = ROOT / "docs" / "runbooks" / f"{alert}.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {alert}\n")
    for heading in ("**What it means.**", "**First look.**", "**What to do.**"):
        assert heading in text


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_firing_and_a_quiet_case(alert):
    cases = re.findall(rf"alertname: {alert}\n +eval_time: \w+\n +exp_alerts:(.*)", CASES)
    assert any(case.strip() == "" for case in cases), "no case in which it fires"
    is_quiet_once = any(case.strip() == "[]" for case in cases)
    assert is_quiet_once is (alert not in ALWAYS_FIRES)


@pytest.mark.parametrize("rule", expressions())
def test_an_expression_parses_and_uses_the_catalogue_only(rule):
    expression = expressions()[rule]
    promql_parser.parse(expression)
    used = set(re.findall(r"\bkontrast_\w+", expression))
    assert used or rule in ALWAYS_FIRES
    assert used <= {metric.name for metric in CATALOGUE}
    assert set(re.findall(r"\bkafka_cluster:\w+:\w+", expression)) <= set(expressions())


def test_every_rule_has_an_expression_and_every_record_is_of_a_cluster():
    records = re.findall(r"record: (\S+)", RULES)
    assert set(expressions()) == {*ALERTS, *records}
    for record in records:
        assert re.fullmatch(r"kafka_cluster:kontrast_\w+:(max|min)", record)


def test_every_reason_that_is_exported_has_words_in_the_alert_and_the_runbook():
    page = (ROOT / "docs" / "runbooks" / "KontrastPartitionOffline.md").read_text(encoding="utf-8")
    for problem in UNUSABLE_WORDS:
        assert f"`{problem}`" in page
    in_words = set(re.findall(r'eq \$labels.reason "(\w+)"', blocks()["KontrastPartitionOffline"]))
    assert in_words == UNUSABLE_WORDS - {"leaderless"}  # the last one is the `else`


def test_labels_that_a_rule_groups_by_are_labels_of_some_metric():
    known = {"job", "instance"}.union(*(metric.labels for metric in CATALOGUE))
    groups = re.findall(r"\b(?:by|on) \(([^)]*)\)", RULES)
    assert len(groups) > len(ALERTS) / 2
    for group in groups:
        labels = {label.strip() for label in group.split(",")}
        assert labels <= known
        assert labels & {CLUSTER_LABEL, "instance"}


# Read as: over the recorded incidents, alert KEY's expression holds for these clusters at some time, and for no other.
# Whether it holds for as long as `for` says is another question: recordings last three minutes.
HOLDS_FOR = {
    "KontrastPartitionOffline": {"east", "south", "west"},
    "KontrastPartitionOfflineUnnamed": {"south"},  # more than the ten that are named
    "KontrastPartitionsUnderReplicated": {"east", "south", "west"},
    "KontrastPartitionsUnderMinIsr": {"south", "west"},
    "KontrastUncleanElection": {"east", "south", "west"},
    "KontrastPreferredLeadersAway": {"east", "south", "west"},
    "KontrastNoActiveController": {"east", "south", "west"},  # before the first one
    "KontrastControllerFlapping": {"east", "south", "west"},
    "KontrastOpenAlert": {"south", "west"},  # brokers that flap, and a ghost
    "KontrastTopicDeletionStuck": {"east", "south", "west"},
    "KontrastBrokerAway": {"east", "south", "west"},
    "KontrastReplicaNotReady": set(),
    "KontrastWatchEventsDropped": {"east", "south", "west"},
    "KontrastZnodesUnreadable": {"east", "south", "west"},
    "KontrastRowsLost": {""},
    "KontrastWatchdog": {""},
}


@pytest.mark.parametrize("alert", ALERTS)
def test_an_expression_works_on_what_recorded_incidents_export(alert, incident_prometheus):
    expression = expressions()[alert]
    for record, recorded in expressions().items():
        expression = expression.replace(record, f"({recorded})") if ":" in record else expression
    series = incident_prometheus.query_range(expression, BEGIN, END, SCRAPE_SECONDS)
    assert {each.labels.get(CLUSTER_LABEL, "") for each in series} == HOLDS_FOR.get(alert, set())
