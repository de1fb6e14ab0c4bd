"""Make every check of a tree, and say what was found and what could not be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.rules.releases import Release
from migration.preflight.check import Check, Finding, Patch
from migration.preflight.checks import CHECKS
from migration.preflight.tree import Tree

_ANY_PATCH: Final = 999


@dataclass(frozen=True, slots=True)
class Found:
    """A check that found something, with all of it."""

    check: Check
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that could not be made, or not of these znodes, and why.

    `is_withheld` where ZooKeeper kept the znodes from this session, or a node did not answer; otherwise no znode shows
    it.
    """

    check: Check
    reason: str
    is_withheld: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All checks, in the table's order: worst first; `oldest` and `newest` are the releases it holds for."""

    found: tuple[Found, ...]
    advice: tuple[Found, ...]
    unchecked: tuple[Unchecked, ...]
    oldest: Patch
    newest: Patch

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found, and all that was asked for was answered."""
        return not self.found and not any(unchecked.is_withheld for unchecked in self.unchecked)


def examine(tree: Tree, release: Patch | None = None, checks: Sequence[Check] = CHECKS) -> Report:
    """The report on a tree; without a release for those that write znodes like these."""
    oldest, newest = (release, release) if release else _patches(*tree.releases())
    found: list[Found] = []
    unchecked: list[Unchecked] = []
    for check in checks:
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
            reason = f"{forbidden[0]}{more} may not be read: the ACL does not let this session in"
            unchecked.append(Unchecked(check, reason, is_withheld=True))
        if findings := () if set(forbidden) & set(check.reads) else tuple(check.find(tree)):
            found.append(Found(check, findings))
    advice = tuple(one for one in found if one.check.advises)
    return Report(tuple(one for one in found if not one.check.advises), advice, tuple(unchecked), oldest, newest)


def _is_needed(path: str, check: Check) -> bool:
    return any(path == read or path.startswith(f"{read}/") for read in check.reads)


def _patches(oldest: Release, newest: Release) -> tuple[Patch, Patch]:
    return (*oldest, 0), (*newest, _ANY_PATCH)
