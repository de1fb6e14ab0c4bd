"""Alerts told straight to Alertmanager, so that a page does not wait for a scrape.

Here belong which alerts stand now, how one is told, and telling it until it is known. What is an alert is decided by
`controller/`; Prometheus's own rules are in `deploy/prometheus/`.
"""
