"""Writer of `kontrast.tmpl`, the template of messages, which lists the alerts of a group from the worst to the least.

    python deploy/alertmanager/message_template.py > deploy/alertmanager/kontrast.tmpl

Alertmanager orders the alerts of a group by their labels, so by name. The template therefore walks a list of names that
is ranked by severity, then by the order of the catalogue in `controller/contract/alert_kinds/kinds.py`.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))

from controller.contract.alert_kinds.kind import NAME_PREFIX  # noqa: E402
from controller.contract.alert_kinds.kinds import ALERT_KINDS  # noqa: E402 (needs the path above)
from controller.contract.alert_row import Severity  # noqa: E402
from dashboards.alerting.active_alerts import BROKER_VIEW, FINALIZED_TOO_EARLY  # noqa: E402

_WIDTH = 116

_SELF_RULES = Path(__file__).parents[1] / "prometheus" / "kontrast-self.yml"

# Kinds of alerts that the exporter opens, and an alert that only kontrast-cluster.yml has.
_PAGES_OF_EXPORTER = (FINALIZED_TOO_EARLY, "AlertsUnnamed")
_REST_OF_EXPORTER = (BROKER_VIEW,)

_TEMPLATE = """{{/* Made by deploy/alertmanager/message_template.py (`make boards`). Words for messages. The alerts of a
group have the same labels kafka_cluster and group, and the worst has the title. A further broker of an incident is an
alert of its own with the label other_broker, further damage one with the label news. The incident's alert has the
words. Each affected team has an alert of its own with the label team, and the words come once. A message has one
address of each kind, because the alerts of a group share their subject. */}}

{{ define "kontrast.title" -}}
{{ if eq .Status "firing" }}
{{- $alerts := .Alerts.Firing }}{{ $title := "" }}{{ $more := "" }}
{{- range $name := stringSlice
RANKED }}
{{- range $alerts }}{{ if and (eq .Labels.alertname $name) (not (or .Labels.other_broker .Labels.news)) }}
{{- if $title }}{{ $more = print $more "+" }}{{ else }}{{ $title = .Annotations.summary }}{{ end }}
{{- end }}{{ end }}{{ end }}
{{- or $title (index $alerts 0).Annotations.summary }}{{ with len $more }} (+{{ . }}){{ end }}
{{- else }}{{ template "kontrast.end" index .Alerts 0 }}{{ end }}
{{- end }}

{{ define "kontrast.text" -}}
{{ $alerts := .Alerts.Firing }}{{ $runbook := "" }}{{ $said := "" }}
{{- range $name := stringSlice
RANKED }}
{{- range $alerts }}{{ if and (eq .Labels.alertname $name) (not (or .Labels.other_broker .Labels.news)) }}
{{- if eq .Annotations.description $said }}{{ with .Annotations.team }}Team: {{ . }}
{{ end }}{{ else }}{{ template "kontrast.alert" . }}{{ end }}
{{- $said = .Annotations.description }}{{ if not $runbook }}{{ $runbook = .Annotations.runbook_url }}{{ end }}
{{- end }}{{ end }}{{ end }}
{{- if $alerts }}Page: {{ template "kontrast.link" . }}
{{ with $runbook }}Runbook: {{ . }}
{{ end }}{{ end }}
{{- range .Alerts.Resolved }}{{ if not (or .Labels.other_broker .Labels.news) }}{{ template "kontrast.end" . }}
{{ end }}{{ end }}
{{- end }}

{{/* Severity, cluster and start, then the event with its effect, and the next step. */}}
{{ define "kontrast.alert" -}}
{{ .Labels.severity }}{{ with .Labels.kafka_cluster }} in cluster {{ . }}{{ end }}
{{- with .Annotations.since }} since {{ . }}{{ end }}
{{ .Annotations.description }}
{{ with .Annotations.team }}Team: {{ . }}
{{ end }}{{ with .Annotations.examples }}Partitions: {{ . }}
{{ end }}{{ with .Annotations.action }}Next step: {{ . }}
{{ end }}{{ with .Annotations.expected }}{{ . }}
{{ end }}
{{ end }}

{{/* An alert that moves to another receiver with its severity ends here in the state open. */}}
{{ define "kontrast.end" -}}
{{ if ne .Annotations.state "open" }}Resolved: {{ end }}{{ .Annotations.summary }}
{{- end }}

{{/* The live page if its address is absolute, else Alertmanager's. A relative address is dead text in a message. */}}
{{ define "kontrast.link" -}}
{{ $page := (index .Alerts 0).Annotations.page_url }}
{{- if $page }}{{ if match "^https?://" $page }}{{ $page }}{{ else }}{{ .ExternalURL }}{{ end }}
{{- else }}{{ .ExternalURL }}{{ end }}
{{- end }}
"""


def ranked_names() -> tuple[str, ...]:
    """Return the names of all alerts that Kontrast and its Prometheus rules send, the worst first."""
    order = list(Severity)
    kinds = sorted(ALERT_KINDS.values(), key=lambda kind: order.index(kind.severity))
    pages = [f"{NAME_PREFIX}{kind.name}" for kind in kinds if kind.severity is Severity.PAGE]
    rest = [f"{NAME_PREFIX}{kind.name}" for kind in kinds if kind.severity is not Severity.PAGE]
    groups = yaml.safe_load(_SELF_RULES.read_text(encoding="utf-8"))["groups"]
    of_self = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    self_pages = [rule["alert"] for rule in of_self if rule["labels"]["severity"] == "critical"]
    self_rest = [rule["alert"] for rule in of_self if rule["labels"]["severity"] != "critical"]
    pages += [*self_pages, *(f"{NAME_PREFIX}{name}" for name in _PAGES_OF_EXPORTER)]
    return *pages, *(f"{NAME_PREFIX}{name}" for name in _REST_OF_EXPORTER), *rest, *self_rest


def message_template() -> str:
    """Return the content of `kontrast.tmpl`."""
    quoted = " ".join(f'"{name}"' for name in ranked_names())
    return _TEMPLATE.replace("RANKED", textwrap.fill(quoted, _WIDTH, initial_indent="  ", subsequent_indent="  "))


if __name__ == "__main__":
    sys.stdout.write(message_template())
