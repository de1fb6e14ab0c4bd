"""What goes wrong in the Spark job for a reason that its user can mend: one sentence each."""


class StreamError(Exception):
    """A sentence for the person who started it: what, where, and what to do."""
