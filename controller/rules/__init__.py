"""Kafka's rules as tables and pure functions.

They cover legal states, elections, assignments, placement, settings and releases.
"""
