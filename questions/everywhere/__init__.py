"""Questions that need no line elsewhere: each module is a command, a path of the page's interface, and a tool.

A module has the name of its command, with _ for each -, and one `Question`, named `QUESTION`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from questions.question import Question


def names() -> Iterator[str]:
    """Yield the names of all plain questions as a command has them, without importing them."""
    yield from (module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def question(name: str) -> type[Question]:
    """Import the question of this name."""
    found: type[Question] = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").QUESTION
    return found
