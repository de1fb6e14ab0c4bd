"""Sinks that append records to a journal or a Kafka topic."""
