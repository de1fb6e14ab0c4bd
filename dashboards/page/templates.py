"""Renders answers as HTML; whatever an answer says is text, never markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from xml.etree.ElementTree import tostring

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from controller.contract.alert_row import Severity
from controller.contract.records import LATEST_MS
from dashboards.drawn_timeline.picture import drawn, word_of
from dashboards.page.history import WINDOWS_SECONDS
from dashboards.page.hypothetical import first_of
from questions.check import Health
from questions.picture import Beginning
from questions.timeline.lanes import Condition
from questions.timeline.timeline import Timeline
from transport.printable import printable
from wording.sentences import counted

_BROKER: Final = re.compile(r"\b(broker (0|[1-9][0-9]{0,8}))\b")
_VERDICTS: Final = {
    Severity.PAGE: "Clients are affected, or will be: act now",
    Severity.WARN: "Something needs a person, but not at once",
}


def render(template: str, values: Mapping[str, Any]) -> bytes:
    """The page that this template makes of the values."""
    # Lone surrogates, which a znode's escapes can have, are no UTF-8.
    return _ENVIRONMENT.get_template(template).render(**values).encode("utf-8", "replace")


def _plain(value: Any) -> Any:  # noqa: ANN401 (any expression of a template)
    return printable(value) if type(value) is str else value


def time_in_words(ms: int) -> str:
    """The moment to the second, in UTC."""
    moment = datetime.fromtimestamp(min(max(ms, 0), LATEST_MS) / 1000, timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def _exact_time(ms: int) -> str:
    return f"{time_in_words(ms)[:-1]}.{ms % 1000:03}Z"


def _picture(timeline: Timeline, at_ms: int) -> Markup:
    """The timeline drawn; whatever is said in it is text."""
    return Markup(tostring(drawn(timeline, at_ms), encoding="unicode", method="html"))


def _age(ms: int) -> str:
    left = max(0, ms // 1000)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts or unit == "s":
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def _since(moment: Beginning, as_of_ms: int) -> str:
    if moment.ms is None:
        return "since an unknown time"
    lasted = _age(as_of_ms - moment.ms)
    return f"for {lasted if moment.exact else f'at least {lasted}'}, since {time_in_words(moment.ms)}"


def _verdict(health: Health) -> str:
    if health.worst in _VERDICTS:
        return _VERDICTS[health.worst]
    return "Well" if health.is_well else "Not known to be well"


def _level(health: Health) -> str:
    if health.worst in _VERDICTS:
        return health.worst.value
    return "ok" if health.is_well else "unknown"


def _brokers(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def segment(text: str) -> str:
    """The text as one part of a path."""
    return quote(text.encode("utf-8", "replace"), safe="")


def _then(context: Context) -> str:
    """What an address needs to be of the moment that is shown, nothing where that is the present."""
    at_ms = context["at_ms"]
    return "" if at_ms is None else f"?at={at_ms}"


@pass_context
def _linked(context: Context, sentence: str, cluster: str) -> Markup:
    """The sentence, in which each broker is a link to its page, as of the moment that is shown."""
    pieces = _BROKER.split(printable(sentence))
    begin = f"/clusters/{segment(cluster)}/brokers/"
    linked = [Markup(escape(pieces[0]))]
    for words, number, rest in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        linked.append(Markup('<a href="{}">{}</a>{}').format(begin + number + _then(context), words, rest))
    return Markup("").join(linked)


@pass_context
def _partition_named(context: Context, name: str, cluster: str) -> Markup:
    """The partition that is named like orders-7, as a link to its page as of the moment that is shown."""
    topic, _, number = name.rpartition("-")
    page = f"/clusters/{segment(cluster)}/topics/{segment(topic)}/{segment(number)}"
    return Markup('<a href="{}">{}</a>').format(page + _then(context), printable(name))


_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "html"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_plain,
    auto_reload=False,
)
_ENVIRONMENT.filters.update(
    age=_age,
    brokers=_brokers,
    counted=counted,
    exact_time=_exact_time,
    named_first=first_of,
    level=_level,
    linked=_linked,
    partition_named=_partition_named,
    picture=_picture,
    segment=segment,
    since=_since,
    time=time_in_words,
    verdict=_verdict,
)
_ENVIRONMENT.globals.update(
    conditions=tuple((word_of(condition), condition.value) for condition in Condition),
    windows_seconds=WINDOWS_SECONDS,
)
