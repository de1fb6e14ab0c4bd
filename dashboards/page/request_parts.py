"""Parts of a request, or the refusal of one that cannot be understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeVar
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request

from wording.suggestions import did_you_mean

NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,8}")

_Found = TypeVar("_Found")
_Choice = TypeVar("_Choice", bound=Enum)


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


def choice(request: Request, name: str, kind: type[_Choice]) -> _Choice | None:
    """Return the value that this parameter names, None if it names none, or refuse the request."""
    said = request.query_params.get(name, "")
    known = {str(each.value): each for each in kind}
    if said and said not in known:
        raise HTTPException(400, f"{name} is one of {', '.join(known)}.")
    return known.get(said)
