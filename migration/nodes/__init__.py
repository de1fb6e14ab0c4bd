"""Modes of Kafka nodes, and the quorum's report on itself."""
