"""Writer of `kontrast-cluster.yml`, with a Prometheus rule for each kind of alert that Kontrast opens.

    python deploy/prometheus/cluster_rules.py > deploy/prometheus/kontrast-cluster.yml

A rule repeats the texts of its kind in `controller.contract.alert_kinds`. It does not judge again when an alert is
open, because the core has done that.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from controller.contract.alert_kinds.kind import NAME_PREFIX  # noqa: E402
from controller.contract.alert_kinds.kinds import ALERT_KINDS, AlertKind  # noqa: E402 (needs the path above)
from controller.contract.alert_row import Severity
from controller.contract.remedies.remedy import Advice  # noqa: E402
from dashboards.alerting.active_alerts import BROKER_VIEW, FINALIZED_TOO_EARLY  # noqa: E402
from dashboards.catalogue.alert_metrics import ALERT_SINCE  # noqa: E402

_WIDTH = 120

# The core has no such kind, because `kontrast serve --probe-brokers` finds it.
_BROKER_VIEW = AlertKind(
    name=BROKER_VIEW,
    severity=Severity.WARN,
    meaning="A live broker gives clients old metadata of partitions, for longer than updates travel.",
    advice=Advice(
        "Check in the broker's log whether the controller's requests reach it. If they do not, restart the broker."
    ),
    expected="The controller sends UpdateMetadata to every live broker after every change.",
)

# The core has no such kind either, because `kontrast serve` finds it in the answers of KRaft controllers.
_FINALIZED_TOO_EARLY = AlertKind(
    name=FINALIZED_TOO_EARLY,
    severity=Severity.PAGE,
    meaning="A KRaft controller runs without the migration flag while brokers are still registered in ZooKeeper "
    "(KAFKA-20960). Kafka does not refuse to finalize then, and those brokers get no more metadata.",
    advice=Advice(
        "Restart the controller with the flag before you restart another one. Then restart the brokers in KRaft "
        "mode, and finalize when /brokers/ids is empty."
    ),
)

_HEAD = """# Made from controller/contract/alert_kinds/ by deploy/prometheus/cluster_rules.py (`make boards`).
# Alerts on watched clusters through Prometheus, for a `kontrast serve` without [serve.alertmanager]. Load
# kontrast-self.yml too. Prometheus 2.42 or newer is needed.
# Kontrast decides about alerts and their severity. These rules pass them on, with the names, labels and runbooks of
# direct delivery. A maintenance window or a controlled shutdown silences both ways.
# runbook_url is a path in this repository, dashboard_url a path in Grafana, and page_url a path of the live page of
# `kontrast serve`. `make rules PAGE_URL=… DOCS_URL=… GRAFANA_URL=…` puts your addresses in front, in build/rules.
# deploy/kubernetes/kontrast-cluster-prometheusrule.yml is made from this file.
groups:
  - name: kontrast-cluster
    rules:
      # These rules are silent while an exporter delivers to Alertmanager directly, and for five minutes after. So
      # no alert arrives twice.
      - record: kafka_cluster:kontrast_alerts_delivered_directly:max
        expr: >-
          max by (kafka_cluster) (
            kontrast_ready >= bool 0 and on (job, instance) (
              max_over_time(kontrast_alertmanager_up[5m]) > 0
              or kontrast_alert_deliveries_total unless on (job, instance) max_over_time(kontrast_alertmanager_up[5m])
            )
          )
      # The active alerts of any exporter, with the severities for routing. While no exporter is certain of the
      # cluster, earlier alerts stay active for up to an hour. A restart of `kontrast serve` resolves no alert.
      - record: kafka_cluster:kontrast_alert_since_timestamp_seconds:min
        expr: >-
          (
            label_replace(
              label_replace(
                min by (LABELS) (
                  kontrast_alert_since_timestamp_seconds
                ),
                "severity", "critical", "severity", "page"
              ),
              "severity", "warning", "severity", "warn"
            )
            or (
              kafka_cluster:kontrast_alert_since_timestamp_seconds:min
              unless on (kafka_cluster) (kontrast_ready == 1)
              and on (kafka_cluster) max_over_time(kontrast_ready[1h])
            )
          ) unless on (kafka_cluster) kafka_cluster:kontrast_alerts_delivered_directly:max

      - alert: KontrastAlertsUnnamed
        expr: >-
          max by (kafka_cluster) (kontrast_alert_detail_dropped) > 0
          unless on (kafka_cluster) kafka_cluster:kontrast_alerts_delivered_directly:max
        for: 0s
        labels:
          severity: critical
          component: replica
          group: replica
        annotations:
          summary: "{{ $labels.kafka_cluster }}: {{ $value }} alerts are not named, and these rules omit them"
          description: >-
            {{ $labels.kafka_cluster }} has more alerts than `kontrast serve` names (alert_detail_limit). These rules
            omit {{ $value }} alerts. The output `alerts` has all.
          runbook_url: docs/runbooks/KontrastAlertsUnnamed.md
          dashboard_url: d/kontrast-cluster?var-kafka_cluster={{ urlquery $labels.kafka_cluster }}
          page_url: clusters/{{ reReplaceAll "[+]" "%20" (urlquery $labels.kafka_cluster) }}
"""

# The same page that `dashboards.alerting.message` chooses. Prometheus escapes only for a query, where a blank becomes a
# plus, so the template replaces it.
_PAGE = """
          page_url: clusters/{{ reReplaceAll "[+]" "%20" (urlquery $labels.kafka_cluster)
            }}{{ if $labels.topic }}/topics/{{ reReplaceAll "[+]" "%20" (urlquery $labels.topic)
            }}{{ with $labels.partition }}/{{ . }}{{ end }}{{ else if eq $labels.group "controller"
            }}/controller{{ else if $labels.broker }}/brokers/{{ $labels.broker }}{{ end }}
""".lstrip("\n")

_ADDITION = "{{ with $labels.other_broker }}, broker {{ . }} too{{ end }}{{ with $labels.news }}, news {{ . }}{{ end }}"

_RULE = """
      - alert: {prefix}{name}
        expr: >-
          min without (alert) (
            kafka_cluster:kontrast_alert_since_timestamp_seconds:min{{alert="{name}"}}
          )
        for: 0s
        labels:
          delivered_by: prometheus
        annotations:
          summary: "{{{{ $labels.kafka_cluster }}}}: {{{{ $labels.subject }}}}: {name}{addition}"
{texts}
          since: "{{{{ $value | humanizeTimestamp }}}}"
          runbook_url: docs/runbooks/{prefix}{name}.md
          dashboard_url: d/kontrast-cluster?var-kafka_cluster={{{{ urlquery $labels.kafka_cluster }}}}
{page}"""


def cluster_rules() -> str:
    """Return the content of `kontrast-cluster.yml`."""
    head = _HEAD.replace("LABELS", ", ".join(ALERT_SINCE.labels))
    kinds = (*ALERT_KINDS.values(), _BROKER_VIEW, _FINALIZED_TOO_EARLY)
    return head + "".join(map(_rule, kinds))


def _rule(kind: AlertKind) -> str:
    return _RULE.format(
        prefix=NAME_PREFIX,
        name=kind.name,
        addition=_ADDITION,
        texts="\n".join(_texts(kind)),
        page=_PAGE,
    )


def _texts(kind: AlertKind) -> Iterator[str]:
    for name, text in (("description", kind.meaning), ("expected", kind.expected), ("action", kind.action)):
        if text is not None:
            yield f"          {name}: >-\n" + textwrap.fill(
                text,
                _WIDTH,
                initial_indent=" " * 12,
                subsequent_indent=" " * 12,
                break_long_words=False,
                break_on_hyphens=False,
            )


if __name__ == "__main__":
    sys.stdout.write(cluster_rules())
