"""State of one cluster, and the private copy of it that a transaction changes."""
