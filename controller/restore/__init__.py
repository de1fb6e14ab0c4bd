"""Contexts that no records led to: an empty one, a stored one, one of rows, of one read, or altered for a question."""
