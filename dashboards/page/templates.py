"""HTML renderer of answers. An answer's content is text, never markup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import tostring

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from controller.contract.ids import BrokerId
from dashboards.drawn_map.canvas import NARROW, WIDE, segment
from dashboards.drawn_map.map import Drawn, drawn_map
from dashboards.drawn_timeline.picture import LEFT, RIGHT, WIDTH, drawn, folded_lanes, word_of
from questions.check.state import WORDS, ClusterState, State, states_in_words
from questions.page.history import WINDOWS_SECONDS
from questions.page.impact_map import ImpactMap, Moment
from questions.page.incident_cards import Card
from questions.page.overview import Overview, Rack
from questions.page.recent import Strip
from questions.picture import Beginning
from questions.timeline.events import EntryKind
from questions.timeline.lanes import LaneCondition
from questions.timeline.timeline import Timeline, folded
from transport.printable import printable
from wording.facts import event_since, without_zxid
from wording.sentences import capital, counted, listed
from wording.times import duration, exact_moment, lasting, moment, near, rfc3339

MARKS: Final = {State.AFFECTED: "● ", State.UNKNOWN: "? ", State.DEGRADED: "▲ ", State.WELL: ""}
_TITLE_LENGTH: Final = 60
_LINES_OF_A_REASON: Final = 8  # more clusters of one reason fold into a grid
_LINES_OF_WELL: Final = 5
_LINES_OF_ALL_WELL: Final = 20


class FleetGroup(NamedTuple):
    """Clusters that are alike. Without a title each one has a line of its own."""

    clusters: Sequence[Overview]
    name: str = ""
    title: str = ""
    is_open: bool = True
    is_brief: bool = False


def title_of(state: ClusterState, cluster: str) -> str:
    """Return the title of a cluster's page, with a mark for its state."""
    what = f": {state.reason or state.event}" if state.state is not State.WELL else ""
    name = cluster if len(cluster) <= _TITLE_LENGTH else f"{cluster[:_TITLE_LENGTH]}…"
    return f"{MARKS[state.state]}{name}{what.replace('`', '')}"


def fleet_title(fleet: Sequence[Overview]) -> str:
    """Return the title of the page of all clusters."""
    bad = _bad(fleet)
    if not bad:
        return f"{counted(len(fleet), 'cluster')} · Kontrast"
    return f"{MARKS[bad[0].state.state]}{len(bad)} of {counted(len(fleet), 'cluster')}: {_headline(bad)}"


def fleet_headline(fleet: Sequence[Overview]) -> str:
    """Return the worst cluster and its event, or the clusters that are not known for one reason."""
    bad = _bad(fleet)
    if bad:
        return f"{_headline(bad)}."
    return "The cluster is well." if len(fleet) == 1 else f"All {len(fleet)} clusters are well."


def fleet_counts(fleet: Sequence[Overview]) -> str:
    """Return how many clusters are in each state."""
    return f"{states_in_words([each.state for each in fleet])}."


def fleet_groups(fleet: Sequence[Overview]) -> list[FleetGroup]:
    """Return the clusters by reason where many have one, in the order of their worst. Well ones always fold."""
    reasons = list(map(_reason, fleet))
    alike = Counter(reasons)
    groups: dict[tuple[str, str] | None, list[Overview]] = {}
    for each, reason in zip(fleet, reasons, strict=True):
        is_alike = alike[reason] > _LINES_OF_A_REASON or each.state.state is State.WELL
        groups.setdefault(reason if is_alike else None, []).append(each)
    return [FleetGroup(found) if key is None else _folded(found, fleet) for key, found in groups.items()]


def _folded(alike: Sequence[Overview], fleet: Sequence[Overview]) -> FleetGroup:
    state, reason = alike[0].state, _reason(alike[0])[1]
    if state.state is State.WELL:
        most = _LINES_OF_WELL if len(alike) < len(fleet) else _LINES_OF_ALL_WELL
        title = f"{counted(len(alike), 'cluster', 'is')} well"
        return FleetGroup(alike, "well", title, len(alike) <= most, len(alike) > _LINES_OF_WELL)
    title = f"{counted(len(alike), 'cluster')}: {state.words}, {reason}"
    return FleetGroup(alike, f"{state.words}, {reason}", title, state.state is not State.UNKNOWN, is_brief=True)


def _reason(each: Overview) -> tuple[str, str]:
    """Return the state in words, and the reason by which clusters are alike: the worst alert of the worst incident."""
    alerts = each.incidents[0].alerts if each.incidents else each.own_alerts
    of_alert = alerts[0].alert if alerts else each.state.event
    is_plain = each.state.state in (State.WELL, State.UNKNOWN)
    return each.state.words, each.state.reason if is_plain else of_alert


def _bad(fleet: Sequence[Overview]) -> list[Overview]:
    """Return the clusters that are not well now."""
    return [each for each in fleet if each.state.state is not State.WELL]


def _headline(bad: Sequence[Overview]) -> str:
    first = bad[0].state
    alike = [each for each in bad if first.reason and each.state.reason == first.reason]
    if len(alike) > 1:
        return f"{counted(len(alike), 'cluster', 'is')} not known: {first.reason}"
    return title_of(first, bad[0].cluster).removeprefix(MARKS[first.state]).rstrip(".")


_BROKER: Final = re.compile(r"\b(broker (0|[1-9][0-9]{0,8}))\b")
_CODE: Final = re.compile(r"`([^`<>]{1,80})`")
_UNKEPT: Final = "not kept"


def render(template: str, values: Mapping[str, Any]) -> bytes:
    """Return the page that this template makes of the values."""
    # A text that UTF-8 cannot encode must not cost the whole page.
    return ENVIRONMENT.get_template(template).render(**values).encode("utf-8", "replace")


def _plain(value: Any) -> Any:  # noqa: ANN401 (any expression of a template)
    return printable(value) if type(value) is str else value


def _picture(timeline: Timeline, at_ms: int) -> Markup:
    """Draw the timeline. Its content is text."""
    return Markup(tostring(drawn(timeline, at_ms), encoding="unicode", method="html"))


def _age(ms: int, units: int = 2) -> str:
    return duration(ms // 1000 * 1000, units)


def _clock(ms: int, as_of_ms: int) -> str:
    """Return the time of day without the zone, with the date if it is a day or more from the shown moment."""
    return near(ms, as_of_ms).removesuffix("Z")


def _percent(share: float) -> str:
    """Return a share in percent, which is 100 only if nothing is missing."""
    return "100 %" if share == 1 else f"{int(share * 10_000) / 100:.2f} %"


def _hours_in_words(hours: Sequence[str]) -> str:
    """Return how many hours were in each state."""
    counts = Counter(hours)
    names = {state.value: words for state, words in WORDS.items()} | {"": _UNKEPT}
    return ", ".join(f"{counts[each]} {words}" for each, words in names.items() if counts[each])


@pass_context
def _aged(context: Context, ms: int, as_of_ms: int) -> str:
    """Return the age of a moment. On a page of the present, the browser lets it go on."""
    said = _age(as_of_ms - ms)
    return said if context["at_ms"] is not None else Markup('<time data-since="{}">{}</time>').format(ms, said)


@pass_context
def _since(context: Context, beginning: Beginning, as_of_ms: int) -> str:
    """Return how long something has lasted, with an age that goes on."""
    if beginning.ms is None:
        return lasting(None, as_of_ms)
    least = "" if beginning.exact else "at least "
    return Markup("for {}{}, since {}").format(least, _aged(context, beginning.ms, as_of_ms), moment(beginning.ms))


def _as_text(card: Card, cluster: str) -> Markup:
    """Return the incident as lines for a message: event, effect on clients, and the steps with their commands."""
    steps = [f"{each.step}. {each.says}{f' ({each.command})' if each.command else ''}" for each in card.returns]
    since = "since an unknown time" if card.since.ms is None else f"since {moment(card.since.ms)}"
    event = f"{event_since(card.event, since)}{f': {card.how}' if card.how else ''}"
    lines = [f"{cluster}: {event}.", card.effect, *steps, card.keep_up]
    return _lines(line for line in lines if line)


def _lines(lines: Iterable[str]) -> Markup:
    """Return lines to be copied, as markup, because plain text would lose its line breaks."""
    return Markup("\n").join(map(printable, lines))


def _brokers(brokers: Iterable[BrokerId]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def _rolling_text(batches: Iterable[Iterable[BrokerId]]) -> Markup:
    """Return a line for each batch of brokers, to be copied."""
    return _lines(f"{number}. restart {_brokers(batch)}" for number, batch in enumerate(batches, 1))


def _then(context: Context) -> str:
    """Return the query part of an address for a shown moment in the past."""
    at_ms = context["at_ms"]
    return "" if at_ms is None else f"?at={at_ms}"


@pass_context
def _linked(context: Context, sentence: str, cluster: str) -> Markup:
    """Return the sentence without transactions, with links to brokers' pages at the shown moment."""
    pieces = _BROKER.split(printable(without_zxid(sentence)))
    begin = f"/clusters/{segment(cluster)}/brokers/"
    linked = [_with_code(pieces[0])]
    for words, number, rest in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        link = Markup('<a href="{}">{}</a>').format(begin + number + _then(context), words)
        linked += [link, _with_code(rest)]
    return Markup("").join(linked)


def _with_code(text: str) -> Markup:
    pieces = _CODE.split(text)
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces))


@pass_context
def _partition_named(context: Context, name: str, cluster: str) -> Markup:
    """Return a link to the page of a partition named like orders-7, at the shown moment."""
    topic, _, number = name.rpartition("-")
    page = f"/clusters/{segment(cluster)}/topics/{segment(topic)}/{segment(number)}"
    return Markup('<a href="{}">{}</a>').format(page + _then(context), printable(name))


@pass_context
def _map(
    context: Context,
    impact: ImpactMap,
    cluster: str,
    as_of_ms: int,
    racks: Sequence[Rack] = (),
    strip: Strip | None = None,
) -> Markup:
    """Draw the map for wide and for narrow screens. Its links keep the shown moment."""
    drawn = Drawn(cluster, impact, racks, strip, as_of_ms, f"/clusters/{segment(cluster)}", _then(context))
    return drawn_map(drawn, WIDE) + drawn_map(drawn, NARROW)


@pass_context
def _choice(context: Context, moment: Moment) -> str:
    """Return the address of another moment of the map."""
    at_ms = context["at_ms"]
    return f"?{'' if at_ms is None else f'at={at_ms}&'}map={moment.value}#impact"


ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "html"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
    finalize=_plain,
    auto_reload=False,
)
ENVIRONMENT.filters.update(
    age=_age,
    aged=_aged,
    as_text=_as_text,
    capitalized=capital,
    clock=_clock,
    brokers=_brokers,
    choice=_choice,
    drawn_map=_map,
    brokers_in_words=listed,
    counted=counted,
    event_since=lambda event: event_since(event, "since"),
    exact_time=exact_moment,
    condition_class=word_of,
    folded=folded,
    folded_lanes=folded_lanes,
    fleet_counts=fleet_counts,
    fleet_groups=fleet_groups,
    fleet_headline=fleet_headline,
    fleet_title=fleet_title,
    hours_in_words=_hours_in_words,
    iso=rfc3339,
    number="{:,}".format,
    percent=_percent,
    linked=_linked,
    partition_named=_partition_named,
    picture=_picture,
    segment=segment,
    rolling_text=_rolling_text,
    since=_since,
    time=moment,
    title=title_of,
    with_code=_with_code,
    without_zxid=without_zxid,
)
ENVIRONMENT.globals.update(
    kinds_of_events=tuple(kind.value for kind in EntryKind),
    conditions=tuple((word_of(condition), condition.value) for condition in LaneCondition),
    picture_left=LEFT,
    picture_right=RIGHT,
    picture_width=WIDTH,
    windows_seconds=WINDOWS_SECONDS,
)
