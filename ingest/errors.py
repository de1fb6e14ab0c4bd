"""The errors of the ingest that its user can mend: one sentence each."""


class IngestError(Exception):
    """A sentence for the person who started it: what, where, and what to do."""
