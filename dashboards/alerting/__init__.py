"""Delivery of alerts straight to Alertmanager, so that a page does not wait for a scrape."""
