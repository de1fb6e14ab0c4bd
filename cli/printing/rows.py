"""Options `--json` and `--output` of commands whose answer is a table, for JSON lines, YAML and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final

import click
import msgspec

from cli.printing.standard_output import collected_rows, print_document
from controller.contract.decoding import JsonDecoder
from transport.printable import printable

_JSON: Final = "json"
_OBJECT: Final[JsonDecoder[dict[str, Any]]] = JsonDecoder(dict)


def row_options(json_help: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add `--json` and `--output` to a command that prints one JSON object a row if `as_json` is true.

    YAML and CSV are written once the command has ended, because their form follows from all rows.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def run(*arguments: object, output: str | None, **options: object) -> int:
            if output in (None, _JSON):
                return command(*arguments, as_json=output is not None, **options)
            if options.get("is_live"):
                raise click.UsageError(f"--output {output} needs an end, which --watch has not. Give --json.")
            with collected_rows() as rows:
                code = command(*arguments, as_json=True, **options)
            print_document(_FORMS[output]([_OBJECT.decode(row) for row in rows]))
            return code

        help_text = "Print the rows in this form. json is one object per line."
        run = click.option("--output", type=click.Choice([_JSON, *_FORMS]), help=help_text)(run)
        return click.option("--json", "output", flag_value=_JSON, help=json_help)(run)

    return decorate


def _yaml(rows: Sequence[Mapping[str, Any]]) -> str:
    import yaml  # not for --help

    text: str = yaml.safe_dump(list(rows), sort_keys=False, width=120)
    return text


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a header with every field of any row, and the rows. Fields other than texts and numbers are JSON."""
    written = io.StringIO()
    fields = dict.fromkeys(field for row in rows for field in row)
    writer = csv.DictWriter(written, fields, lineterminator="\n")
    if fields:
        writer.writeheader()
    writer.writerows({field: _cell(value) for field, value in row.items()} for row in rows)
    return written.getvalue()


def _cell(value: Any) -> str:  # noqa: ANN401 (whatever JSON has)
    if value is None:
        return ""
    return printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())


_FORMS: Final[Mapping[str, Callable[[Sequence[Mapping[str, Any]]], str]]] = {"yaml": _yaml, "csv": _csv}
