"""Reasons why a picture of a cluster may be incomplete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.view.types import FOLLOWING
from questions.picture import Picture
from wording.sentences import counted, joined
from wording.times import duration

OLD_AFTER_MS: Final = 30_000  # of heartbeats that come each second, as in [serve.alertmanager]
_NAMED_PATHS: Final = 3


def doubts(picture: Picture, now_ms: int | None) -> Iterator[str]:
    """Return each reason in a sentence. `now_ms` is the present, for a picture of now."""
    if now_ms is not None and picture.is_replayed:
        yield "this shows a past that `kontrast replay` published, not the present"
    elif now_ms is not None and now_ms - picture.as_of_ms > OLD_AFTER_MS:
        age = duration(now_ms - picture.as_of_ms)
        yield f"the newest data is {age} old, so this may have changed (see `kontrast status`)"
    if picture.header.phase is not FOLLOWING:
        yield "changes were lost without a complete read since, so this answer may be outdated"
    if picture.forbidden:
        hidden = sorted(picture.forbidden)
        named = joined(hidden, most=_NAMED_PATHS)
        yield f"Kontrast may not read {counted(len(hidden), 'znode')}, nor the children: {named}"
