"""Drawings of the boards without a Grafana: their panels' queries, answered by a Prometheus, as SVG."""
