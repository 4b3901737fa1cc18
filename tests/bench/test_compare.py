"""Two reports side by side: what changed beyond the spread, and which promises broke."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from muntin.errors import MuntinError
from muntin_bench.compare import compare, compare_files
from muntin_bench.conditions import Conditions
from muntin_bench.measure import Timing
from muntin_bench.reading import ReportError
from muntin_bench.report import Check, Report


def timed(report: Report, *theirs: float) -> Report:
    """The report with other times of the second side, and in its timings only."""
    ours = Timing("ours", (1.0, 1.1, 0.9)[: len(theirs)])
    return replace(report, timings=(ours, Timing("theirs", theirs)), sections=())


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ((4.1, 4.4, 3.6), "no"),
        ((8.0, 8.4, 7.6), "yes, higher"),
        ((2.0, 2.1, 1.9), "yes, lower"),
        ((8.0,), "unknown, one run"),
    ],
)
def test_a_change_counts_beyond_the_spread(
    tiny: Report, seconds: tuple[float, ...], verdict: str
) -> None:
    found = compare(tiny, timed(tiny, *seconds))
    (change,) = found.changes
    assert change.what == "times: theirs / ours"
    assert change.factor == pytest.approx(seconds[0] / 4)
    assert change.verdict == verdict
    assert not found.worse


@pytest.mark.parametrize(
    ("old", "new", "verdict", "worse"),
    [
        (1.0, 1.9, "kept", False),
        (1.0, 2.1, "broken", True),
        (3.0, 2.1, "still missed", False),
        (3.0, 2.0, "mended", False),
    ],
)
def test_a_promise_that_was_met_may_not_be_missed(
    tiny: Report, old: float, new: float, verdict: str, worse: bool
) -> None:
    before, after = (replace(tiny, checks=(Check("a", 2, value),)) for value in (old, new))
    found = compare(before, after)
    assert [each.verdict for each in found.promises] == [verdict]
    assert found.worse == worse


def test_what_makes_reports_hard_to_compare_is_said(tiny: Report) -> None:
    other = Conditions({"cpu": "a brain"}, {"muntin": "2", "numpy": "3"})
    after = replace(tiny, data="other", checks=tiny.checks[:1], conditions=other)
    assert compare(tiny, after).notes == (
        "the old run was quick, the new one full: promises differ",
        "the machines differ, or their systems do: only ratios can be compared",
        "versions differ: numpy 2 to 3",
        "the data differ: made-up <rows>; other",
        "promises that the new report lacks: broken",
    )
    assert compare(tiny, tiny).notes == ()


def test_a_benchmark_that_fails_is_worse(tiny: Report) -> None:
    failed = Report("local", "", failure="answers differ")
    assert compare(tiny, failed).worse
    with pytest.raises(ReportError, match="has no figures"):
        compare(failed, tiny)


def test_reports_of_different_benchmarks_are_refused(tiny: Report) -> None:
    with pytest.raises(ReportError, match="one report is of local, the other of spark"):
        compare(tiny, replace(tiny, name="spark"))


def test_folders_are_compared_by_what_both_have(tiny: Report, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        replace(tiny, plots=()).save(folder)
    replace(tiny, name="spark", plots=()).save(new)
    assert [each.name for each in compare_files(old, new)] == ["local"]
    (old / "local.json").unlink()
    with pytest.raises(MuntinError, match="no report in common"):
        compare_files(old, new)
