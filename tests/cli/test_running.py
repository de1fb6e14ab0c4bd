"""Parts in threads, under real signals in a process of their own."""

import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SCRIPT = """
import ctypes, resource, sys, threading, time
import streaming.python_memory
from cli.printing import standard_error
from cli.running import run_until_stopped
from ingest.errors import IngestError

def patient(stop):
    print("patient runs", flush=True)
    stop.wait()

def deaf(stop):
    print("deaf runs", flush=True)
    stop.wait()
    print("deaf was asked", flush=True)
    time.sleep(600)

def unreachable(stop):
    raise IngestError("nobody answers at\\nnowhere:2181")

def broken(stop):
    raise RuntimeError("a defect")

def brief(stop):
    pass

held = threading.Barrier(8)

def allocates(stop):
    held.wait()
    kept = [bytes(n) for n in range(1_000, 9_000)]
    held.wait()

def resident_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def renders(stop):
    pages = [bytes(2_000) for _ in range(50_000)]
    before, until = resident_bytes(), time.monotonic() + 30
    kept = pages[::8]  # keeps glibc from returning the rest by itself
    pages.append(pages)  # as the macros of a template refer to each other
    del pages
    while resident_bytes() > before / 2 and time.monotonic() < until:
        time.sleep(0.05)
    print("returned" if resident_bytes() <= before / 2 else "kept", flush=True)

def heaps(stop):
    libc = ctypes.CDLL(None)
    libc.fdopen.restype = ctypes.c_void_p
    libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
    libc.fflush(None)

standard_error.configure()
names = sys.argv[1:]
beside = {name: globals()[name] for name in names[names.index("beside") + 1 :]} if "beside" in names else {}
parts = {name: globals()[name.rstrip("01234567")] for name in names if name not in beside and name != "beside"}
sys.exit(run_until_stopped(parts, beside))
"""


@contextmanager
def running(*parts: str, script: str = SCRIPT) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", script, *parts]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


def test_a_part_that_ends_by_itself_ends_the_command():
    with running("brief") as process:
        assert end(process) == (0, "")


def test_the_first_signal_lets_the_parts_finish():
    for number in (signal.SIGTERM, signal.SIGINT):
        with running("patient") as process:
            assert process.stdout.readline() == "patient runs\n"
            process.send_signal(number)
            code, stderr = end(process)
            assert code == 0
            assert stderr == f"kontrast: stopping on {number.name}, a second one ends at once\n"


def test_the_second_signal_ends_at_once():
    for number in (signal.SIGTERM, signal.SIGINT):
        with running("deaf") as process:
            assert process.stdout.readline() == "deaf runs\n"
            process.send_signal(number)
            assert process.stdout.readline() == "deaf was asked\n"
            process.send_signal(number)
            assert end(process)[0] == 128 + number


QUESTION = """
import sys
from ingest.errors import StoppedError
from cli.sources.asking import ask_as_long_as

def reads(stop):
    print("asked", flush=True)
    stop.wait()
    raise StoppedError

def computes(stop):
    print("asked", flush=True)
    while True:
        pass

def answers(stop):
    print("asked", flush=True)
    stop.wait()
    return 1

sys.exit(ask_as_long_as(globals()[sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("question", "number", "code"),
    [("reads", signal.SIGINT, 130), ("computes", signal.SIGTERM, 143), ("answers", signal.SIGTERM, 1)],
)
def test_a_question_ends_at_the_first_signal_and_is_answered_or_says_that_it_is_not(question, number, code):
    with running(question, script=QUESTION) as process:
        assert process.stdout.readline() == "asked\n"
        process.send_signal(number)
        assert end(process)[0] == code


def test_a_part_that_fails_leaves_the_others_running_and_is_named_at_the_end():
    with running("unreachable", "patient") as process:
        assert process.stderr.readline() == "kontrast: unreachable: nobody answers at nowhere:2181\n"
        assert process.stdout.readline() == "patient runs\n"
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert end(process)[0] == 3


def test_a_part_alone_is_not_named_in_its_sentence():
    with running("unreachable") as process:
        assert end(process) == (3, "kontrast: nobody answers at nowhere:2181\n")


def test_a_defect_is_logged_with_its_stack_and_is_exit_code_1():
    with running("broken", "unreachable") as process:
        code, stderr = end(process)
        assert code == 1
        assert "Traceback" in stderr
        assert "kontrast: broken: failed unexpectedly" in stderr
        assert "RuntimeError: a defect" in stderr


def test_what_runs_beside_the_parts_ends_with_them():
    with running("brief", "beside", "patient") as process:
        assert process.stdout.readline() == "patient runs\n"
        assert end(process) == (0, "")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only glibc has heaps of threads")
def test_threads_of_parts_share_heaps():
    script = SCRIPT.replace("sys.exit(run", "run").rstrip(")\n") + ")\nheaps(None)\n"
    with running(*(f"allocates{n}" for n in range(8)), script=script) as process:
        counted, _ = process.communicate(timeout=60)
    assert 1 <= counted.count("<heap nr=") <= 2


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc returns memory when told to")
def test_free_memory_goes_back_to_the_system_while_a_part_runs():
    interval = "streaming.python_memory._RETURN_EVERY_SECONDS = 1.0"
    often = SCRIPT.replace("names = sys.argv", f"{interval}\nnames = sys.argv", 1)
    with running("renders", script=often) as process:
        assert process.communicate(timeout=60)[0] == "returned\n"
