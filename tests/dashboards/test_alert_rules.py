"""The alert rules do what they say, by Prometheus's own tool, and lead to a runbook."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest

from controller.health import UNUSABLE
from dashboards.catalogue import CATALOGUE, CLUSTER_LABEL

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = (PROMETHEUS / "kontrast-rules.yml").read_text(encoding="utf-8")
RULES_TEST = (PROMETHEUS / "kontrast-rules.test.yml").read_text(encoding="utf-8")
ALERTS = re.findall(r"^ +- alert: (\w+)$", RULES, re.MULTILINE)


def blocks() -> dict[str, str]:
    """Each alert's text in the file."""
    parts = re.split(r"^ +- alert: (\w+)$", RULES, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_there_is_an_alert_for_each_thing_that_must_not_stay_unseen():
    assert {"KontrastPartitionOffline", "KontrastNoActiveController", "KontrastReplicaStale"} <= set(ALERTS)
    assert len(ALERTS) == len(set(ALERTS))


def test_promtool_accepts_the_rules_and_the_scrape_example(promtool):
    for command in (("check", "rules", "--lint=all", "--lint-fatal"), ("check", "config", "--lint=all")):
        name = "kontrast-rules.yml" if "rules" in command else "prometheus.yml"
        result = promtool(*command, str(PROMETHEUS / name))
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_rules_fire_and_stay_quiet_as_their_tests_say(promtool):
    result = promtool("test", "rules", str(PROMETHEUS / "kontrast-rules.test.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_removing_an_alert_breaks_the_rules_test(alert, promtool, tmp_path):
    silenced = re.sub(rf"(alert: {alert}\n(?:.*\n)*?\s+for: )\w+", r"\g<1>9h", RULES, count=1)
    assert silenced != RULES
    (tmp_path / "kontrast-rules.yml").write_text(silenced)
    (tmp_path / "kontrast-rules.test.yml").write_text(RULES_TEST)
    assert promtool("test", "rules", str(tmp_path / "kontrast-rules.test.yml")).returncode != 0


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_labels_annotations_and_a_runbook(alert):
    block = blocks()[alert]
    assert re.search(r"severity: (critical|warning|info|none)$", block, re.MULTILINE)
    assert re.search(r"component: (controller|partition|broker|replica)$", block, re.MULTILINE)
    assert "summary: " in block
    assert "description: " in block
    assert f"runbook_url: docs/runbooks/{alert}.md" in block
    page = ROOT / "docs" / "runbooks" / f"{alert}.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {alert}\n")
    for heading in ("**What it means.**", "**First look.**", "**What to do.**"):
        assert heading in text


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_firing_and_a_quiet_case(alert):
    cases = re.findall(rf"alertname: {alert}\n +eval_time: \w+\n +exp_alerts:(.*)", RULES_TEST)
    assert any(case.strip() == "" for case in cases), "no case in which it fires"
    quiet_cluster = any(case.strip() == "[]" for case in cases)
    assert quiet_cluster, "no case in which it is quiet"


@pytest.mark.parametrize("alert", ALERTS)
def test_the_expression_parses_and_uses_the_catalogue_only(alert):
    expression = re.search(r"expr: (?:>-\n)?((?:.|\n)*?)\n +for:", blocks()[alert])
    assert expression is not None
    text = " ".join(line.split(" #")[0].strip() for line in expression[1].splitlines())
    promql_parser.parse(text)
    used = set(re.findall(r"\bkontrast_\w+", text))
    assert used
    assert used <= {metric.name for metric in CATALOGUE}


def test_every_reason_that_is_exported_has_words_in_the_alert_and_the_runbook():
    page = (ROOT / "docs" / "runbooks" / "KontrastPartitionOffline.md").read_text(encoding="utf-8")
    for problem in UNUSABLE:
        assert f"`{problem}`" in page
    in_words = set(re.findall(r'eq \$labels.reason "(\w+)"', blocks()["KontrastPartitionOffline"]))
    assert in_words == UNUSABLE - {"leaderless"}  # the last one is the `else`


def test_labels_that_a_rule_groups_by_are_labels_of_some_metric():
    known = {"job", "instance"}.union(*(metric.labels for metric in CATALOGUE))
    groups = re.findall(r"\b(?:by|on) \(([^)]*)\)", RULES)
    assert len(groups) > len(ALERTS) / 2
    for group in groups:
        labels = {label.strip() for label in group.split(",")}
        assert labels <= known
        assert CLUSTER_LABEL in labels
