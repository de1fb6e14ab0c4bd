"""Kafka's own tables and pure choices: legal states, elections, assignments, placement, what each release does."""
