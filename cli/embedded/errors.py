"""The error of an embedded server."""


class EmbeddedError(Exception):
    """An embedded server that failed to start or stop, with the reason and the next step."""
