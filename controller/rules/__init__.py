"""Kafka's rules as tables and pure functions: legal states, elections, assignments, placement, settings, releases."""
