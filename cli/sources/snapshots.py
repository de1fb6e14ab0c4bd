"""Files that `kontrast snapshot --json` has written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cli.printing import output
from cli.settings.config import ConfigError
from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.view.metadata import ControllerMetadata, Metadata, UnreadableZnode
from questions.diff.side import Side, of_metadata
from wording.sentences import counted

_DECODER: Final[JsonDecoder[Metadata]] = JsonDecoder(Metadata)  # type: ignore[arg-type]  # mypy knows no union as a type


def read_snapshot(file: Path) -> Side:
    """Return a snapshot as one side of a comparison. Raise ConfigError for another file."""
    try:
        metadata = [_DECODER.decode(line) for line in file.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except UndecodableError as error:
        raise ConfigError(f"{file} is not of `kontrast snapshot --json`: {error}") from error
    if not any(isinstance(line, ControllerMetadata) for line in metadata):
        raise ConfigError(f"{file} is no whole answer of `kontrast snapshot --json`: it names no controller")
    if unreadable := sum(isinstance(line, UnreadableZnode) for line in metadata):
        output.warn(f"in {file} {counted(unreadable, 'znode')} could not be read, so their data is missing there")
    return Side(file.name, dict(of_metadata(metadata)))
