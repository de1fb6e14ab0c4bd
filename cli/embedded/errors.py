"""The error of an embedded server."""


class EmbeddedError(Exception):
    """An embedded server that could not be started or stopped; the sentence says which, why and what to do."""
