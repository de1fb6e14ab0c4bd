"""Drawings of the boards without Grafana, from the answers of a Prometheus, as SVG."""
