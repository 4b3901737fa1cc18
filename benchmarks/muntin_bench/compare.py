"""Two reports of the same benchmark side by side: what changed, and by more than the spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from muntin.errors import MuntinError
from muntin_bench.measure import Ratio
from muntin_bench.reading import ReportError, read_report
from muntin_bench.report import Check, Report, Section


@dataclass(frozen=True)
class Change:
    """A ratio in the old and in the new report, and whether their ranges are apart."""

    what: str
    old: Ratio
    new: Ratio

    @property
    def factor(self) -> float:
        """The new ratio over the old one."""
        return self.new.value / self.old.value if self.old.value else float("inf")

    @property
    def verdict(self) -> str:
        """Higher or lower, if by more than the runs differ among themselves."""
        if not (self.old.ranged and self.new.ranged):
            return "unknown, one run"
        if not self.new.apart(self.old):
            return "no"
        return "yes, higher" if self.factor > 1 else "yes, lower"


@dataclass(frozen=True)
class Kept:
    """A promise in both reports; a value of one run has no range."""

    promise: str
    old: Check
    new: Check

    @property
    def broken(self) -> bool:
        """Whether it was met and is missed."""
        return self.old.met and not self.new.met

    @property
    def verdict(self) -> str:
        """What became of it."""
        if self.broken:
            return "broken"
        return ("kept" if self.old.met else "mended") if self.new.met else "still missed"


@dataclass(frozen=True)
class Comparison:
    """What became of one benchmark's ratios and promises, and what to bear in mind."""

    name: str
    changes: tuple[Change, ...]
    promises: tuple[Kept, ...]
    notes: tuple[str, ...]
    failure: str | None

    @property
    def worse(self) -> bool:
        """Whether a promise broke, or the benchmark fails."""
        return self.failure is not None or any(each.broken for each in self.promises)

    def tables(self) -> Iterator[Section]:
        """For people."""
        if self.changes:
            columns = ("ratio", "old", "new", "new / old", "beyond the spread")
            rows = tuple(
                (each.what, str(each.old), str(each.new), f"{each.factor:.2f}", each.verdict)
                for each in self.changes
            )
            yield Section("ratios of medians (range of the turns)", columns, rows)
        if self.promises:
            rows = tuple(
                (each.promise, each.new.bound, each.old.measured, each.new.measured, each.verdict)
                for each in self.promises
            )
            yield Section("promises", ("promise", "limit", "old", "new", ""), rows)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "name": self.name,
            "worse": self.worse,
            "failure": self.failure,
            "notes": list(self.notes),
            "changes": [
                {**asdict(each), "factor": each.factor, "verdict": each.verdict}
                for each in self.changes
            ],
            "promises": [{**asdict(each), "verdict": each.verdict} for each in self.promises],
        }


def compare_files(old: Path, new: Path) -> list[Comparison]:
    """Compare two reports, or all reports that two folders both have."""
    if old.is_dir() and new.is_dir():
        names = sorted(_names(old) & _names(new))
        if not names:
            raise MuntinError(
                f"{old} and {new} have no report in common",
                hint="give two folders that muntin bench wrote to, or two of their NAME.json",
            )
        return [compare_files(old / name, new / name)[0] for name in names]
    return [compare(read_report(old), read_report(new))]


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.json")}


def compare(old: Report, new: Report) -> Comparison:
    """Compare two reports of one benchmark."""
    if old.name != new.name:
        raise ReportError(
            f"one report is of {old.name}, the other of {new.name}",
            hint="compare two reports of the same benchmark",
        )
    if old.failure is not None:
        raise ReportError(
            f"the old report of {old.name} has no figures: the benchmark failed",
            hint="compare with a report of a run that ended well",
        )
    before, after = dict(_ratios(old)), dict(_ratios(new))
    changes = [Change(what, before[what], after[what]) for what in before if what in after]
    promised = {check.promise: check for check in new.checks}
    kept = [
        Kept(check.promise, check, promised[check.promise])
        for check in old.checks
        if check.promise in promised
    ]
    return Comparison(old.name, tuple(changes), tuple(kept), tuple(_notes(old, new)), new.failure)


def _ratios(report: Report) -> Iterator[tuple[str, Ratio]]:
    """All ratios by what they are of: the others of a group to its first side."""
    for section in report.tables:
        for group in section.timed:
            base = group[0]
            for timing in group[1:]:
                yield f"{section.title}: {timing.side} / {base.side}", timing.over(base)


def _notes(old: Report, new: Report) -> Iterator[str]:
    """Why the two may differ for other reasons than the code, and what cannot be compared."""
    before, after = old.conditions, new.conditions
    if before is not None and after is not None:
        if before.quick != after.quick:
            yield f"the old run was {before.size}, the new one {after.size}: promises differ"
        if before.machine != after.machine:
            yield "the machines differ, or their systems do: only ratios can be compared"
        moved = [
            f"{name} {each} to {after.versions[name]}"
            for name, each in before.versions.items()
            if name != "muntin" and after.versions.get(name, each) != each
        ]
        if moved:
            yield f"versions differ: {', '.join(moved)}"
    if old.data != new.data:
        yield f"the data differ: {old.data}; {new.data}"
    yield from _missing(old.checks, new.checks, "new")
    yield from _missing(new.checks, old.checks, "old")


def _missing(some: Sequence[Check], others: Sequence[Check], which: str) -> Iterator[str]:
    known = {check.promise for check in others}
    gone = [check.promise for check in some if check.promise not in known]
    if gone:
        yield f"promises that the {which} report lacks: {'; '.join(gone)}"
