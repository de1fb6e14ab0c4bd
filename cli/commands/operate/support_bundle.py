"""Write status, settings and a recording into a file for a bug report."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cli.followed_outputs import Where
from cli.printing import standard_error
from cli.running import run_until_stopped
from cli.settings.config import ConfigError, Layer, Settings, reached
from cli.settings.options import config_option
from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.records import Record, encode_record
from controller.rules.settings import SETTING_NAMES
from dashboards.errors import ServeError
from streaming.scratch import scratch_directory
from transport.address import JournalAddress, KafkaAddress
from transport.disk import Fsync
from transport.journal import JournalWriter
from wording.sentences import own_version

_BROKERS_SETTINGS: Final = "/config/brokers/"
_REMOVED: Final = "removed by kontrast support-bundle"
_LOGIN_IN_URL: Final = re.compile(r"(?<=://)[^/@\s]+@")
_LINES_AT_ONCE: Final = 10_000
_OBJECT: Final = JsonDecoder(dict[str, Any])
_STATUS_SECONDS: Final = 120
_EPILOG: Final = """\b
Examples:
  kontrast support-bundle --config kontrast.toml
  mkdir bundle && tar -xf kontrast-support.tar.xz -C bundle
  kontrast check --from journal:bundle/changes

\b
Exit codes:
  0  the file is written
  2  a setting is wrong, or the file exists
  3  the stream cannot be read, and the file has the rest
"""


@click.command("support-bundle", epilog=_EPILOG)
@config_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("kontrast-support.tar.xz"),
    show_default=True,
    metavar="FILE",
    help="Write here, into a new file that only you may read.",
)
@click.option("--no-recording", is_flag=True, help="Leave the recording out.")
@click.option("--json", "as_json", is_flag=True, help="Log one JSON object a line.")
def support_bundle(settings: Settings, out: Path, *, no_recording: bool, as_json: bool) -> int:
    """Write status, settings and a recording into a file, for who helps you.

    The recording has the stream's records from the newest complete read on. It names hosts, topics and brokers. It has
    no passwords and keys: settings only name files, and brokers' dynamic settings lose every value that Kontrast does
    not use.
    """
    if as_json:
        standard_error.configure(as_json=True)
    try:
        opened = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}") from error

    def run(stop: threading.Event) -> None:
        with os.fdopen(opened, "wb") as file, scratch_directory() as scratch:
            _write_facts(scratch.directory, settings)
            try:
                if not no_recording:
                    _write_recording(scratch.directory / "changes", settings, stop)
            finally:
                with tarfile.open(fileobj=file, mode="w:xz") as bundle:
                    for part in sorted(scratch.directory.iterdir()):
                        bundle.add(part, part.name)

    code = run_until_stopped({"support-bundle": run})
    standard_error.say(
        f"{out} has {'the facts, without a recording' if no_recording or code else 'all'}, read it before you send it"
    )
    return code


def _write_facts(directory: Path, settings: Settings) -> None:
    about = {
        "kontrast": own_version("a source tree that is not installed"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    sections = {**settings.sections, **{f"clusters.{name}": layer for name, layer in settings.clusters.items()}}
    chosen = {name: _shown(layer) for name, layer in sections.items()}
    for name, content in (("about.json", about), ("settings.json", chosen)):
        (directory / name).write_bytes(msgspec.json.format(msgspec.json.encode(content)))
    (directory / "status.jsonl").write_text(_status(settings.file), encoding="utf-8")


def _shown(layer: Layer) -> dict[str, str]:
    return {name: _LOGIN_IN_URL.sub(f"{_REMOVED}@", str(setting.value)) for name, setting in layer.items()}


def _status(config_file: Path | None) -> str:
    """Return the answer of `kontrast status`, even if it is an error."""
    from cli.embedded.process import own_command  # not for --help

    command, environment = own_command(
        "status", "--json", *([] if config_file is None else ["--config", str(config_file)])
    )
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_STATUS_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer within {_STATUS_SECONDS} s\n"
    return f"{done.stdout}{done.stderr}exit code {done.returncode}\n"


def _write_recording(directory: Path, settings: Settings, stop: threading.Event) -> None:
    """Write the newest records as a journal. Raise ServeError."""
    from cli.sources.records import newest_records  # not for --help

    stream = settings.sections["stream"].get("from")
    if stream is None or not isinstance(stream.value, (JournalAddress, KafkaAddress)):
        raise ServeError("[stream] names no stream. Give --config with from in [stream], or --no-recording")
    lines = _lines(newest_records(Where(reached(settings, stream.value), 30.0), stop))
    with JournalWriter(directory, fsync=Fsync.NEVER, retain_bytes=None) as journal:
        while some := list(islice(lines, _LINES_AT_ONCE)):
            journal.append(some)


def _lines(records: Iterator[Record]) -> Iterator[bytes]:
    for record in records:
        is_hidden = record.path is not None and record.path.startswith(_BROKERS_SETTINGS)
        yield encode_record(_without_secrets(record) if is_hidden else record)


def _without_secrets(record: Record) -> Record:
    """Return the record of a broker's dynamic settings, in which only the values that Kontrast uses are left."""
    if record.data is None and record.data_base64 is None:
        return record
    try:
        content = _OBJECT.decode(record.data or "")
        config = content.get("config", {})
        kept = {name: value if name in SETTING_NAMES else _REMOVED for name, value in config.items()}
    except (UndecodableError, AttributeError):
        content, kept = {"version": 1}, {}
    data = msgspec.json.encode({**content, "config": kept}).decode()
    return msgspec.structs.replace(record, data=data, data_base64=None)
