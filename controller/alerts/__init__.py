"""Alerts: conditions, incidents, occurrences, the catalogue of kinds, and when one opens and resolves."""
