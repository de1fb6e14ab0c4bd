"""What commands that read a ZooKeeper once have in common: how far it is, and what is said where no Kafka is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cli.printing import output
from cli.running import ExitCode
from ingest.config import ZooKeeperConfig

_NAMED_CHROOTS: Final = 10


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, if a person sees it."""
    if not sys.stderr.isatty():
        yield lambda _count, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = ("read", BarColumn(), MofNCompleteColumn(), "znodes", TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("read", total=None)
        yield lambda count, total: progress.update(task, completed=count, total=total)


def refuse_chroot(config: ZooKeeperConfig, stop: threading.Event) -> ExitCode:
    """Say that there is no Kafka cluster at the chroot, and where there is one; raises IngestError."""
    from ingest.complete_read import find_chroots

    found = find_chroots(config, stop)
    addresses = [f"{config.servers}{chroot.rstrip('/')}" for chroot in found[:_NAMED_CHROOTS]]
    more = f" and {len(found) - _NAMED_CHROOTS} more" if len(found) > _NAMED_CHROOTS else ""
    others = f"there is one at {' and at '.join(addresses)}{more}" if found else "check the address"
    output.complain(f"there is nothing of a Kafka cluster at ZooKeeper {config.servers}{config.chroot}: {others}")
    return ExitCode.USAGE
