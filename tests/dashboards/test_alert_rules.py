"""Alert rules, checked with Prometheus's own tool, each with a runbook.

`kontrast-self.yml` is written by hand and has a case for each rule. `kontrast-cluster.yml` is generated from the kinds
of alerts. Each of its rules must match the direct delivery of the same alert.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import promql_parser
import pytest

from controller.contract.alert_kinds.kind import NAME_PREFIX
from controller.contract.alert_kinds.kinds import ALERT_KINDS
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.problem import UNUSABLE_WORDS
from dashboards.alerting.active_alerts import BROKER_VIEW, FINALIZED_TOO_EARLY
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import SEVERITY_LABELS, message_of
from dashboards.catalogue.alert_metrics import ALERT_SINCE
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
UNNAMED = "KontrastAlertsUnnamed"  # the one rule on watched clusters that is no kind's
BOARDS = {path.stem for path in (ROOT / "dashboards" / "grafana").glob("*.json")}
ALWAYS_FIRES = {"KontrastWatchdog"}
RULES_TESTS = {name: PROMETHEUS / "tests" / f"{name}.test.yml" for name in NAMES}
CASES = "".join(path.read_text(encoding="utf-8") for path in RULES_TESTS.values())
BY_HAND = [*ALERTS["self"], UNNAMED]

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


def test_there_is_a_rule_for_each_kind_of_alert_and_none_that_means_the_same():
    assert ALERTS["cluster"] == [UNNAMED, *(f"{NAME_PREFIX}{kind}" for kind in KINDS)]
    assert {"KontrastReplicaStale", "KontrastAlertsUndelivered", "KontrastWatchdog"} <= set(ALERTS["self"])
    assert len(ALL_ALERTS) == len(set(ALL_ALERTS))


def test_only_rules_on_kontrast_itself_look_at_anything_but_alerts_that_were_judged():
    for alert in ALERTS["cluster"][1:]:
        used = set(re.findall(r"\b(?:kafka_cluster:)?kontrast_\w+(?::\w+)?", expressions()[alert]))
        assert used == {"kafka_cluster:kontrast_alert_since_timestamp_seconds:min"}
    for alert in ALERTS["self"]:
        assert "component: replica\n          group: replica\n" in blocks()[alert]


@pytest.mark.generated
def test_the_rules_by_kind_are_current():
    made = subprocess.run([sys.executable, PROMETHEUS / "cluster_rules.py"], capture_output=True, text=True, check=True)
    assert made.stdout == RULES["cluster"], "run `make boards`"


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
    ({"broker": 3}, f"clusters/{ESCAPED}/brokers/3"),
    ({"topic": "orders", "broker": 3}, f"clusters/{ESCAPED}/topics/orders"),
    ({"topic": "a b/c+d", "partition": 0}, f"clusters/{ESCAPED}/topics/a%20b%2Fc%2Bd/0"),
    ({"group": "controller", "broker": 3}, f"clusters/{ESCAPED}/controller"),
    ({}, f"clusters/{ESCAPED}"),
)
"""What an alert may be about, and the live page that explains it."""


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
    checks, series = [], [{"series": f'kontrast_ready{{kafka_cluster="{CLUSTER}"}}', "values": "1x20"}]
    for at, kind in enumerate(KINDS):
        about, page = SUBJECTS[at % len(SUBJECTS)]
        row = told_of(kind, severity, about)
        message = message_of(row, AlertmanagerConfig(page_url="http://serve"))
        assert dict(message.annotations)["page_url"] == f"http://serve/{page}"
        series.append({"series": series_of(row), "values": "_x4 1700000000x4 stale"})
        annotations = rule_annotations(kind)
        assert annotations["runbook_url"] == dict(message.annotations)["runbook_url"]
        expected = {name: filled(value) for name, value in annotations.items()} | {"page_url": page}
        labels = {name: value for name, value in message.labels if name != "alertname"}
        for moment, alerts in (
            ("15s", []),
            ("30s", [{"exp_labels": {**labels, "delivered_by": "prometheus"}, "exp_annotations": expected}]),
            ("50s", []),
        ):
            checks.append({"alertname": f"{NAME_PREFIX}{kind}", "eval_time": moment, "exp_alerts": alerts})
    case = {"name": "each kind", "interval": "5s", "input_series": series, "alert_rule_test": checks}
    test = {"rule_files": [str(FILES["cluster"])], "evaluation_interval": "5s", "tests": [case]}
    (tmp_path / "kinds.test.yml").write_text(json.dumps(test))
    result = promtool("test", "rules", str(tmp_path / "kinds.test.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def rule_annotations(kind: str) -> dict[str, str]:
    """Return the annotations of the kind's rule, as the file has them."""
    text = blocks()[f"{NAME_PREFIX}{kind}"].partition("annotations:\n")[2]
    folded = re.findall(r"^ {10}(\w+): >-\n((?: {12}.*\n)+)", text, re.MULTILINE)
    plain = re.findall(r'^ {10}(\w+): "?([^>\n"][^\n"]*)"?$', text, re.MULTILINE)
    return {**dict(plain), **{name: " ".join(lines.split()) for name, lines in folded}}


def filled(text: str) -> str:
    """Fill the annotation as Prometheus does for `told_of`."""
    values = {"$labels.kafka_cluster": CLUSTER, "$labels.subject": "broker 3"}
    values["urlquery $labels.kafka_cluster"] = ESCAPED.replace("%20", "+")
    values["$value | humanizeTimestamp"] = "2023-11-14 22:13:20 +0000 UTC"
    for name, value in values.items():
        text = text.replace(f"{{{{ {name} }}}}", value)
    return re.sub(r"{{ with \$labels.other_broker }}.*{{ end }}", "", text)


def test_every_severity_of_a_row_is_routed():
    recorded = expressions()["kafka_cluster:kontrast_alert_since_timestamp_seconds:min"]
    for severity, label in SEVERITY_LABELS.items():
        renamed = f'"severity", "{label}", "severity", "{severity.value}"'
        assert (renamed in recorded) is (severity.value != label)


@pytest.mark.generated
@pytest.mark.parametrize("name", NAMES)
def test_the_operators_rules_are_the_same(name, promtool, tmp_path):
    manifest = (ROOT / "deploy" / "kubernetes" / f"kontrast-{name}-prometheusrule.yml").read_text(encoding="utf-8")
    head, groups = manifest.split("spec:\n")
    assert "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n" in head
    assert f"  name: kontrast-{name}\n" in head
    rules = textwrap.dedent(groups)
    assert rules == RULES[name][RULES[name].index("groups:\n") :], "run `make boards`"
    (tmp_path / "rules.yml").write_text(rules)
    result = promtool("check", "rules", "--lint=all", "--lint-fatal", str(tmp_path / "rules.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("form", [[], ["--plain"]])
@pytest.mark.parametrize("name", NAMES)
def test_addresses_are_put_in_front_of_runbooks_boards_and_pages(name, form):
    command = [sys.executable, PROMETHEUS / "prometheus_rule.py", name, *form]
    addresses = ["--docs", "https://docs.example/kontrast/", "--grafana", "https://grafana.example"]
    addresses += ["--page", "https://kontrast.example/"]
    written = subprocess.run([*command, *addresses], capture_output=True, text=True, check=True).stdout
    runbooks = re.findall(r"runbook_url: (\S+)", written)
    assert [Path(url).stem for url in runbooks] == ALERTS[name]
    assert all(url.startswith("https://docs.example/kontrast/runbooks/") for url in runbooks)
    boards = re.findall(r"dashboard_url: (\S+)", written)
    assert len(boards) == len(ALERTS[name])
    assert all(url.startswith("https://grafana.example/d/kontrast-") for url in boards)
    pages = re.findall(r"page_url: (\S+)", written)
    assert len(pages) == len(ALERTS[name])
    assert all(url.startswith("https://kontrast.example/clusters") for url in pages)
    assert ("kind: PrometheusRule" in written) is not bool(form)


@pytest.mark.parametrize("alert", ALL_ALERTS)
def test_every_alert_has_annotations_a_board_and_a_runbook(alert):
    block = blocks()[alert]
    assert "summary: " in block
    assert "description: " in block
    assert f"runbook_url: docs/runbooks/{alert}.md" in block
    assert "page_url: clusters" in block
    board = re.search(r"dashboard_url: d/([\w-]+)", block)
    assert board is not None
    assert board[1] in BOARDS
    text = (ROOT / "docs" / "runbooks" / f"{alert}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {alert}\n")
    for heading in ("**Meaning.**", "**First look.**", "**Do.**"):
        assert heading in text


@pytest.mark.parametrize("alert", BY_HAND)
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


@pytest.mark.parametrize("alert", BY_HAND)
def test_an_expression_works_on_what_recorded_incidents_export(alert, incident_prometheus):
    expression = expressions()[alert]
    for record, recorded in expressions().items():
        expression = expression.replace(record, f"({recorded})") if ":" in record else expression
    series = incident_prometheus.query_range(expression, BEGIN, END, SCRAPE_SECONDS)
    assert {each.labels.get(CLUSTER_LABEL, "") for each in series} == HOLDS_FOR.get(alert, set())
