"""Print a file of rules with your addresses, as a PrometheusRule of Kubernetes' Prometheus operator or in plain form.

    python deploy/prometheus/prometheus_rule.py self > deploy/kubernetes/kontrast-self-prometheusrule.yml
    python deploy/prometheus/prometheus_rule.py self --docs https://docs.example --grafana https://grafana.example \
        --page https://kontrast.example:9642
    python deploy/prometheus/prometheus_rule.py cluster --plain --docs ... > /etc/prometheus/kontrast-cluster.yml

The rules themselves are in `kontrast-self.yml` and `kontrast-cluster.yml`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FILES = {name: Path(__file__).parent / f"kontrast-{name}.yml" for name in ("self", "cluster")}

_HEAD = """# Made from deploy/prometheus/kontrast-{name}.yml by deploy/prometheus/prometheus_rule.py. Change that file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: kontrast-{name}
  labels:
    app.kubernetes.io/name: kontrast
spec:
"""


def with_addresses(rules: str, docs: str | None, grafana: str | None, page: str | None) -> str:
    """Return the rules with these addresses in front of the paths of runbooks, boards and the live page.

    A path without an address stays a path, for which `kontrast.tmpl` shows the address of Alertmanager instead.
    """
    if docs:
        rules = rules.replace("runbook_url: docs/", f"runbook_url: {docs.rstrip('/')}/")
    if grafana:
        rules = rules.replace("dashboard_url: d/", f"dashboard_url: {grafana.rstrip('/')}/d/")
    if page:
        rules = rules.replace("page_url: clusters", f"page_url: {page.rstrip('/')}/clusters")
    return rules


def manifest(name: str, rules: str) -> str:
    """Return the rules as a PrometheusRule."""
    groups = rules[rules.index("groups:\n") :]
    shifted = (f"  {line}" if line.strip() else line for line in groups.splitlines(keepends=True))
    return _HEAD.replace("{name}", name) + "".join(shifted)


def main() -> None:
    """Print the requested rules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", choices=FILES, help="rules to print")
    parser.add_argument("--docs", metavar="URL", help="address of the published docs/, for runbook_url")
    parser.add_argument("--grafana", metavar="URL", help="address of your Grafana, for dashboard_url")
    parser.add_argument("--page", metavar="URL", help="address of your `kontrast serve`, for page_url")
    parser.add_argument(
        "--plain", action="store_true", help="print a rules file for Prometheus instead of a PrometheusRule"
    )
    arguments = parser.parse_args()
    rules = FILES[arguments.rules].read_text(encoding="utf-8")
    rules = with_addresses(rules, arguments.docs, arguments.grafana, arguments.page)
    sys.stdout.write(rules if arguments.plain else manifest(arguments.rules, rules))


if __name__ == "__main__":
    main()
