"""Writer of `schemas/OUTPUT.json`, the JSON Schema of each output, from its rows' structs. `make docs` runs it."""

from __future__ import annotations

import inspect
import json
import typing
from typing import Any

import msgspec

from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, OutputRow
from lab.pages import DOCS

DIRECTORY = DOCS / "schemas"
ALL_OUTPUTS = (*OUTPUTS, JobRow.output)

# The key of a row in Kafka. The newest row of a key replaces the older ones.
_KEYS = {
    "transitions": "CLUSTER/GENERATION-SEQ-ORDINAL",
    "requests": "CLUSTER/GENERATION-SEQ-ORDINAL",
    "metadata": "CLUSTER/partition/TOPIC/NUMBER, CLUSTER/broker/ID, CLUSTER/controller, CLUSTER/migration or "
    "CLUSTER/beginning",
    "alerts": "CLUSTER/ID or CLUSTER/beginning",
    "gauges": "CLUSTER/gauges or CLUSTER/beginning",
    "refused": "CLUSTER/GENERATION-SEQ-ORDINAL",
    "job": "job",
}


def kinds_of(output: str) -> tuple[type, ...]:
    """Return the structs of an output's rows."""
    own = [kind for kind in typing.get_args(OutputRow) if kind.output == output and kind is not BeginningRow]
    return (*own, BeginningRow) if output in STANDING_OUTPUTS else tuple(own)


def schema_of(output: str) -> dict[str, Any]:
    """Return the JSON Schema of a row of this output."""
    schemas, definitions = msgspec.json.schema_components(kinds_of(output), ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition["description"] = inspect.cleandoc(definition.get("description", ""))
        if "v" in definition.get("properties", {}):
            definition["required"].insert(1, "v")  # the field has a default, but is always written
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A row of the output {output}",
        "description": f"One JSON object a line of the journal or message of the topic. Its key: {_KEYS[output]}. "
        "A newer Kontrast may add fields.",
        "oneOf": list(schemas),
        "$defs": dict(sorted(definitions.items())),
    }


def main() -> None:
    """Write the files."""
    DIRECTORY.mkdir(exist_ok=True)
    for output in ALL_OUTPUTS:
        text = json.dumps(schema_of(output), indent=2, ensure_ascii=False)
        (DIRECTORY / f"{output}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
