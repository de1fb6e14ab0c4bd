"""An explanation with the verdict, the facts and their certainty, the causes, and the alerts."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from cli.printing.answers import line, severity_word, since
from cli.printing.tables import table_of
from questions.explain.explanation import Cause, Certainty, Explanation
from questions.key import KeyAnswer
from wording.times import exact_moment

_SURE = {certainty: "" if certainty is Certainty.SEEN else f"  [{certainty.value}]" for certainty in Certainty}


def explanation_lines(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield the explanation, on a screen."""
    verdict = severity_word("ok" if explanation.is_well else "page")[1]
    yield line(f"{explanation.subject}: ", (explanation.headline, verdict))
    if explanation.since is not None:
        yield line(f"{since(explanation.since, explanation.as_of_ms)}", indent=2)
    yield line("")
    rows = [(said.about, f"{said.says}{_SURE[said.certainty]}") for said in explanation.statements]
    yield table_of(("what", "is known, as of " + exact_moment(explanation.as_of_ms)), rows)
    if explanation.causes:
        yield line("")
        yield line("how it came about:")
        for cause in explanation.causes:
            yield from _cause(cause)
    if explanation.findings:
        yield line("")
        for finding in explanation.findings:
            yield line(severity_word(finding.severity.value), f"  {finding.alert}: {finding.cause}")
            if finding.action:
                yield line(f"do: {finding.action}", indent=6)


def _cause(cause: Cause) -> Iterator[RenderableType]:
    sure = f"  [inferred: {cause.rule}]" if cause.rule else _SURE[cause.certainty]
    yield line(f"{exact_moment(cause.time_ms)}  {cause.zxid:#x}  {cause.says}{sure}", indent=2)
    yield line(cause.event, indent=6)


def key_lines(answer: KeyAnswer) -> Iterator[RenderableType]:
    """Yield where the key goes, and whether a producer can write it there."""
    yield line(f"the key goes to {answer.topic}-{answer.partition}, one of {answer.partitions} partitions")
    yield line(f"leader: {'none' if answer.leader is None else f'broker {answer.leader}'}", indent=2)
    for acks, accepted in (("1", answer.takes_acks_1), ("all", answer.takes_acks_all)):
        word, colour = ("accepted", severity_word("ok")[1]) if accepted else ("refused", severity_word("page")[1])
        yield line(f"acks={acks}: ", (word, colour), indent=2)
    if answer.reason is not None:
        yield line(answer.reason, indent=2)
