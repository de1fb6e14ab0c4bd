"""Reasons why a picture of a cluster may be incomplete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.view.types import FOLLOWING
from questions.picture import Picture
from wording.sentences import counted

OLD_AFTER_MS: Final = 30_000  # of heartbeats that come each second, as in [serve.alertmanager]
_NAMED_PATHS: Final = 3


def doubts(picture: Picture, now_ms: int | None) -> Iterator[str]:
    """Return each reason in a sentence. `now_ms` is the present, for a picture of now."""
    if now_ms is not None and picture.is_replayed:
        yield "this is a past that `kontrast replay` published, not the present"
    elif now_ms is not None and now_ms - picture.as_of_ms > OLD_AFTER_MS:
        age_seconds = (now_ms - picture.as_of_ms) // 1_000
        yield f"the newest that is known is {age_seconds} s old, so this may have changed; see `kontrast status`"
    if picture.header.phase is not FOLLOWING:
        yield "no complete read has come in since changes were lost: what is said here may be over"
    if picture.forbidden:
        hidden = sorted(picture.forbidden)
        named = ", ".join(hidden[:_NAMED_PATHS]) + (", …" if len(hidden) > _NAMED_PATHS else "")
        yield f"{counted(len(hidden), 'znode')} may not be read, nor what is below: {named}"
