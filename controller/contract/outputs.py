"""Outputs that Kontrast publishes, with their rows in JSON.

`view`, `transaction` and `alerts` make the rows.
"""

from __future__ import annotations

from typing import Union

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.effect_rows import RefusedRow, Request, Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import (
    BeginningRow,
    BrokerRow,
    ControllerRow,
    MigrationRow,
    PartitionRow,
    TopicRow,
)
from controller.contract.records import Int64
from controller.contract.row import OUTPUT_VERSION, Row

OutputRow = Union[  # noqa: UP007 (msgspec needs it at run time on 3.10)
    Transition,
    Request,
    PartitionRow,
    TopicRow,
    BrokerRow,
    ControllerRow,
    MigrationRow,
    AlertRow,
    GaugesRow,
    RefusedRow,
    BeginningRow,
    JobRow,
]

STANDING_OUTPUTS = ("metadata", "alerts", "gauges")
OUTPUTS = ("transitions", "requests", "metadata", "alerts", "gauges", "refused")


class BadRowError(ValueError):
    """Bytes that are no output row, or a row of a version that this Kontrast does not read."""


class NewerRowError(BadRowError):
    """Row of a newer version, which readers leave out. `cluster` is None if the row belongs to no cluster."""

    def __init__(self, version: int, cluster: str | None) -> None:
        super().__init__(f"output version {version} is newer than this Kontrast's {OUTPUT_VERSION}")
        self.cluster = cluster


class _Envelope(msgspec.Struct):
    """Fields that rows of every version have."""

    v: Int64
    cluster: str | None = None


_ENCODER = msgspec.json.Encoder()
_DECODER: JsonDecoder[OutputRow] = JsonDecoder(OutputRow)  # type: ignore[arg-type]  # a union of kinds
_ENVELOPE_DECODER = JsonDecoder(_Envelope)


def encode_row(row: Row | JobRow) -> bytes:
    """Return the row as one JSON object without line ends."""
    return _ENCODER.encode(row)


def decode_row(line: bytes | str) -> OutputRow:
    """Return the row that `encode_row` wrote. Raise BadRowError."""
    try:
        row = _DECODER.decode(line)
    except UndecodableError as error:
        _refuse_newer(line)  # because a newer version may have other kinds and fields
        raise BadRowError(f"not an output row: {error}") from error
    if row.v > OUTPUT_VERSION:
        raise NewerRowError(row.v, None if isinstance(row, JobRow) else row.cluster)
    return row


def _refuse_newer(line: bytes | str) -> None:
    try:
        envelope = _ENVELOPE_DECODER.decode(line)
    except UndecodableError:
        return
    if envelope.v > OUTPUT_VERSION:
        raise NewerRowError(envelope.v, envelope.cluster)
