"""Parts of a request, or the refusal of one that cannot be understood."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Final, TypeVar
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request

from wording.suggestions import did_you_mean

NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_MILLISECONDS: Final = re.compile(r"[0-9]{1,15}")

_Found = TypeVar("_Found")


def named(request: Request, part: str) -> str:
    """Return a name from the path."""
    return unquote(request.path_params[part])


def number(said: str, name: str) -> int:
    """Parse the number of a broker or partition, or refuse the request."""
    if not NUMBER.fullmatch(said):
        raise HTTPException(400, f"{name} is not a number of a broker or partition.")
    return int(said)


def found(answer: _Found | None, otherwise: str, similar: Callable[[], Sequence[str]] = tuple) -> _Found:
    """Return the answer, or refuse the request with this sentence and similar names if there is none."""
    if answer is None:
        raise HTTPException(404, otherwise.removesuffix(".") + (did_you_mean(similar()) or "."))
    return answer


def now_ms() -> int:
    """Return the present."""
    return time.time_ns() // 1_000_000


def asked_ms(request: Request) -> int | None:
    """Return the requested time in milliseconds since 1970, if any. ISO 8601 without a zone is UTC."""
    said = request.query_params.get("at", "").strip()
    if not said:
        return None
    if _MILLISECONDS.fullmatch(said):
        return int(said)
    try:
        moment = datetime.fromisoformat(said[:-1] + "+00:00" if said.endswith("Z") else said)
    except ValueError:
        raise HTTPException(400, "at is no moment. Write 2024-05-01T03:12:00Z or milliseconds since 1970.") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)
