"""Addresses of streams, and the journal, a stream's embedded form."""
