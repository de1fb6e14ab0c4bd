"""Fixtures of the conformance tests, with recordings, unpacked and replayed, and the lines on their agreement."""

import pytest

from tests.conformance.recording import Recording, Replay, replay, unpack

_LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LINES] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a recording together, so that one process unpacks and replays it once."""
    for item in items:
        if "recordings" in getattr(item, "fixturenames", ()):
            of = item.callspec.params if hasattr(item, "callspec") else {}
            whole_file = getattr(item.module, "NAME", "race39")  # the recording of a file about one recording
            name = of.get("name") or getattr(of.get("expected"), "stem", whole_file)
            item.add_marker(pytest.mark.xdist_group(f"recording {name}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash[_LINES]
    if lines:
        terminalreporter.section("agreement with real controllers (matched / real / derived)")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> list[str]:
    """Return the lines that are printed at the end of the session."""
    return pytestconfig.stash[_LINES]


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory):
    """Return a function that gives a recording and its replay by name, each unpacked and replayed once."""
    directory = tmp_path_factory.mktemp("recordings")
    done: dict[str, tuple[Recording, Replay]] = {}

    def get(name: str) -> tuple[Recording, Replay]:
        if name not in done:
            recording = unpack(name, directory)
            done[name] = recording, replay(recording.records(), recording.profile(), recording.settings())
        return done[name]

    return get
