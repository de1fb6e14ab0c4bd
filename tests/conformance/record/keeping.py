"""What a recording keeps of the brokers' logs.

Here belongs the choice of lines; who counts them is `controller_log`, and `causes` reads what was being handled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.conformance.controller_log import STOPPED_REPLICAS

_BY_A_BROKER = re.compile(r"\[[^\]]*\] \w+ (?:\[Broker id=|Broker \d)")
_COUNTED = re.compile(r" (?:[Cc]hanged |[Ss]ending become-|[Ss]ending StopReplica |Mark replicas )")
_OF_THE_CONTROLLER = re.compile(r"\[[^\]]*\] [A-Z]+ (?!\[RequestSendThread)")  # the rest are attempts, and traces
_LONGEST_LINE = 400  # some lines name every partition of the cluster


def keep_what_the_controllers_said(logs: Path) -> None:
    """Leave out what brokers say of the requests that they get, which is two thirds of the log."""
    _rewrite(logs / "state-change.log", lambda line: "" if _BY_A_BROKER.match(line) else line)


def keep_what_is_counted(logs: Path) -> None:
    """Leave the transitions and requests, and of the controller's reasons those that a line can say."""
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
    """Line by line, so that a log of a gigabyte costs no memory."""
    rest = log.with_suffix(".kept")
    with log.open(errors="replace") as lines, rest.open("w") as written:
        written.writelines(map(kept, lines))
    rest.replace(log)
