"""Every remedy by its name, in the order of docs/reference/remedies.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from controller.says.remedies.remedy import Remedy
from lab.pages import remedies

SECTIONS: Final[Mapping[str, tuple[Remedy, ...]]] = remedies.SECTIONS
REMEDIES: Final[Mapping[str, Remedy]] = {remedy.name: remedy for each in SECTIONS.values() for remedy in each}
