"""What a paper says and what was found here, side by side, with a verdict from the numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muntin_bench.report import Plot, Section

COLUMNS = ("where", "what", "paper", "here", "verdict")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper; `holds` is worked out from what was measured here."""

    where: str
    what: str
    theirs: str
    ours: str
    holds: bool

    @property
    def verdict(self) -> str:
        """Whether paper and measurement agree."""
        return "agrees" if self.holds else "differs"

    @property
    def row(self) -> tuple[str, ...]:
        """A line of the table of claims."""
        return self.where, self.what, self.theirs, self.ours, self.verdict


@dataclass(frozen=True)
class Part:
    """One figure or table, or a few that belong together, repeated."""

    sections: tuple[Section, ...]
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...] = ()


def near(
    where: str, what: str, theirs: float, ours: float, within: float, form: str = ",.3g"
) -> Claim:
    """Agrees if one is at most `within` times the other.

    >>> near("Figure 1", "ratio", 2.0, 2.2, within=1.2).verdict
    'agrees'
    >>> near("Figure 1", "ratio", 2.0, 2.5, within=1.2).verdict
    'differs'
    """
    holds = theirs <= ours * within and ours <= theirs * within
    return Claim(where, what, f"{theirs:{form}}", f"{ours:{form}}", holds)


def at_least(where: str, what: str, theirs: float, ours: float, form: str = ",.3g") -> Claim:
    """Agrees if ours reaches theirs.

    >>> at_least("Figure 1", "times faster", 2.0, 9.0).verdict
    'agrees'
    """
    return Claim(where, what, f"{theirs:{form}}", f"{ours:{form}}", ours >= theirs)


def at_most(
    where: str, what: str, theirs: float, ours: float, form: str = ",.3g", slack: float = 1.0
) -> Claim:
    """Agrees if ours stays below theirs, or not further above than the slack allows."""
    return Claim(where, what, f"{theirs:{form}}", f"{ours:{form}}", ours <= theirs * slack)


def claims_table(title: str, claims: Iterable[Claim]) -> Section:
    """All claims about one paper."""
    return Section(title, COLUMNS, tuple(claim.row for claim in claims))
