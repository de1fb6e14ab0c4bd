"""The operator's view: the metric catalogue, the exporter, alert rules and Grafana boards."""
