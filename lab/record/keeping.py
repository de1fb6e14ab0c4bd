"""Lines of the brokers' logs that a recording keeps.

The choice of lines belongs here. `controller_log` counts them, and `causes` reads the current events.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.conformance.controller_log import STOPPED_REPLICAS

_BY_A_BROKER = re.compile(r"\[[^\]]*\] \w+ (?:\[Broker id=|Broker \d)")
_COUNTED = re.compile(r" (?:[Cc]hanged |[Ss]ending become-|[Ss]ending StopReplica |Mark replicas )")
_OF_THE_CONTROLLER = re.compile(r"\[[^\]]*\] [A-Z]+ (?!\[RequestSendThread)")  # not its vain attempts to connect
_LONGEST_LINE = 400  # some lines name every partition of the cluster


def keep_what_the_controllers_said(logs: Path) -> None:
    """Leave out the brokers' lines about requests to them, which are two thirds of the log."""
    _rewrite(logs / "state-change.log", lambda line: "" if _BY_A_BROKER.match(line) else line)


def keep_what_is_counted(logs: Path) -> None:
    """Keep the transitions and requests, and those reasons of the controller that fit into a line."""
    keep_what_the_controllers_said(logs)
    _rewrite(logs / "state-change.log", lambda line: line if _COUNTED.search(line) else "")
    _rewrite(logs / "controller.log", _shortened)


def _shortened(line: str) -> str:
    if STOPPED_REPLICAS.match(line):
        return line
    if not _OF_THE_CONTROLLER.match(line):
        return ""
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "\n"


def _rewrite(log: Path, kept: Callable[[str], str]) -> None:
    """Rewrite it line by line, so that a log of a gigabyte costs no memory."""
    rest = log.with_suffix(".kept")
    with log.open(errors="replace") as lines, rest.open("w") as written:
        written.writelines(map(kept, lines))
    rest.replace(log)
