"""State of one cluster, and its private copy that a transaction changes."""
