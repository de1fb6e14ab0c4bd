"""Secrets from the file or environment variable that a setting names, and texts without them."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

HIDDEN: Final = "[hidden]"
_SHORTEST: Final = 4  # characters. A shorter text is part of ordinary words, and hiding it there would reveal it
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None


def read_secret(file: str | Path | None, variable: str | None) -> str | None:
    """Return the secret from the file, without the newline at its end, or from the variable, if one is given.

    From now on `without_secrets` hides it. Raise OSError or UnicodeDecodeError for the file, and KeyError for the
    variable.
    """
    if file is not None:
        return hide(Path(file).read_text(encoding="utf-8").rstrip("\r\n"))
    return None if variable is None else hide(os.environ[variable])


def hide(secret: str) -> str:
    """Return the secret, which `without_secrets` hides from now on. It hides each line of a longer secret by itself."""
    global _pattern
    for line in secret.splitlines():
        if len(line) >= _SHORTEST and line not in _known:
            _known.add(line)
            forms = {form for known in _known for form in _forms(known)}
            _pattern = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
    return secret


def without_secrets(text: str) -> str:
    """Return the text with [hidden] in place of each secret that this process has read, in any usual notation."""
    return text if _pattern is None else _pattern.sub(HIDDEN, text)


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret as it is, quoted by Python, JSON and URLs, and in Base64 behind any other bytes."""
    content = secret.encode()
    yield from (secret, repr(secret)[1:-1], repr(content)[2:-1], json.dumps(secret)[1:-1])
    yield from (quote(secret), quote(secret, safe=""))
    for before in range(3):
        # Six bits make a character. The first and the last character may have bits of the bytes around the secret.
        begin, end = -(-8 * before // 6), 8 * (before + len(content)) // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + content)[begin:end].decode()


def password_problem(file: str | Path | None, variable: str | None, prefix: str) -> str | None:
    """Return the reason why a login has no password, or None. `prefix` precedes the names of other settings."""
    if (file is None) == (variable is None):
        return (
            f"username is given and needs its password, in {prefix}password_file or in {prefix}password_variable, "
            "not in both"
        )
    if variable is not None and not os.environ.get(variable):
        return f"password_variable names {variable}, which the environment lacks or has empty"
    return None


def settings_problem(
    settings: object, together: Iterable[tuple[str, str]], files: Iterable[str], prefix: str = ""
) -> str | None:
    """Return the setting that lacks another one, or the file that cannot be read, in a sentence, or None."""
    for name, other in together:
        if getattr(settings, name) is not None and getattr(settings, other) in (None, False):
            return f"{name} is given and {prefix}{other} is not. Each needs the other"
    for name in files:
        file = getattr(settings, name)
        if file is not None and not os.access(file, os.R_OK):
            return f"{name} {file} cannot be read. Check the path and who may read it"
    return None
