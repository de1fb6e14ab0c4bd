"""Kafka's own definitions of settings, read from the jars of each release."""
