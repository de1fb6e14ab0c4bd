"""Ask Kafka's readers for the vectors again: `python -m tests.conformance.znode_readers`. It needs a JDK."""

from __future__ import annotations

from tests.conformance.znode_readers.answers import write_vectors

write_vectors()
