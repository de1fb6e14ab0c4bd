"""The error that a user can mend, as one sentence."""


class ServeError(Exception):
    """Sentence for the person who started Kontrast, with the error, its place and the next step."""
