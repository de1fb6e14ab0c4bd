"""Check of the project's prose: marks of hard sentences per 1,000 words, the length of sentences, and their rhythm.

`make prose` runs it and prints the worst sentences of each part above its limit. The marks are symptoms. Rewrite the
sentence from its subject, because a replaced word helps no reader.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = tuple(
    sorted(init.parent.name for init in ROOT.glob("*/__init__.py") if init.parent.name not in {"lab", "tests"})
)
# Their text comes from strings in the code, which are a part of their own.
GENERATED = ("alerts.md", "metrics.md", "states.md", "migration-checks.md")

MARKS: Mapping[str, re.Pattern[str]] = {
    "what": re.compile(r"\bwhat\b", re.IGNORECASE),
    "of it, of them": re.compile(r"\bof (?:it|them)\b", re.IGNORECASE),
    "says, tells": re.compile(r"\b(?:says?|tells?|told)\b", re.IGNORECASE),
    "nobody, none, nothing": re.compile(r"\b(?:nobody|none|nothing)\b", re.IGNORECASE),
    "joins by : or ;": re.compile(r"[a-z)]; |[a-z)]: [a-z]", re.IGNORECASE),
}
_CODE = ("docstrings", "comments", "strings")
_WORD = re.compile(r"[A-Za-z']+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*(?=[-*|\d])")
_WORDS_OF_A_STRING = 5  # shorter strings are names and formats


class Limits(NamedTuple):
    """The highest permitted figures of a part: each mark per 1,000 words, and the words of 90 % of the sentences."""

    marks: tuple[float, float, float, float, float]
    sentence_words: int | None = None


# Measured in well-written projects.
LIMITS: Mapping[str, Limits] = {
    "docs": Limits((2.0, 0.4, 0.6, 2.0, 6.0), 27),
    "runbooks": Limits((2.0, 0.4, 0.6, 2.0, 6.0), 25),
    "docstrings": Limits((1.5, 0.3, 0.5, 4.0, 15.0)),
    "comments": Limits((1.5, 0.4, 0.5, 4.0, 15.0)),
    "strings": Limits((1.5, 0.3, 0.5, 4.0, 20.0)),
}


class Rhythm(NamedTuple):
    """Words of the sentences on the pages that explain: their mean, their deviation, and the share of short ones."""

    mean_words: float
    deviation_words: float
    short_percent: float

    def outside(self) -> list[str]:
        """Return one phrase for each figure outside its limit, because short sentences alone leave out the reasons."""
        return [
            phrase
            for phrase, is_outside in (
                (f"mean {self.mean_words:.1f} words, at least {_CALM.mean_words}", self.mean_words < _CALM.mean_words),
                (
                    f"deviation {self.deviation_words:.1f} words, at least {_CALM.deviation_words}",
                    self.deviation_words < _CALM.deviation_words,
                ),
                (
                    f"{self.short_percent:.0f} % have up to {_SHORT_WORDS} words, at most {_CALM.short_percent} %",
                    self.short_percent > _CALM.short_percent,
                ),
            )
            if is_outside
        ]


# Five well-written projects have a mean of 12.7 to 16.6, a deviation of 6.8 to 11.1, and 13 to 22 % short sentences.
_CALM = Rhythm(12.5, 5.5, 24.0)
_SHORT_WORDS = 7
_EXPLAINING: tuple[str, ...] = (
    *("README.md", "CONTRIBUTING.md", "docs/index.md", "docs/tutorial.md"),
    *("docs/how-to/*.md", "docs/explanation/*.md"),
)


class Figures(NamedTuple):
    """Measurements of a part, in the order of `Limits`."""

    words: int
    marks: tuple[float, ...]
    sentence_words: int

    def above(self, limits: Limits) -> list[str]:
        """Return one phrase for each figure above its limit."""
        found = [
            f"{name}: {figure:.1f} per 1,000 words, limit {limit:g}"
            for name, figure, limit in zip(MARKS, self.marks, limits.marks, strict=True)
            if figure > limit
        ]
        if limits.sentence_words is not None and self.sentence_words > limits.sentence_words:
            found.append(f"90 % of sentences: up to {self.sentence_words} words, limit {limits.sentence_words}")
        return found


def of_markdown(text: str) -> str:
    """Return the prose of a page, without code, link targets and tags."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"<[^>]+>|\]\([^)]*\)", "", text)
    return re.sub(r"(?m)^ {4,}.*$", "", text)


def of_code(sources: Iterable[str]) -> dict[str, str]:
    """Return docstrings, comments, and strings of several words, as one text each."""
    docstrings: list[str] = []
    comments: list[str] = []
    strings: list[str] = []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for source in sources:
        nodes = list(ast.walk(ast.parse(source)))
        found = [ast.get_docstring(node, clean=False) for node in nodes if isinstance(node, documented)]
        own = [docstring for docstring in found if docstring]
        docstrings += own
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        strings += [text for text in texts if text.count(" ") >= _WORDS_OF_A_STRING and text not in own]
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments += [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
    return {name: "\n\n".join(texts) for name, texts in zip(_CODE, (docstrings, comments, strings), strict=True)}


def parts(root: Path = ROOT, folders: Sequence[str] = FOLDERS) -> dict[str, str]:
    """Return the text of each part of the project."""
    runbooks = sorted((root / "docs" / "runbooks").glob("*.md"))
    pages = {root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")} - set(runbooks)
    written = [page for page in sorted(pages) if page.name not in GENERATED]
    files = [file for folder in folders for file in sorted((root / folder).rglob("*.py"))]
    return {
        "docs": "\n\n".join(of_markdown(page.read_text(encoding="utf-8")) for page in written),
        "runbooks": "\n\n".join(of_markdown(page.read_text(encoding="utf-8")) for page in runbooks),
        **of_code(file.read_text(encoding="utf-8") for file in files),
    }


def sentences(text: str) -> list[str]:
    """Return the sentences, and the rows of tables, of a text."""
    return [" ".join(sentence.split()) for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def _lengths(text: str) -> list[int]:
    """Return the words of each sentence of more than three, because shorter ones are headings and cells."""
    return [length for one in sentences(text) if (length := len(re.findall(r"[\w']+", one))) > 3]


def figures(text: str) -> Figures:
    """Measure a text."""
    words = len(_WORD.findall(text)) or 1
    marks = tuple(1_000 * len(pattern.findall(text)) / words for pattern in MARKS.values())
    lengths = sorted(_lengths(text))
    return Figures(words, marks, lengths[int(len(lengths) * 0.9)] if lengths else 0)


def rhythm(root: Path = ROOT) -> Rhythm:
    """Measure the pages that explain, without tables and headings."""
    lengths: list[int] = []
    for page in (page for pattern in _EXPLAINING for page in root.glob(pattern)):
        text = re.sub(r"(?m)^[|#].*$", "", of_markdown(page.read_text(encoding="utf-8")))
        lengths += _lengths(text)
    short = sum(length <= _SHORT_WORDS for length in lengths)
    return Rhythm(fmean(lengths), pstdev(lengths), 100 * short / len(lengths))


def worst(text: str, number: int) -> list[str]:
    """Return the sentences with the most marks, and among equals the longest."""

    def badness(sentence: str) -> float:
        return sum(len(pattern.findall(sentence)) for pattern in MARKS.values()) + len(sentence.split()) / 25

    return sorted(sentences(text), key=badness, reverse=True)[:number]


def main() -> int:
    """Print the figures of each part, and the worst sentences of a part above its limit. Return 1 if there is one."""
    parser = argparse.ArgumentParser(description="Check the prose of docs, runbooks, docstrings, comments and strings.")
    parser.add_argument("--worst", type=int, default=10, help="number of sentences to print for a part above its limit")
    number = parser.parse_args().worst
    failed = False
    for name, text in parts().items():
        measured = figures(text)
        found = measured.above(LIMITS[name])
        failed = failed or bool(found)
        sys.stdout.write(f"prose: {name}, {measured.words:,} words: {'; '.join(found) or 'good'}\n")
        for sentence in worst(text, number) if found else ():
            sys.stdout.write(f"    {sentence[:300]}\n")
    found = rhythm().outside()
    sys.stdout.write(f"prose: rhythm of the pages that explain: {'; '.join(found) or 'good'}\n")
    return int(failed or bool(found))


if __name__ == "__main__":
    sys.exit(main())
