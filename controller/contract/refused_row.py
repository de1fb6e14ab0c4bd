"""The rows of what could not be read."""

from __future__ import annotations

from typing import ClassVar

from controller.contract.row import Row


class RefusedRow(Row, frozen=True, kw_only=True, gc=False, tag="refused"):
    """Znode or record that could not be read, kept whole; the last good value stays in force."""

    output: ClassVar[str] = "refused"

    path: str
    reason: str
    data: str | None = None
    data_base64: str | None = None
