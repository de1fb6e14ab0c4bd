"""The errors of the Spark job that its user can mend: one sentence each."""


class StreamError(Exception):
    """A sentence for the person who started it: what, where, and what to do."""
