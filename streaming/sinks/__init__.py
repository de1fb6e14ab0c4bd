"""Sinks for the rows of a batch, a journal or a topic per output."""
