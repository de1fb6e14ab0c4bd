"""A failed Spark query as one sentence, by the cause inside Spark's wrappers, and the wait for room on a disk."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException

from streaming.errors import StreamError
from transport.disk import NO_ROOM
from transport.printable import Complaints
from transport.segments import JournalError, JournalFullError

_LOG = logging.getLogger("kontrast.streaming")

_FIRST_PAUSE_SECONDS = 0.5  # while a disk is full
_LONGEST_PAUSE_SECONDS = 5.0
_SAY_AGAIN_SECONDS = 600.0

_PYTHON_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"^(?:\w+\.)*(?P<kind>\w+(?:Error|Exception)): (?P<sentence>.+)$", re.MULTILINE)
_ERROR_CLASS = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_NO_ROOM_SENTENCES = tuple(os.strerror(number) for number in NO_ROOM)
# The words of Java's Kerberos, and of other logins that get their secret from elsewhere.
_NO_LOGIN = re.compile(
    r"(?:^javax\.security\.auth\.login\.LoginException: |SaslAuthenticationException: |\[Caused by )"
    r"(?P<reason>.+?)(?:\]\)|$)"
)
_NO_KEY = "asked for a password"
_OWN_KINDS = {"StreamError", "JournalError", "NewerJournalError", "ForeignOffsetError"}


def stream_error(failure: BaseException) -> StreamError:
    """Return the error to show for a failure. The failure itself goes to the log."""
    if isinstance(failure, StreamError | JournalError):
        return StreamError(str(failure))
    said = [message for message in messages(failure) if message.strip()]
    for sentence in filter(None, map(no_login, said)):
        return StreamError(sentence)
    for message in said:
        _, traceback, raised = message.partition(_PYTHON_TRACEBACK)
        for match in list(_RAISED.finditer(raised))[-1:]:
            if match["kind"] in _OWN_KINDS:
                return StreamError(match["sentence"])
            return StreamError(f"the stream failed: {match['kind']}: {match['sentence']}")
    return StreamError(f"the stream failed: {first_line((said or [type(failure).__name__])[-1])}")


def no_login(message: str) -> str | None:
    """Return the sentence for Java's message about a failed login to Kafka, or None for another message."""
    match = _NO_LOGIN.search(message)
    if match is None:
        return None
    reason = "the keytab has no key of the principal" if _NO_KEY in match["reason"] else match["reason"]
    return f"Java cannot log in to Kafka ({reason}). Check [kafka], and for Kerberos the keytab, the KDC and krb5.conf"


def is_full_disk(failure: BaseException) -> bool:
    """Return whether a full disk caused the failure, so that the job may wait for room."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, JournalFullError) or (isinstance(cause, OSError) and cause.errno in NO_ROOM):
            return True
        cause = cause.__cause__
    with suppress(Py4JError, OSError):  # Java is gone, and with it the reason
        return any(sentence in message for message in messages(failure) for sentence in _NO_ROOM_SENTENCES)
    return False


def is_of_java(failure: BaseException) -> bool:
    """Return whether the failure comes from Spark or Java, and not from Kontrast's own code."""
    return isinstance(failure, Py4JJavaError | PySparkException) and not any(
        _PYTHON_TRACEBACK in message for message in messages(failure)
    )


def messages(failure: BaseException) -> Iterator[str]:
    """Yield the sentences of all exceptions, from the outermost to the cause of all."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, Py4JJavaError):
            yield from _java_messages(cause)
            return
        # str() of an exception that pyspark caught would append the Java stack trace.
        yield str(getattr(cause, "_desc", None) or cause)
        cause = getattr(cause, "_cause", None) or cause.__cause__


def _java_messages(failure: Py4JJavaError) -> Iterator[str]:
    throwable = failure.java_exception
    while throwable is not None:
        yield str(throwable.getMessage() or throwable.getClass().getSimpleName())
        throwable = throwable.getCause()


def first_line(message: str) -> str:
    """Return the first line of Spark's message, without the name of its error condition."""
    return _ERROR_CLASS.sub("", message.strip().splitlines()[0]).rstrip(".;")


class WaitForRoom:
    """Waits while a disk is full, longer each time, and says so at the first time and then each ten minutes."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._said = Complaints(_SAY_AGAIN_SECONDS)

    def __call__(self, which: str) -> None:
        """Wait once. The sentence names the disk."""
        if count := self._said.due():
            since = f", after {count:,} attempts since the last such line" if count > 1 else ""
            _LOG.warning("%s. The job waits for room%s", which, since)
        self._stop.wait(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
