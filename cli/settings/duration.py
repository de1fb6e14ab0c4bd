"""Durations on the command line, like 30m, 2h or 1h30m."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

import click

_DURATION: Final = re.compile(r"(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?")
_LONGEST: Final = timedelta(days=366)


class Duration(click.ParamType[timedelta]):
    """A positive duration of at most a year."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the text, or fail with the reason in a sentence."""
        match = _DURATION.fullmatch(str(value))
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is not a duration. Write it like 30m, 2h or 1h30m", param, ctx)
        try:
            duration = timedelta(**{unit: int(count) for unit, count in match.groupdict(default="0").items()})
        except OverflowError:
            duration = _LONGEST * 2
        if not timedelta(0) < duration <= _LONGEST:
            self.fail(f"{value!r} must be positive and at most {_LONGEST.days} days", param, ctx)
        return duration
