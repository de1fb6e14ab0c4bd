"""Limits of the code: its sum, imports without circles, files and functions of a page's length, short names.

Files and functions have lower bounds, too, because a reader cannot remember many small pieces.
Exceptions are listed, each with its reason.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import grimp
import pytest

from lab.release.dist import PACKAGES

ROOT = Path(__file__).parents[1]
SOURCES = [file for room in (*PACKAGES, "deploy") for file in sorted((ROOT / room).rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

NO_PRODUCT = {"tests", "lab", "build", "dist", ".venv", ".git"}  # folders that the file SIZE does not count
LINES_OF_A_FILE = 400
LEAST_LINES_OF_A_MODULE = 40  # of a module that only one other module imports
LENGTH_WORTH_A_NAME = 24  # of an expression, beyond its call
LINES_OF_A_FUNCTION = 40
LENGTH_OF_A_TEST_NAME = 79

MODULES_LOADED = {("--version",): 45, ("check", "--help"): 100}  # of ours, by a command

SMALL_MODULES = {"cli.start": "the entry point of the installed command"}
LONG_FUNCTIONS = {
    "controller/view/gauges.py gauges_row": "one field of a row a line, without a branch",
    "streaming/job.py _start": "ten lines are its signature",
    "transport/journal.py __init__": "one attribute a line",
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return the imports of all packages."""
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def circles(graph: grimp.ImportGraph) -> set[frozenset[str]]:
    """Return the strongly connected components of more than one module."""
    found = set()
    for module in graph.modules:
        around = graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
        if around:
            found.add(frozenset({module, *around}))
    return found


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def test_no_module_imports_itself_by_way_of_others(graph):
    assert circles(graph) == set()


def test_the_product_has_no_more_lines_than_its_bound():
    """A commit may lower the number in the file SIZE. Only an issue may raise it, and says by how much."""
    rooms = [room for room in ROOT.iterdir() if room.is_dir() and room.name not in NO_PRODUCT]
    files = [*ROOT.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))]
    written = sum(file.read_bytes().count(b"\n") for file in files)
    assert written <= int((ROOT / "SIZE").read_text(encoding="utf-8")), written


@pytest.mark.parametrize("words", MODULES_LOADED, ids=" ".join)
def test_a_command_loads_few_of_our_modules(words):
    command = [sys.executable, "-X", "importtime", "-m", "cli", *words]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = re.findall(rf"\| +((?:{'|'.join(PACKAGES)})(?:\.\S+)?)$", ran.stderr, re.MULTILINE)
    assert 0 < len(loaded) <= MODULES_LOADED[words], loaded


def test_no_module_is_too_small_for_its_only_importer(graph):
    small = set()
    for module in graph.modules:
        file = ROOT / f"{module.replace('.', '/')}.py"  # a package's own file may be small
        if len(graph.find_modules_that_directly_import(module)) == 1 and file.is_file():
            small |= {module} if len(file.read_text(encoding="utf-8").splitlines()) < LEAST_LINES_OF_A_MODULE else set()
    assert small == SMALL_MODULES.keys()


def called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def needless_functions(file: Path) -> Iterator[str]:
    """Yield private functions without docstring that return hardly more than the text of their one call."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    uses = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute)
    )
    calls = {called(node): ast.unparse(node) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.decorator_list:
            body = node.body[0].value if isinstance(node.body[0], ast.Return) else None
            is_called_once = uses[node.name] == 1 and node.name in calls
            if body and is_called_once and len(ast.unparse(body)) <= len(calls[node.name]) + LENGTH_WORTH_A_NAME:
                yield node.name


def test_no_private_function_says_hardly_more_than_its_only_call():
    assert {f"{name(file)} {function}" for file in SOURCES for function in needless_functions(file)} == set()


def test_no_file_is_longer_than_a_person_reads_at_once():
    long = {name(file) for file in SOURCES if len(file.read_text(encoding="utf-8").splitlines()) > LINES_OF_A_FILE}
    assert long == set()


def test_no_function_is_longer_than_a_page():
    long = {
        f"{name(file)} {function.name}"
        for file in SOURCES
        for function in functions(file)
        if lines(function) > LINES_OF_A_FUNCTION
    }
    assert long == LONG_FUNCTIONS.keys()


def assigned(file: Path) -> Iterator[str]:
    """Yield the targets of all assignments in the file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield ast.unparse(node)


def test_only_the_core_assigns_what_a_context_holds():
    outside = [file for file in SOURCES if not name(file).startswith("controller/")]
    changed = {f"{name(file)}: {target}" for file in outside for target in assigned(file) if ".header." in f".{target}"}
    assert changed == set()


def test_phases_brokers_terms_shutdowns_and_deletions_change_by_their_verbs():
    elsewhere = ("controller/model/", "controller/restore/")  # `restore` builds contexts from rows
    core = [file for file in SOURCES if name(file).startswith("controller/") and not name(file).startswith(elsewhere)]
    whole, parts = "brokers|phase|controller|controller_epoch|term", "term|former|shutdowns|departures|deletions"
    owned = re.compile(rf"header\.({whole}|({parts})\.\w+)$")
    changed = {f"{name(file)}: {target}" for file in core for target in assigned(file) if owned.search(target)}
    assert changed == set()


def test_every_room_says_what_it_is():
    rooms = [file for file in SOURCES if file.name == "__init__.py"]
    assert [name(file) for file in rooms if not ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))] == []


def test_the_name_of_a_class_stands_for_one_thing():
    nodes = (node for file in SOURCES for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert {each for each, count in classes.items() if count > 1} == set()


def test_the_names_of_tests_fit_on_a_line():
    tests = {function.name for file in TESTS for function in functions(file) if function.name.startswith("test_")}
    assert {each for each in tests if len(each) > LENGTH_OF_A_TEST_NAME} == set()


def whole_numbers_of_enums() -> set[str]:
    """Return the fields of structs that hold an enum's value as a number, which is no member once it is restored."""
    found = set()
    for file in (ROOT / "controller").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            is_field = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            if is_field and ast.unparse(node.annotation) in ("int", "int | None"):
                found.add(node.target.id)
    return found


def test_no_number_is_compared_by_identity_with_an_enums_member():
    numbers = whole_numbers_of_enums()
    assert "to_state" in numbers
    wrong = {
        f"{name(file)}:{node.lineno}"
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops)
        for side, member in permutations((node.left, *node.comparators), 2)
        if isinstance(side, ast.Attribute)
        and side.attr in numbers
        and re.fullmatch(r"(\w+\.)*[A-Z_]+", ast.unparse(member))
    }
    assert wrong == set()
