"""The error that a user can mend, as one sentence."""


class ServeError(Exception):
    """A sentence for the person who started it: what, where, and what to do."""
