"""Play a short story on an embedded cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from cli.interrupts import INTERRUPTED
from cli.running import ExitCode, signals_to
from cli.settings.errors import need_extra
from streaming.scratch import scratch_directory


@click.command()
@click.option("--once", is_flag=True, help="End after the story. Exit with 0 only if Kontrast detected every chapter.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Keep the data here.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Serve /metrics on this port (0: any free one).")
def demo(*, once: bool, keep: Path | None, port: int) -> int:
    """Play a short story on an embedded cluster.

    It starts ZooKeeper, three Kafka brokers, and `kontrast watch`, `stream` and `serve` on them. Topics are created, a
    broker is killed and returns, a topic is deleted. It stays up until Ctrl-C and leaves no process behind.
    """
    need_extra("job", "demo")
    from cli.demo.stage import (
        Narrator,  # not for --help
        Stage,
        StageError,
    )
    from cli.demo.story import ChapterFailedError, play
    from cli.embedded.process import EmbeddedError
    from streaming.errors import StreamError

    narrator = Narrator()
    played = False
    with signals_to(_interrupt), _directory(keep) as directory:
        try:
            with Stage(directory, port, narrator) as stage:
                play(stage, narrator)
                played = True
                if not once:
                    narrator.stays_up(stage.page_address, directory)
                    stage.run_on()
        except KeyboardInterrupt:
            return ExitCode.OK if played and not once else INTERRUPTED
        except (EmbeddedError, StreamError) as error:
            narrator.fail(str(error))
            return ExitCode.UNAVAILABLE
        except (ChapterFailedError, StageError) as error:
            narrator.fail(str(error))
            return ExitCode.FAILED
    return ExitCode.OK


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with scratch_directory() as scratch:
            yield scratch.directory
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        used = any(keep.iterdir())
    except OSError as error:
        raise click.UsageError(
            f"--keep {keep} cannot be used: {error.strerror}.", click.get_current_context()
        ) from error
    if used:
        raise click.UsageError(f"--keep {keep} is not empty. Name a new directory.", click.get_current_context())
    yield keep.absolute()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
