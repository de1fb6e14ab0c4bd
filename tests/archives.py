"""Unpacking of archives by any Python that Kontrast runs on."""

from __future__ import annotations

import tarfile
from pathlib import Path


def extract(file: Path, directory: Path, folder: str = "") -> None:
    """Unpack the archive's members in this folder, or all, into the directory."""
    with tarfile.open(file) as archive:
        # Debian 12's Python has no extraction filters, but from 3.12 on Python warns if none is set.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(directory, [member for member in archive if member.name.startswith(folder)])
