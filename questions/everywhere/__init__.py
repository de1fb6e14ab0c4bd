"""The list of all questions, which is made of their files: nobody adds a question to it.

A module here is a plain question, and has the name of its command, with _ for each -.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import questions
from questions.question import PlainQuestion, Question


def names() -> Iterator[str]:
    """Yield the names of all plain questions as a command has them, without importing them."""
    yield from (module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def question(name: str) -> type[PlainQuestion]:
    """Import the plain question of this name."""
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").__name__
    return next(each for each in PlainQuestion.__subclasses__() if each.__module__ == module)


def every() -> list[type[Question]]:
    """Import all rooms, and return the questions that have a tool or a path, in the order of their names."""
    for module in pkgutil.walk_packages(questions.__path__, "questions."):
        importlib.import_module(module.name)
    found = [Question]
    for each in found:
        found += each.__subclasses__()
    return sorted((each for each in found if each.tool or each.path), key=lambda each: (each.path, each.tool))
