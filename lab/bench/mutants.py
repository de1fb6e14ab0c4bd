"""Mutants of the core, chosen by a seed, and the first of three sets of tests that fails for each.

*Near* are some tests that run the mutated line, *lane* the tests of `make test` about the core, and *gate* the others
of the gate. Each set runs for all mutants that passed the set before. A mutant that passes all of them is named. It is
equal to the original, or a test is missing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest
from rich.console import Console

from tests.durations import Durations

ROOT = Path(__file__).parents[2]
CORE = "controller"
ABOUT_THE_CORE = ("tests/controller", "tests/conformance", "tests/questions")
GATE = ("-m", "not nightly and not deploy")
SETS: Mapping[str, tuple[str, ...]] = {
    "near": (),  # other tests for each mutant
    "lane": ("-p", "lab.bench.mutants", "--quick", *ABOUT_THE_CORE),
    "gate": ("-p", "lab.bench.mutants", *GATE, *ABOUT_THE_CORE),
}
NEAR = 40  # tests
# A mutant that loops for ever, or fills the memory, counts as caught.
SECONDS_OF_A_SET = 900
MOST_MEMORY_BYTES = 12 * 1024**3  # of addresses, of which Java reserves more than it uses
PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
# A mutant that no test can import interrupts, or makes the named tests unknown.
FAILED = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)
OPPOSITES: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}

shown = Console(stderr=True)


class Mutant(NamedTuple):
    """A changed node of a file, by its place in the walk through the tree."""

    file: str
    node: int
    line: int
    before: str
    after: str


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield a mutant of the file for each node that can be changed, except types."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    types = {
        id(part)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if isinstance(its_type := getattr(node, field, None), ast.AST)
        for part in ast.walk(its_type)
    }
    for number, node in enumerate(ast.walk(tree)):
        after = copy.deepcopy(node)
        if isinstance(node, ast.expr | ast.stmt) and id(node) not in types and change(after):
            yield Mutant(file.relative_to(ROOT).as_posix(), number, node.lineno, _text(node), _text(after))


def change(node: ast.AST) -> bool:
    """Change the node in place. Return False for a node that has no opposite."""
    match node:
        case ast.Compare(ops=[one]) if type(one) in OPPOSITES:
            node.ops = [OPPOSITES[type(one)]()]
        case ast.BoolOp(op=one) | ast.BinOp(op=one) if type(one) in OPPOSITES:
            node.op = OPPOSITES[type(one)]()
        case ast.UnaryOp(op=ast.Not(), operand=it):
            node.operand = ast.UnaryOp(ast.Not(), it)
        case ast.If(test=it) | ast.IfExp(test=it):
            node.test = ast.UnaryOp(ast.Not(), it)
        case ast.Constant(value=bool(it)):
            node.value = not it
        case ast.Constant(value=int(it)):
            node.value = it + 1
        case _:
            return False
    return True


def _text(node: ast.AST) -> str:
    return ast.unparse(node.test if isinstance(node, ast.If) else node)[:60]


def mutated(original: str, mutant: Mutant) -> str:
    """Return the text of the mutant's file."""
    tree = ast.parse(original)
    change(next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.node))
    return ast.unparse(tree)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Let the shortest tests run first, because most mutants fail within the first of them.

    Leave out of the gate what the lane has run.
    """
    yield
    if not config.option.quick:
        durations = Durations()
        items[:] = [item for item in items if not durations.is_quick(item)]
    items.reverse()


def passes(checkout: Path, *words: str) -> bool:
    """Run tests in the checkout until one fails. Return whether none does, and all end."""
    limited = ["prlimit", f"--as={MOST_MEMORY_BYTES}", sys.executable]
    command = [*limited, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, timeout=SECONDS_OF_A_SET, check=False
        )
        assert done.returncode in (*PASSED, *FAILED), done.stderr.decode()
        return done.returncode in PASSED
    return False


def tests_by_line(checkout: Path) -> dict[str, dict[int, list[str]]]:
    """Return the tests of the core that run each line of each file."""
    assert passes(checkout, "--quick", ABOUT_THE_CORE[0], f"--cov={CORE}", "--cov-context=test", "--cov-report=")
    data = coverage.CoverageData(str(checkout / ".coverage"))
    data.read()
    found: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        lines = data.contexts_by_lineno(file)
        found[Path(file).relative_to(checkout).as_posix()] = {
            line: sorted({context.rpartition("|")[0] for context in contexts if context})
            for line, contexts in lines.items()
        }
    names = checkout / "names-of-tests"
    names.write_text("\n".join({name for lines in found.values() for tests in lines.values() for name in tests}))
    assert passes(checkout, "--collect-only", f"@{names}"), "pytest does not find tests by coverage's names for them"
    return found


def fails(mutant: Mutant, checkout: Path, words: Sequence[str]) -> bool:
    """Return whether one of these tests fails for the mutant."""
    file = checkout / mutant.file
    original = file.read_text(encoding="utf-8")
    file.write_text(mutated(original, mutant), encoding="utf-8")
    try:
        return bool(words) and not passes(checkout, *words)
    finally:
        file.write_text(original, encoding="utf-8")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file of the results, one a line, which a later run continues")
    arguments = parser.parse_args()
    every = [mutant for file in sorted((ROOT / CORE).rglob("*.py")) for mutant in mutants_of(file)]
    chosen = random.Random(arguments.seed).sample(every, arguments.mutants)
    out = arguments.out or ROOT / "build" / f"mutants-{arguments.seed}.jsonl"
    tries = Tries(out)
    judge(chosen, tries)
    caught = {mutant: tries.caught_by(mutant) for mutant in chosen}
    for mutant in (mutant for mutant, name in caught.items() if not name):
        shown.print(f"{mutant.file}:{mutant.line} {mutant.before} → {mutant.after}", markup=False)
    counts = Counter(caught.values())
    in_lane = counts["near"] + counts["lane"]
    print(
        f"of {len(chosen)} of {len(every)} mutants, make test fails {in_lane}, and the gate {in_lane + counts['gate']}"
    )


class Tries:
    """For each mutant and set of tests that were tried, whether a test failed. A later run continues the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._failed: dict[tuple[Mutant, str], bool] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
            *fields, name, failed = json.loads(line)
            self._failed[Mutant(*fields), name] = failed

    def caught_by(self, mutant: Mutant) -> str:
        """Return the set of tests that fails for the mutant, or nothing."""
        return next((name for name in SETS if self._failed.get((mutant, name))), "")

    def is_due(self, mutant: Mutant, name: str) -> bool:
        """Return whether this set is to be tried."""
        return not self.caught_by(mutant) and (mutant, name) not in self._failed

    def note(self, mutant: Mutant, name: str, *, failed: bool) -> None:
        """Keep a result."""
        self._failed[mutant, name] = failed
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*mutant, name, failed]) + "\n")


def judge(chosen: Sequence[Mutant], tries: Tries) -> None:
    """Try set after set. Each core works in a checkout of its own."""
    checkouts = [ROOT / "build" / "mutants" / str(number) for number in range(os.cpu_count() or 1)]
    for checkout in checkouts:
        shutil.rmtree(checkout, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(checkout)], check=True)
    near: dict[str, dict[int, list[str]]] = {}
    if any(tries.is_due(mutant, "near") for mutant in chosen):
        shown.print("which tests run which line")
        near = tests_by_line(checkouts[0])
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for checkout in checkouts:
        free.put(checkout)

    def try_one(mutant: Mutant, name: str) -> None:
        tests = near.get(mutant.file, {}).get(mutant.line, [])
        words = SETS[name] or tests[:: max(1, len(tests) // NEAR)][:NEAR]
        checkout, began = free.get(), time.monotonic()
        failed = fails(mutant, checkout, words)
        free.put(checkout)
        tries.note(mutant, name, failed=failed)
        shown.print(
            f"{name}, {time.monotonic() - began:.0f} s: {'fails' if failed else 'passes'} {mutant}", markup=False
        )

    with ThreadPoolExecutor(len(checkouts)) as workers:
        for name in SETS:
            due = [mutant for mutant in chosen if tries.is_due(mutant, name)]
            list(workers.map(partial(try_one, name=name), due))


if __name__ == "__main__":
    main()
