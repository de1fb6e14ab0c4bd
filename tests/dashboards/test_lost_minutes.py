"""The queries of `how-to/after-an-incident.md`, which add up the minutes that clients lost, in a real Prometheus."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import UNUSABLE_WORDS
from tests.dashboards.incident import BEGIN, END, SCRAPE_SECONDS, cluster_of

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "after-an-incident.md"
OFFLINE, REJECTING = re.findall(r"```promql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
BY_TEAM, BY_CLUSTER = "by (kafka_cluster, team)", "by (kafka_cluster)"
SINCE = "kontrast_partition_{}_since_timestamp_seconds"
NAMED = {
    SINCE.format("offline"): {("payments-eu", 0): "_x60 7x29 stale", ("other", 1): "_x90 7 7 stale"},
    SINCE.format("under_min_isr"): {("ledger", 0): "_x10 7x9 stale", ("payments-eu", 0): "_x90 7x4 stale"},
}
DROPPED = {
    "kontrast_partition_detail_dropped": "0x59 3x3 0x100",
    "kontrast_partition_under_min_isr_detail_dropped": "0x163",
}


def test_each_minute_of_each_partition_counts_once_for_its_team(promtool, tmp_path):
    series = [
        {
            "series": f'{metric}{{kafka_cluster="east",instance="{exporter}",topic="{topic}",partition="{number}"}}',
            "values": values,
        }
        for exporter in ("a", "b")  # two exporters of one cluster
        for metric, named in NAMED.items()
        for (topic, number), values in named.items()
    ]
    series += [
        {
            "series": f'{metric}{{kafka_cluster="{cluster}",instance="a"}}',
            "values": values if cluster == "east" else "0x163",
        }
        for metric, values in DROPPED.items()
        for cluster in ("east", "west")
    ]
    offline = {("east", "payments"): 30, ("east", ""): 2 + 4 * 3, ("west", ""): 0}
    rejecting = {("east", "payments"): 30 + 5, ("east", ""): 2 + 4 * 3, ("east", "audit"): 10, ("west", ""): 0}
    asked = [_asked(OFFLINE, offline), _asked(REJECTING, rejecting)]
    for query, minutes in ((OFFLINE, offline), (REJECTING, rejecting)):
        total = Counter[tuple[str, str]]()
        for (cluster, _), count in minutes.items():
            total[cluster, ""] += count
        asked.append(_asked(query.replace(BY_TEAM, BY_CLUSTER, 1), total))
    tests = {
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked}],
    }
    (tmp_path / "minutes.yml").write_text(json.dumps(tests))
    result = promtool("test", "rules", str(tmp_path / "minutes.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def _asked(query: str, minutes: Mapping[tuple[str, str], int]) -> dict[str, object]:
    samples = []
    for (cluster, team), count in minutes.items():
        of_team = f',team="{team}"' if team else ""
        samples.append({"labels": f'{{kafka_cluster="{cluster}"{of_team}}}', "value": count})
    return {"expr": query, "eval_time": "163m", "exp_samples": samples}


@pytest.mark.parametrize(
    ("query", "problems"),
    [(OFFLINE, UNUSABLE_WORDS), (REJECTING, {*UNUSABLE_WORDS, "under_min_isr"})],
    ids=["offline", "rejecting"],
)
def test_the_minutes_of_recorded_incidents_are_those_of_their_rows(query, problems, incident_prometheus, tmp_path):
    asked = query.replace("[30d:1m]", f"[{END - BEGIN + 20}s:{SCRAPE_SECONDS}s]").replace("payments-.*", "t1")
    found = {
        series.labels.get("team", ""): series.value
        for series in incident_prometheus.query(asked, END + SCRAPE_SECONDS / 2)
        if series.labels["kafka_cluster"] == "south"
    }
    counted = Counter[str]()
    rows = cluster_of("south", tmp_path)
    newest: dict[tuple[str, int], PartitionRow] = {}
    for now in range(BEGIN, END + 1, SCRAPE_SECONDS):
        newest.update(
            ((row.topic, row.partition), row) for row in rows.rows_until(now * 1000) if isinstance(row, PartitionRow)
        )
        away = [row for row in newest.values() if row.problem in problems and not row.removed]
        counted.update("payments" if row.topic == "t1" else "" for row in away)
    assert found == counted
    assert min(counted.values()) >= 10
