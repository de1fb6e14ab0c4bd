"""Drawing of panels of one moment, numbers and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboards.preview.board import Panel
from dashboards.preview.prometheus import Series
from dashboards.preview.svg import Area, Drawing
from dashboards.preview.values import color_of, in_words

_LINE = 22


def draw_number(picture: Drawing, panel: Panel, named: Sequence[tuple[str, Series]], area: Area) -> None:
    """Draw a tile per series, with its value in the colour of its limits and its name."""
    x, y, width, height = area
    if not named:
        picture.rectangle(x, y, width, height, "line", rounded=3)
        absent = panel.defaults.get("noValue", "")
        picture.text(x + width / 2, y + height / 2 + 5, absent, size=13, color="faint", anchor="middle")
        return
    each = width / len(named)
    for index, (name, series) in enumerate(named):
        word, color = panel.words().get(f"{series.value:g}", (None, None))
        left = x + index * each
        picture.rectangle(left, y, each - 2, height, color or color_of(series.value, panel.defaults), rounded=3)
        centre = left + each / 2 - 1
        value = word if word is not None else in_words(series.value, panel.unit)
        picture.text(centre, y + height / 2 + 4, value, size=22, color="white", anchor="middle", room=each, bold=True)
        picture.text(centre, y + height - 8, name, size=11, color="white", anchor="middle", room=each)


def draw_table(picture: Drawing, panel: Panel, answers: Mapping[str, Sequence[Series]], area: Area) -> None:
    """Draw a line per combination of labels, a column per label and query, and as many lines as fit."""
    x, y, width, height = area
    headings, units = _headings(panel), _units(panel)
    rows = _rows(panel, answers, headings)
    each = width / max(1, len(headings))
    for index, heading in enumerate(headings.values()):
        picture.text(x + index * each, y + 14, heading, size=11, color="faint", bold=True, room=each)
    picture.line([(x, y + _LINE), (x + width, y + _LINE)], "line")
    if not rows:
        picture.text(x, y + 2 * _LINE, panel.defaults.get("noValue", ""), size=12, color="faint")
    room = int(height / _LINE) - 1
    shown = rows if len(rows) <= room else rows[: room - 1]
    for line, row in enumerate(shown, start=2):
        for index, (name, heading) in enumerate(headings.items()):
            value = row.get(name, "")
            words = value if isinstance(value, str) else in_words(value, units.get(heading, panel.unit))
            picture.text(x + index * each, y + line * _LINE - 6, words, size=12, room=each)
    if len(shown) < len(rows):
        picture.text(x, y + height, f"and {len(rows) - len(shown)} more", size=12, color="faint")


def _headings(panel: Panel) -> dict[str, str]:
    """Return the heading of each shown label or value, in order."""
    (organize,) = (each["options"] for each in panel.json["transformations"] if each["id"] == "organize")
    order = organize["indexByName"]
    return {name: organize["renameByName"][name] for name in sorted(order, key=order.__getitem__)}


def _units(panel: Panel) -> dict[str, str]:
    return {
        override["matcher"]["options"]: each["value"]
        for override in panel.json["fieldConfig"]["overrides"]
        for each in override["properties"]
        if each["id"] == "unit"
    }


def _rows(
    panel: Panel, answers: Mapping[str, Sequence[Series]], headings: Mapping[str, str]
) -> list[dict[str, str | float]]:
    rows: dict[tuple[tuple[str, str], ...], dict[str, str | float]] = {}
    for ref_id, series_of_query in answers.items():
        column = "Value" if len(answers) == 1 else f"Value #{ref_id}"
        for series in series_of_query:
            key = tuple(sorted(series.labels.items()))
            rows.setdefault(key, dict(series.labels))[column] = series.value
    (by,) = panel.json["options"]["sortBy"]
    (sorted_by,) = (name for name, heading in headings.items() if heading == by["displayName"])
    return sorted(rows.values(), key=lambda row: (row.get(sorted_by, ""), str(row)), reverse=by["desc"])
