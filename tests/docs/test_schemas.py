"""JSON Schemas of the outputs, which are current, and accept and refuse the same rows as Kontrast."""

from __future__ import annotations

import functools
import json
import typing

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import STANDING_OUTPUTS, BadRowError, OutputRow, decode_row, encode_row
from lab.pages import DOCS, schemas

KINDS = typing.get_args(OutputRow)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@functools.cache
def validator_of(output):
    from jsonschema import Draft202012Validator  # which takes seconds, and every process of a run imports every test

    return Draft202012Validator(json.loads((DOCS / "schemas" / f"{output}.json").read_text(encoding="utf-8")))


def any_row(kind):
    """Draw any row of this kind."""
    hints = typing.get_type_hints(kind, include_extras=True)
    with_v = {"v": st.just(1)}
    fields = {name: _any(hints[name]) for name in kind.__struct_fields__}
    return st.builds(kind, **{**fields, **with_v})


def _any(hint):
    hint = getattr(hint, "__supertype__", hint)  # of an id's own type
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Annotated:
        return _within(hint.__origin__, [each for each in hint.__metadata__ if isinstance(each, msgspec.Meta)])
    if hint is int:
        return NUMBERS
    if typing.get_origin(hint) is dict:
        return st.dictionaries(_any(arguments[0]), _any(arguments[1]), max_size=3)
    if hasattr(hint, "__struct_fields__"):
        return any_row_part(hint)
    if typing.get_origin(hint) is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(_any(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*map(_any, arguments))
    if arguments:
        return st.one_of([_any(argument) for argument in arguments])
    return st.from_type(hint)


def _within(hint, bounds):
    """Draw any value that these bounds of numbers and lengths allow."""
    least = max((each.ge for each in bounds if each.ge is not None), default=-(2**63))
    mosts = [each.le if each.lt is None else each.lt - 1 for each in bounds]
    most = min((each for each in mosts if each is not None), default=2**63 - 1)
    lengths = [each for each in bounds if each.min_length is not None]
    if lengths:
        (item, _), (each,) = typing.get_args(hint), lengths
        return st.lists(_any(item), min_size=each.min_length, max_size=each.max_length).map(tuple)
    if hint is float:
        return st.floats(least, most)
    hint = getattr(hint, "__supertype__", hint)
    return st.integers(least, most) if hint is int else _any(hint)


def any_row_part(struct):
    """Draw any struct inside a row."""
    hints = typing.get_type_hints(struct, include_extras=True)
    return st.builds(struct, **{name: _any(hint) for name, hint in hints.items()})


def outputs_of(kind):
    return STANDING_OUTPUTS if kind is BeginningRow else (kind.output,)


@pytest.mark.generated
def test_the_committed_files_are_current():
    for output in schemas.ALL_OUTPUTS:
        committed = validator_of(output).schema
        validator_of(output).check_schema(committed)
        assert committed == json.loads(json.dumps(schemas.schema_of(output))), "run `make docs`"
    assert {path.stem for path in (DOCS / "schemas").iterdir()} == set(schemas.ALL_OUTPUTS)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_every_row_is_valid_in_its_output_and_in_no_other(kind, data):
    written = json.loads(encode_row(data.draw(any_row(kind))))
    assert {output for output in schemas.ALL_OUTPUTS if validator_of(output).is_valid(written)} == set(outputs_of(kind))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=5)
@given(data=st.data())
def test_what_lacks_a_field_or_has_one_of_another_type_is_refused_by_both(kind, data):
    validator = validator_of(outputs_of(kind)[0])
    written = json.loads(encode_row(data.draw(any_row(kind))))
    (definition,) = (each for each in validator.schema["$defs"].values() if each["title"] == kind.__name__)
    for name in definition["required"]:
        lacking = {field: value for field, value in written.items() if field != name}
        assert not validator.is_valid(lacking)
        if name != "v":  # a row of the first version may omit it
            with pytest.raises(BadRowError):
                decode_row(json.dumps(lacking))
    for name in definition["properties"]:
        wrong = {**written, name: [{"neither": None}]}
        assert not validator.is_valid(wrong), name
        with pytest.raises(BadRowError):
            decode_row(json.dumps(wrong))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=5)
@given(data=st.data())
def test_a_field_that_a_newer_kontrast_adds_disturbs_neither(kind, data):
    row = data.draw(any_row(kind))
    written = {**json.loads(encode_row(row)), "added_later": 1}
    assert validator_of(outputs_of(kind)[0]).is_valid(written)
    assert decode_row(json.dumps(written)) == row
