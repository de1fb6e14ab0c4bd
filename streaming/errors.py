"""Errors of the Spark job that its user can fix, one sentence each."""


class StreamError(Exception):
    """A sentence for the person who started the job, with the object and the next step."""


class StalledError(StreamError):
    """The job hung and was ended. The next start continues from its checkpoint."""
