"""What an operator looks at: the metric catalogue, the exporter, alert rules and Grafana boards."""
