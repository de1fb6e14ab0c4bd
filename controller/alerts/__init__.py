"""Alerts, with conditions, incidents, occurrences, the catalogue of kinds, and the rules of opening and resolving."""
