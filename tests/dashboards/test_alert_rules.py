"""Alert rules, checked with Prometheus's own tool, each with a runbook.

Each rule has a case. The rule that passes alerts on must match the direct delivery of each kind.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import promql_parser
import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.problem import UNUSABLE_WORDS
from controller.says.alert_kinds.kinds import ALERT_KINDS
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import SEVERITY_LABELS, message_of
from dashboards.alerting.registry import BROKER_VIEW, FINALIZED_TOO_EARLY
from dashboards.catalogue.cluster_metrics import ALERT_SINCE
from dashboards.catalogue.metric import CLUSTER_LABEL
from dashboards.catalogue.table import CATALOGUE
from dashboards.exporter.collector import MemoryCollector
from dashboards.exporter.scrape import DetailLimits
from outputs.reading import ReadingCounts
from questions.memory import Memory
from tests.dashboards.incident import BEGIN, CLUSTERS, END, SCRAPE_SECONDS
from tests.rows import NEVER_STALE_MS, TIME_MS

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
NAMES = ("self", "cluster")
FILES = {name: PROMETHEUS / f"kontrast-{name}.yml" for name in NAMES}
RULES = {name: file.read_text(encoding="utf-8") for name, file in FILES.items()}
ALERTS = {name: re.findall(r"^ +- alert: (\w+)$", rules, re.MULTILINE) for name, rules in RULES.items()}
ALL_ALERTS = [alert for name in NAMES for alert in ALERTS[name]]
KINDS = [*ALERT_KINDS, BROKER_VIEW, FINALIZED_TOO_EARLY]
BOARDS = {path.stem for path in (ROOT / "deploy" / "helm" / "kontrast" / "boards").glob("*.json")}
ALWAYS_FIRES = {"KontrastWatchdog"}
RULES_TESTS = {name: ROOT / "tests" / "deploy" / "prometheus" / f"{name}.test.yml" for name in NAMES}
CASES = "".join(path.read_text(encoding="utf-8") for path in RULES_TESTS.values())
PASSED_ON = "KontrastAlert"  # the rule for each kind
OF_ONE_MEANING = [alert for alert in ALL_ALERTS if alert != PASSED_ON]

# The possible severities of a kind, its own, and info while it is held back.
SEVERITIES = list(Severity)


def blocks() -> dict[str, str]:
    """Return each alert's text in its file."""
    pattern = re.compile(r"^ +- (?:alert: (\w+)|record: .*|name: .*)$", re.MULTILINE)
    parts = [part for rules in RULES.values() for part in pattern.split(rules)[1:]]
    return {name: text for name, text in zip(parts[::2], parts[1::2], strict=True) if name is not None}


def expressions() -> dict[str, str]:
    """Return the expression of each alert and of each recording rule, on one line."""
    found = {}
    pattern = r"- (?:alert|record): (\S+)\n(?: +#.*\n)*( +expr: (?:.|\n)*?)(?=\n +for:|\n +-|\n +#|\n\n)"
    for name, text in re.findall(pattern, "".join(RULES.values())):
        found[name] = " ".join(text.replace("expr:", "").replace(">-", "").split())
    return found


def test_one_rule_passes_on_every_alert_and_the_others_are_about_kontrast_itself():
    assert ALERTS["cluster"] == [PASSED_ON, "KontrastAlertsUnnamed"]
    assert {"KontrastReplicaStale", "KontrastAlertsUndelivered", "KontrastWatchdog"} <= set(ALERTS["self"])
    assert len(ALL_ALERTS) == len(set(ALL_ALERTS))
    assert expressions()[PASSED_ON] == "kafka_cluster:kontrast_alert_since_timestamp_seconds:min"
    for alert in OF_ONE_MEANING:
        assert "component: replica\n          group: replica\n" in blocks()[alert]


def test_the_recorded_alerts_keep_every_label():
    recorded = expressions()["kafka_cluster:kontrast_alert_since_timestamp_seconds:min"]
    kept = re.search(r"min by \(([^)]*)\)", recorded)
    assert kept is not None
    assert tuple(name.strip() for name in kept[1].split(",")) == ALERT_SINCE.labels


def test_promtool_accepts_the_rules_and_the_scrape_example(promtool):
    for command in (
        *(("check", "rules", "--lint=all", "--lint-fatal", str(file)) for file in FILES.values()),
        ("check", "config", "--lint=all", str(PROMETHEUS / "prometheus.yml")),
    ):
        result = promtool(*command)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("path", RULES_TESTS.values(), ids=lambda path: path.name)
def test_the_rules_fire_and_stay_quiet_as_their_tests_say(path, promtool):
    result = promtool("test", "rules", str(path))
    assert result.returncode == 0, result.stdout + result.stderr


CLUSTER = "north/eu 1+2?&#ü"  # characters that an address must escape
ESCAPED = "north%2Feu%201%2B2%3F%26%23%C3%BC"
SUBJECTS = (
    {"broker": 3},
    {"topic": "orders", "broker": 3},
    {"topic": "a b/c+d", "partition": 0},
    {"group": "controller", "broker": 3},
    {},
)
"""What an alert may be about."""


def told_of(kind: str, severity: Severity, about: dict[str, object]) -> AlertRow:
    """Return an alert of the kind, with these fields."""
    place = {"cluster": CLUSTER, "generation": 1, "seq": 1, "ordinal": 0, "zxid": 1, "time_ms": TIME_MS}
    what = {
        "id": kind,
        "alert": kind,
        "state": "open",
        "severity": severity,
        "subject": "broker 3",
        "group": "broker 3",
    }
    return AlertRow(**{**place, **what, "since_ms": TIME_MS, "cause": "because", **about})


def series_of(row: AlertRow) -> str:
    """Return the exporter's series of the alert."""
    messages = {row.cluster: [message_of(row, AlertmanagerConfig())]}
    collector = MemoryCollector(
        Memory(), ReadingCounts(), DetailLimits(partitions=9, brokers=9, alerts=9), NEVER_STALE_MS, lambda: messages
    )
    (family,) = (family for family in collector.collect() if family.name == ALERT_SINCE.name)
    (sample,) = family.samples
    labels = ", ".join(f"{name}={json.dumps(value)}" for name, value in sample.labels.items() if value)
    return f"{sample.name}{{{labels}}}"


@pytest.mark.parametrize("severity", SEVERITIES)
def test_each_kind_fires_with_the_labels_and_runbook_of_direct_delivery(severity, promtool, tmp_path):
    """All kinds fit into one run of promtool, because JSON is YAML."""
    alerts, series = [], [{"series": f'kontrast_ready{{kafka_cluster="{CLUSTER}"}}', "values": "1x20"}]
    for at, kind in enumerate(KINDS):
        row = told_of(kind, severity, SUBJECTS[at % len(SUBJECTS)])
        message = message_of(row, AlertmanagerConfig(page_url="http://serve"))
        annotations = dict(message.annotations)
        page = f"clusters/{ESCAPED}"
        assert annotations["page_url"].partition("?at=")[0] == f"http://serve/{page}"
        series.append({"series": series_of(row), "values": "_x4 1700000000x4 stale"})
        labels = {name: value for name, value in message.labels if name != "alertname"}
        told = {
            "summary": f"{CLUSTER}: broker 3: {kind}",
            "description": f"{kind} of broker 3. The page has the cause, and the runbook the next step.",
            "since": "2023-11-14 22:13:20 +0000 UTC",
            "rank": annotations["rank"],
            "runbook_url": annotations["runbook_url"],
            "dashboard_url": f"d/kontrast-cluster?var-kafka_cluster={ESCAPED.replace('%20', '+')}",
            "page_url": page,
        }
        alerts.append({"exp_labels": {**labels, "delivered_by": "prometheus"}, "exp_annotations": told})
    checks = [
        {"alertname": PASSED_ON, "eval_time": moment, "exp_alerts": expected}
        for moment, expected in (("15s", []), ("30s", alerts), ("50s", []))
    ]
    case = {"name": "each kind", "interval": "5s", "input_series": series, "alert_rule_test": checks}
    test = {"rule_files": [str(FILES["cluster"])], "evaluation_interval": "5s", "tests": [case]}
    (tmp_path / "kinds.test.yml").write_text(json.dumps(test))
    result = promtool("test", "rules", str(tmp_path / "kinds.test.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_severity_of_a_row_is_routed():
    recorded = expressions()["kafka_cluster:kontrast_alert_since_timestamp_seconds:min"]
    for severity, label in SEVERITY_LABELS.items():
        renamed = f'"severity", "{label}", "severity", "{severity.value}"'
        assert (renamed in recorded) is (severity.value != label)


def test_addresses_are_put_in_front_of_runbooks_boards_and_pages():
    addresses = ("DOCS_URL=https://docs.example/kontrast/", "GRAFANA_URL=https://grafana.example")
    command = ["make", "--silent", "rules", *addresses, "PAGE_URL=https://kontrast.example/"]
    subprocess.run(command, cwd=ROOT, check=True)
    for name in NAMES:
        written = (ROOT / "build" / "rules" / f"kontrast-{name}.yml").read_text(encoding="utf-8")
        found = {of: re.findall(rf"{of}_url: (\S+)", written) for of in ("runbook", "dashboard", "page")}
        assert all(len(urls) == len(ALERTS[name]) for urls in found.values())
        assert all(url.startswith("https://docs.example/kontrast/runbooks/Kontrast") for url in found["runbook"])
        assert all(url.startswith("https://grafana.example/d/kontrast-") for url in found["dashboard"])
        assert all(url.startswith("https://kontrast.example/clusters") for url in found["page"])


@pytest.mark.parametrize("alert", ALL_ALERTS)
def test_every_alert_has_annotations_and_a_board(alert):
    block = blocks()[alert]
    named = "Kontrast{{ $labels.alert }}" if alert == PASSED_ON else alert
    assert f"runbook_url: docs/runbooks/{named}.md\n" in block
    assert "summary: " in block
    assert "description: " in block
    assert "page_url: clusters" in block
    board = re.search(r"dashboard_url: d/([\w-]+)", block)
    assert board is not None
    assert board[1] in BOARDS


@pytest.mark.parametrize("alert", OF_ONE_MEANING)
def test_every_alert_of_its_own_has_labels_and_a_firing_and_a_quiet_case(alert):
    assert re.search(r"severity: (critical|warning|info|none)$", blocks()[alert], re.MULTILINE)
    cases = re.findall(rf"alertname: {alert}\n +eval_time: \w+\n +exp_alerts:(.*)", CASES)
    assert any(case.strip() == "" for case in cases), "no case in which it fires"
    is_quiet_once = any(case.strip() == "[]" for case in cases)
    assert is_quiet_once is (alert not in ALWAYS_FIRES)


def test_no_rule_says_that_something_fires_when_it_does_not_any_more():
    assert "keep_firing_for" not in "".join(RULES.values())


@pytest.mark.parametrize("rule", expressions())
def test_an_expression_parses_and_uses_the_catalogue_only(rule):
    expression = expressions()[rule]
    promql_parser.parse(expression)
    recorded = set(re.findall(r"\bkafka_cluster:\w+:\w+", expression))
    used = set(re.findall(r"(?<!:)\bkontrast_\w+", expression))
    assert used | recorded or rule in ALWAYS_FIRES
    assert used <= {metric.name for metric in CATALOGUE}
    assert recorded <= set(expressions())


def test_every_rule_has_an_expression_and_every_record_is_of_a_cluster():
    records = re.findall(r"record: (\S+)", "".join(RULES.values()))
    assert set(expressions()) == {*ALL_ALERTS, *records}
    for record in records:
        assert re.fullmatch(r"kafka_cluster:kontrast_\w+:(max|min)", record)


def test_every_reason_that_is_exported_has_words_in_the_runbook():
    page = (ROOT / "docs" / "runbooks" / "KontrastPartitionsOffline.md").read_text(encoding="utf-8")
    for problem in UNUSABLE_WORDS:
        assert f"`{problem}`" in page


def test_labels_that_a_rule_groups_by_are_labels_of_some_metric():
    known = {"job", "instance"}.union(*(metric.labels for metric in CATALOGUE))
    groups = re.findall(r"\b(?:by|on|without) \(([^)]*)\)", "".join(RULES.values()))
    assert len(groups) > len(ALL_ALERTS) / 2
    for group in groups:
        labels = {label.strip() for label in group.split(",")}
        assert labels <= known
        assert labels & {CLUSTER_LABEL, "instance", "alert"}


# Over the recorded incidents, alert KEY's expression holds for these clusters at some time, and for no other. The
# duration `for` is not checked, because recordings last three minutes.
HOLDS_FOR = {
    "KontrastWatchEventsDropped": set(CLUSTERS),
    "KontrastZnodesForbidden": set(CLUSTERS),
    "KontrastRowsLost": {""},
    "KontrastWatchdog": {""},
}


@pytest.mark.parametrize("alert", OF_ONE_MEANING)
def test_an_expression_works_on_what_recorded_incidents_export(alert, incident_prometheus):
    expression = expressions()[alert]
    for record, recorded in expressions().items():
        expression = expression.replace(record, f"({recorded})") if ":" in record else expression
    series = incident_prometheus.query_range(expression, BEGIN, END, SCRAPE_SECONDS)
    assert {each.labels.get(CLUSTER_LABEL, "") for each in series} == HOLDS_FOR.get(alert, set())
