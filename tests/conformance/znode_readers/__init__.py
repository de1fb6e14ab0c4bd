"""Comparison of our decoder with Kafka's own readers of znodes."""
