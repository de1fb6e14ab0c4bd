"""`kontrast up`: run watch, stream and serve of one configuration as supervised children."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import click
import msgspec

from cli import checks
from cli.extras import need_extra
from cli.printing import standard_error
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import SECTIONS, read_settings, serve_config, stream_config, watch_configs, watched_into
from cli.settings.disagreements import refuse_parted_pipeline
from cli.settings.options import service_command
from controller.contract.decoding import JsonDecoder, UndecodableError
from transport.journal_lock import holders
from transport.printable import printable, printable_json

_EXAMPLES: Final = """
  kontrast up --config kontrast.toml --check
  kontrast up --config kontrast.toml
"""
_COMMANDS: Final = ("watch", "stream", "serve")  # in the order of the rows through them
_WIDTH: Final = max(map(len, _COMMANDS))
_LONGEST_LINE: Final = 64 * 1024
_OBJECT: Final = JsonDecoder(dict[str, object])


@service_command(_EXAMPLES, ended="stopped by Ctrl-C or SIGTERM, in order")
@click.pass_context
def up(ctx: click.Context, config_file: Path | None, *, check: bool) -> int:
    """Run watch, stream and serve of one configuration file, and start again what ends.

    Each is a process of its own. The log has all of them, each line with its command's name. Ctrl-C or SIGTERM ends
    watch, then the job behind its batch, then serve.
    """
    need_extra("job", "up")
    settings = read_settings(config_file, os.environ)
    watch, stream = watch_configs(settings, (), {}), stream_config(settings, {})
    serve = serve_config(settings, {section: {} for section in SECTIONS})
    refuse_parted_pipeline(watch, stream, serve)
    if check:
        questions = (
            checks.of_watch(watch),
            checks.of_stream(stream, partial(watched_into, settings)),
            checks.of_serve(serve, outputs_exist=False, watched=watch),
        )
        return checks.check(chain(*questions))
    with ExitStack() as held:
        if config_file is not None and (other := _hold(config_file, held)) is not None:
            standard_error.complain(f"kontrast up already runs with {config_file}, as {other}. Stop that one first")
            return ExitCode.UNAVAILABLE
        return _supervise(config_file, ctx.find_root().params)


def _hold(config_file: Path, held: ExitStack) -> str | None:
    """Lock the configuration file until `held` closes. Return the process that already holds the lock, if any."""
    descriptor = os.open(config_file, os.O_RDONLY | os.O_CLOEXEC)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return holders(descriptor) or "another process"
    except OSError:  # a network file system without locks
        return None
    return None


def _supervise(config_file: Path | None, root: dict[str, object]) -> int:
    from cli.embedded.process import own_command  # not for --help
    from cli.supervision import Supervisor

    as_json = bool(root["as_json"])
    libraries: Sequence[str] = root["libraries"]  # type: ignore[assignment]
    arguments = ["--log-level", str(root["log_level"]), *(f"--log-library={name}" for name in libraries)]
    arguments += ["--json"] if as_json else []
    file = [] if config_file is None else ["--config", str(config_file)]
    commands: dict[str, Sequence[str]] = {}
    environment: dict[str, str] = {}
    for name in _COMMANDS:
        commands[name], environment = own_command(*arguments, name, *file)
    supervisor = Supervisor(commands, environment, _show_json if as_json else _show)
    return run_until_stopped({"up": supervisor.run}, ready={"up": lambda: supervisor.is_ready})


def _show(name: str, line: bytes) -> None:
    text = printable(line.decode(errors="backslashreplace"), _LONGEST_LINE)
    standard_error.pass_on(f"{name:{_WIDTH}} | {text}")


def _show_json(name: str, line: bytes) -> None:
    """Print the child's JSON object with the command's name. Java and Python may also write lines that are no JSON."""
    try:
        fields = _OBJECT.decode(line)
    except UndecodableError:
        fields = {"message": line.decode(errors="backslashreplace")}
    standard_error.pass_on(printable_json(msgspec.json.encode({"command": name, **fields})).decode())
