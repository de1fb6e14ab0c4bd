"""Requests as questions. Pages and the JSON interface share these answers."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from dashboards.page.interface import parameters
from dashboards.page.newest_pages import PageConfig, PageState
from questions.explain.explanation import Explanation
from questions.explain.subject import NUMBER
from questions.moments import TIMES, read_moment
from questions.page.history import History, recent_lanes
from questions.page.known_clusters import KnownCluster, KnownClusters
from questions.page.overview import Overview
from questions.page.pages import BrokerAnswer, TopicAnswer
from questions.page.search import subject_of
from questions.question import NotFoundError, Question, UnknownClusterError
from questions.timeline.timeline import Timeline

_FIELD: Final = re.compile(r"field `(\w+)`|at `\$\.(\w+)")  # in messages of msgspec
_REFUSALS: Final = (NotFoundError, UnknownClusterError)

Answer = msgspec.Struct | tuple[msgspec.Struct, ...]


class Resources:
    """Asks the question of each path about the followed clusters, or refuses the request."""

    def __init__(self, clusters: KnownClusters, config: PageConfig) -> None:
        self.clusters = clusters
        self._config = config
        self._judged: tuple[object, Overview] | None = None

    def now(self, request: Request) -> KnownCluster:
        """Return the present cluster of the path, which may not exist."""
        return KnownCluster(self.clusters, named(request, "cluster") if "cluster" in request.path_params else "")

    def then(self, request: Request, path: type[Question]) -> KnownCluster:
        """Return the cluster of the path at the nearest kept moment to the requested one."""
        cluster, asked = self.now(request), request.query_params.get("at")
        if asked is None or (path.has_past and not asked.strip()):
            return cluster
        if not path.has_past:
            raise HTTPException(400, "This answer has only the present. Leave out at, or ask the timeline.")
        try:
            return self.clusters.at(cluster.name, _moment_ms(asked.strip()))
        except _REFUSALS as error:
            raise _refused(error, cluster, path) from error

    def answer(self, request: Request, path: type[Question], cluster: KnownCluster) -> Answer:
        """Ask the question of the path."""
        question = _question(request, path)
        try:
            answer: Answer = question.on_page(cluster)
        except _REFUSALS as error:
            raise _refused(error, cluster, path) from error
        return answer

    def shown_cluster(self, cluster: KnownCluster, answer: Answer | str, state: PageState) -> Overview | None:
        """Return the cluster whose state the bar or the icon of the page shows, which is the worst one of all.

        The newest judgement is kept, because viewers of many pages of a cluster request them at the same moment.
        """
        shown = answer.overview if isinstance(answer, History) else answer
        if isinstance(shown, tuple):
            return next((each for each in shown if isinstance(each, Overview)), None)
        if isinstance(shown, Overview):
            return shown
        if not cluster.memory.knows(cluster.name):
            return None
        key, kept = (cluster.name, cluster.at_ms, state), self._judged
        if kept is None or kept[0] != key:
            kept = self._judged = key, cluster.judged()
        return kept[1]


def named(request: Request, part: str) -> str:
    """Return a name from the path."""
    return unquote(request.path_params[part])


def _question(request: Request, path: type[Question]) -> Question:
    """Decode the request. Refuse a wrong value in a sentence about its parameter."""
    values: dict[str, object] = {}
    for each in parameters(path):
        said = [unquote(request.path_params[each.name])] if each.is_in_path else request.query_params.getlist(each.name)
        if each.is_number and not all(map(NUMBER.fullmatch, said)):
            raise HTTPException(400, each.refusal)
        if said and (said[-1] or "enum" not in each.schema):  # a form sends a choice that is open as an empty text
            values[each.field] = said if each.is_several else said[-1]
    try:
        return msgspec.convert(values, path, strict=False)
    except msgspec.ValidationError as error:
        field, refusals = _FIELD.search(str(error)), {each.field: each.refusal for each in parameters(path)}
        raise HTTPException(400, f"{error}." if field is None else refusals[field[1] or field[2]]) from error


def recent(cluster: KnownCluster, answer: Answer | str) -> Timeline | None:
    """Return the last minutes of the subject that the page explains, if anything was wrong."""
    explained = answer.explanation if isinstance(answer, TopicAnswer | BrokerAnswer) else answer
    subject = subject_of(explained.subject) if isinstance(explained, Explanation) else None
    return None if subject is None else recent_lanes(cluster, subject)


def _refused(error: Exception, cluster: KnownCluster, path: type[Question]) -> HTTPException:
    """Return the refusal of a question with its status of HTTP."""
    if isinstance(error, NotFoundError):
        return HTTPException(404, _ended(str(error))) if 404 in path.refuses else HTTPException(400, str(error))
    refusal = f"Cluster {cluster.name}: {error}"
    if cluster.memory.knows(cluster.name):
        return HTTPException(503, _ended(refusal))
    return HTTPException(404, _ended(refusal + cluster.clusters.similar(cluster.name)))


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


def _moment_ms(said: str) -> int:
    """Return the requested time in milliseconds since 1970."""
    try:
        at_ms = read_moment(said).time_ms
    except ValueError:
        at_ms = None
    if at_ms is None:
        raise HTTPException(400, f"at is no moment. Write {TIMES}.")
    return at_ms
