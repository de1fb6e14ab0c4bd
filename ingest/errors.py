"""Errors of the ingest that its user can fix, one sentence each."""


class IngestError(Exception):
    """A sentence for the person who started the ingest, with the object and the next step."""


class UnreachableError(IngestError):
    """ZooKeeper did not answer within connect_timeout_seconds. A later attempt may succeed."""


class StoppedError(Exception):
    """The work was asked to stop before it was done."""
