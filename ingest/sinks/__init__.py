"""Append records to a journal or a Kafka topic."""
