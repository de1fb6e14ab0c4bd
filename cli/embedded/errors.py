"""What goes wrong when an embedded server is started: one sentence each, for the person who started it."""


class EmbeddedError(Exception):
    """An embedded server that could not be started or stopped; the sentence says which, why and what to do."""
