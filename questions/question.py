"""Base of all questions: arguments, the part of a cluster that the question needs, and its answer from a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

if TYPE_CHECKING:
    from controller.contract.row import Row
    from questions.picture import Picture
    from wording.said import Said


class NotFoundError(Exception):
    """A missing subject, or a question that the cluster makes impossible, in one sentence."""


class UnknownClusterError(Exception):
    """No cluster has this name, or its state is not known, for the reason in the message."""


def keep_nothing(_row: Row) -> bool:
    """Return False for every row, as the choice of a question that ignores the past."""
    return False


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a cluster that a question needs, its topics (None is all) and the past rows that it `keeps`.

    A source that reads outputs finds the past in `past_outputs`.
    """

    topics: frozenset[str] | None = None
    past: bool = False
    keeps: Callable[[Row], bool] = keep_nothing
    past_outputs: tuple[str, ...] = ("transitions",)


EVERYTHING_NOW: Final = Scope()


def meaning(text: str) -> msgspec.Meta:
    """Return the description of an argument, for the help text of its option and the schema of its tool."""
    return msgspec.Meta(description=text)


def schema_of(struct: Any) -> dict[str, Any]:  # noqa: ANN401 (whatever msgspec describes)
    """Return the JSON Schema of a struct, with the object itself at its root."""
    schema = msgspec.json.schema(struct)
    definitions = schema["$defs"]
    root = definitions[schema["$ref"].rpartition("/")[2]]
    return {**root, "$defs": definitions}


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a question, which are the options of its command, and the parameters of its path and its tool.

    A wrong argument raises ValueError, which msgspec turns into its ValidationError while it decodes. Each question
    names its tool and its path itself, so `questions.everywhere.every` is the only list of them.
    """

    answer: ClassVar[Any]  # type of the answer, for its JSON
    tool: ClassVar[str] = ""  # name of its tool for assistants, if it has one
    path: ClassVar[str] = ""  # its path of the page's interface, if it has one
    has_past: ClassVar[bool] = False  # the path's parameter `at` is allowed
    refuses: ClassVar[tuple[int, ...]] = (404,)  # HTTP statuses of its refusals, beside those that any path has
    operation: ClassVar[str] = ""  # by default the last part of the path
    needs_past: ClassVar[bool] = False
    asks_clients: ClassVar[bool] = False  # the picture should have the consumer groups and teams

    @classmethod
    def summary(cls) -> str:
        """Return the first sentence of the docstring."""
        return " ".join((cls.__doc__ or "").partition("\n\n")[0].split())

    def scope(self) -> Scope:
        """Return the part of the cluster that the picture must have."""
        return EVERYTHING_NOW

    def ask(self, picture: Picture) -> Any:  # noqa: ANN401 (each question has an answer of its own)
        """Return the answer. Raise NotFoundError for a subject that the cluster does not have."""
        raise NotImplementedError

    def on_page(self, cluster: Any) -> Any:  # noqa: ANN401 (a KnownCluster, which imports this file)
        """Return the answer for a path of the page. A question that only the page asks takes the rows that it needs.

        Raise NotFoundError, and UnknownClusterError.
        """
        return self.ask(cluster.whole())

    def similar(self, _picture: Picture) -> list[str]:
        """Return existing names like the missing one, the nearest first. The picture has the whole cluster."""
        return []


class PlainQuestion(Question, frozen=True):
    """A question in a file of `questions/everywhere/`, which is a command, a tool and a path of the file's name.

    The docstring is the help text. The fields have the types that options have: numbers, texts, truth values, and
    several of them, each with a default.
    """

    examples: ClassVar[tuple[str, ...]] = ()  # arguments of the command
    good: ClassVar[str] = "the answer is good"  # meaning of exit code 0
    bad: ClassVar[str] = "it is not"  # meaning of exit code 1

    def __init_subclass__(cls) -> None:
        """Name the tool and the path."""
        super().__init_subclass__()
        cls.tool = cls.__module__.rpartition(".")[2]
        cls.path = f"/clusters/{{cluster}}/{cls.tool.replace('_', '-')}"


class PlainAnswer(msgspec.Struct, frozen=True):
    """Answer of a question in `questions/everywhere/`."""

    @property
    def is_good(self) -> bool:
        """Return whether the exit code is 0, and 1 otherwise."""
        return True

    @property
    def gap(self) -> str:
        """Return what the source does not have for this answer, in a sentence. It is empty if nothing is missing."""
        return ""

    def said(self) -> Said:
        """Yield the text of the answer."""
        raise NotImplementedError
