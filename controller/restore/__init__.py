"""Contexts without a history of records, which are empty, stored or altered, or come from rows or a single read."""

from typing import Final

CHUNK_COUNT: Final = 64  # parts that keep and store topics. A change stores only the part with its topic
