"""Report of all checks on a tree, with findings and impossible checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from migration.preflight import cluster, node_checks, settings, topics
from migration.preflight.check import Check, Fault, Hazard, Patch, written
from migration.preflight.tree import Tree
from wording.said import Said, cut, line

_CLIENT_METRICS: Final = Check(
    Hazard.STICKS,
    name="client-metrics-or-group",
    what="a configuration of client metrics or of a group, made in the dual write",
    shown_by="no znode",
    means="It works until the next KRaft leader, whose sync fails.",
    mend="Create none before the migration is finalized. If one exists, delete it and restart the active controller.",
    source="KRaftMigrationZkWriter.handleConfigsSnapshot (3.9)",
    hindered=lambda _tree: "no znode shows it; ask a broker with kafka-configs.sh",
    since=(3, 7, 0),
)
_WORST_FIRST: Final = (Hazard.KILLS, Hazard.STICKS, Hazard.BLOCKS, Hazard.LOSES, Hazard.ROLLBACK)
_MADE: Final = [each for room in (settings, cluster, topics, node_checks) for each in vars(room).values()]
CHECKS: Final[tuple[Check, ...]] = tuple(
    sorted(
        (_CLIENT_METRICS, *(each for each in _MADE if isinstance(each, Check))),
        key=lambda check: (not check.loses_all, _WORST_FIRST.index(check.outcome)),
    )
)

_ANY_PATCH: Final = 999
_SHOWN: Final = 5  # findings of a check in full
_FAILS_OVER: Final = "delete /controller"
_NAMED: Final = 50  # named znodes of a finding, about half of a large fleet
_MEANINGS: Final = {"loses": "page", "kills": "page", "sticks": "page", "blocks": "warn", "rollback": "warn"}


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check with its findings."""

    check: Check
    findings: tuple[Fault, ...]

    def said(self, word: str) -> Said:
        """Yield the check behind its word, the first findings, and what they mean."""
        check = self.check
        yield line((word, _MEANINGS.get(word, "")), f"  {check.name}: {check.what}")
        for finding in self.findings[:_SHOWN]:
            yield line(f"{cut(finding.znode)}: {cut(finding.detail)}", indent=2)
        if more := self.findings[_SHOWN:]:
            named = ", ".join(finding.znode for finding in more[:_NAMED])
            yield line(f"and {len(more)} more: {cut(named)}{', …' if len(more) > _NAMED else ''}", indent=2)
        yield line(f"means: {check.means}", indent=2)
        yield line(f"do: {check.mend}", indent=2)
        yield line(f"releases: {check.releases}. Source: {check.source}", indent=2)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that was impossible as a whole or for some znodes, with the reason.

    `is_withheld` means that ZooKeeper hid the znodes from this session, or a node did not answer. Otherwise no znode
    shows the fact.
    """

    check: Check
    reason: str
    is_withheld: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All checks, worst first. The report applies to the releases from `oldest` to `newest`."""

    found: tuple[FailedCheck, ...]
    advice: tuple[FailedCheck, ...]
    unchecked: tuple[Unchecked, ...]
    oldest: Patch
    newest: Patch

    @property
    def is_clean(self) -> bool:
        """Return whether all questions were answered without a finding."""
        return not self.found and not any(unchecked.is_withheld for unchecked in self.unchecked)

    def said(self) -> Said:
        """Yield findings, worst first, then advice, impossible checks, the total, and the lifecycle."""
        for found in self.found:
            yield from found.said(found.check.outcome.value)
        for found in self.advice:
            yield from found.said("advice")
        for each in self.unchecked:
            yield line(f"not checked: {each.check.name} ({each.check.what}): {cut(each.reason)}")
        yield line(f"{self._total}, {self._releases}")
        yield line(f"the end of ZooKeeper, as of {AS_OF}:")
        for last in LAST_RELEASES:
            yield line(last.sentence, indent=2)
            yield line(f"source: {' '.join(last.sources)}", indent=4)

    @property
    def _total(self) -> str:
        counts: Counter[str] = Counter()
        for found in self.found:
            counts[found.check.outcome.value] += len(found.findings)
        if counts:
            what = f"found: {', '.join(f'{count} {outcome}' for outcome, count in counts.items())}"
        elif any(unchecked.is_withheld for unchecked in self.unchecked):
            what = "no problem was found in the znodes that were read"
        else:
            what = "no obstacle was found"
        unchecked = f" ({len(self.unchecked)} checks not made, or not of all znodes)" if self.unchecked else ""
        return f"{what}{unchecked}"

    @property
    def _releases(self) -> str:
        if self.oldest == self.newest:
            return f"for release {written(self.oldest)}"
        return f"for releases {written(self.oldest[:2])} to {written(self.newest[:2])}, by the znodes"

    def objects(self) -> Iterator[dict[str, object]]:
        """Yield an object for each finding, advice and impossible check, the releases, and the lifecycle."""
        for kind, of_kind in (("finding", self.found), ("advice", self.advice)):
            for found in of_kind:
                for finding in found.findings:
                    yield _object(kind, found.check, znode=finding.znode, detail=finding.detail)
        for unchecked in self.unchecked:
            yield _object("not-checked", unchecked.check, reason=unchecked.reason, forbidden=unchecked.is_withheld)
        parts = len(self.oldest) if self.oldest == self.newest else 2
        yield {"type": "releases", "oldest": written(self.oldest[:parts]), "newest": written(self.newest[:parts])}
        for last in LAST_RELEASES:
            yield {"type": "lifecycle", "as_of": AS_OF, **last._asdict()}


def _object(kind: str, check: Check, **fields: object) -> dict[str, object]:
    return {
        "type": kind,
        "check": check.name,
        "outcome": check.outcome.value,
        "what": check.what,
        **fields,
        "means": check.means,
        "mend": check.mend,
        "releases": check.releases,
        "source": check.source,
    }


def examine(tree: Tree, release: Patch | None = None) -> Report:
    """Return the report on a tree. Without a release, it covers all releases that write such znodes."""
    first, last = tree.releases()
    oldest, newest = (release, release) if release else ((*first, 0), (*last, _ANY_PATCH))
    found: list[FailedCheck] = []
    unchecked: list[Unchecked] = []
    harm = tree.harm_of_failover
    for each in CHECKS:
        check = replace(each, mend=f"Fail over later. {harm}") if harm and _FAILS_OVER in each.mend else each
        if not check.concerns(oldest, newest):
            continue
        if reason := check.hindered(tree):
            unchecked.append(Unchecked(check, reason))
            continue
        if reason := check.incomplete(tree):
            unchecked.append(Unchecked(check, reason, is_withheld=True))
        forbidden = sorted(path for path in tree.unreadable if _is_needed(path, check))
        if forbidden:
            more = f" and {len(forbidden) - 1} more" if len(forbidden) > 1 else ""
            reason = f"the ACL of {forbidden[0]}{more} denies read access to this session"
            unchecked.append(Unchecked(check, reason, is_withheld=True))
        if findings := () if set(forbidden) & set(check.reads) else tuple(check.find(tree)):
            found.append(FailedCheck(check, findings))
    advice = tuple(one for one in found if one.check.advises)
    return Report(tuple(one for one in found if not one.check.advises), advice, tuple(unchecked), oldest, newest)


def _is_needed(path: str, check: Check) -> bool:
    return any(path == read or path.startswith(f"{read}/") for read in check.reads)


AS_OF: Final = "2026-11"  # when the sources were read


class LastRelease(NamedTuple):
    """Last release of a product with ZooKeeper, the supported path, and the pages that state both."""

    product: str
    release: str
    path: str
    sources: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return the facts for people."""
        return f"{self.product} {self.release} is the last with ZooKeeper. {self.path}"


LAST_RELEASES: Final = (
    LastRelease(
        "Apache Kafka",
        "3.9",
        "Upgrade to 3.9, migrate there, then upgrade to 4.x. 4.0 and later start in KRaft mode only.",
        ("https://kafka.apache.org/40/getting-started/upgrade", "https://kafka.apache.org/43/getting-started/upgrade/"),
    ),
    LastRelease(
        "Confluent Platform",
        "7.9",
        "Migrate on 7.5 to 7.9, then upgrade to 8.x. Do not upgrade and migrate at once. CFK needs 7.6 or later.",
        (
            "https://docs.confluent.io/platform/8.3/installation/migrate-zk-kraft.html",
            "https://docs.confluent.io/operator/current/co-migrate-kraft-overview.html",
        ),
    ),
    LastRelease(
        "Strimzi",
        "0.45",
        "Migrate on 0.45 (0.45.2 is its last patch, with Kafka 3.9.2), then upgrade to 0.46 or later, which cannot "
        "migrate.",
        (
            "https://github.com/strimzi/strimzi-kafka-operator/releases/tag/0.46.0",
            "https://sourceforge.net/projects/strimzi.mirror/files/0.45.2",
        ),
    ),
    LastRelease(
        "Cloudera Runtime",
        "7.3",
        "Upgrade to 7.3.2 and migrate there. No earlier or later release can migrate.",
        ("https://docs.cloudera.com/runtime/7.3.2/public-release-notes/topics/rt-deprecated-kafka.html",),
    ),
)
