"""Verdicts follow from the numbers, and reports are put together from parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muntin_bench.papers import reproduce
from muntin_bench.papers.claims import Claim, Part, at_least, at_most, claims_table, near
from muntin_bench.report import Section


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (near("F", "w", 100, 124, 1.25), "agrees"),
        (near("F", "w", 100, 81, 1.25), "agrees"),
        (near("F", "w", 100, 126, 1.25), "differs"),
        (near("F", "w", 100, 79, 1.25), "differs"),
        (at_least("F", "w", 2, 2), "agrees"),
        (at_least("F", "w", 2, 1.9), "differs"),
        (at_most("F", "w", 2, 2), "agrees"),
        (at_most("F", "w", 2, 2.1), "differs"),
    ],
)
def test_a_verdict_follows_from_the_numbers(claim: Claim, verdict: str) -> None:
    assert claim.verdict == verdict
    assert claims_table("t", [claim]).rows[0][-1] == verdict


def test_a_report_has_all_parts_and_how_many_claims_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(name: str, holds: bool) -> Callable[[], Part]:
        section = Section(name, ("a",), (("1",),))
        return lambda: Part((section,), (Claim(name, "what", "1", "2", holds),))

    parts = {
        "sharing": {"one": made("one", True), "two": made("two", False)},
        "panes": {"three": made("three", True)},
        "thesis": {"four": made("four", False)},
    }
    monkeypatch.setattr(reproduce, "parts", lambda scale: parts)
    report = reproduce.run(quick=True)
    titles = [section.title for section in report.sections]
    assert [title.split(":")[-1].strip() for title in titles] == [
        "one", "two", "what agrees", "three", "what agrees", "four", "what agrees",
    ]  # fmt: skip
    assert [check.value for check in report.checks] == [50.0, 100.0, 0.0]
    assert report.name == "papers"
    assert "larger" in report.data


@pytest.mark.parametrize("scale", [reproduce.QUICK, reproduce.FULL])
def test_both_scales_cover_every_paper(scale: reproduce.Scale) -> None:
    parts = reproduce.parts(scale)
    assert parts.keys() == reproduce.PAPERS.keys()
    assert sum(map(len, parts.values())) == 18


def test_all_parts_run_at_a_tiny_scale() -> None:
    tiny = reproduce.Scale(
        queries=8, seeds=(0,), trades=3000, rows=2000, rows_per_pane=(5, 20), panes=(2, 5),
        repeats=1, longest=10, counted=(8,), windows=(0, 4, 6), taken=64, ranges=(1, 2),
        answers=64, steps=2000, powers=(4,), slides=(2, 4, 8), planned=10_000, planning=0.05,
        overlap=10, running=0.01, spans=(10, 20), joined=300, intervals=(1, 20),
        scanned=(4, 8), movements=3, tuples=50, registered=8, starts=1,
    )  # fmt: skip
    report = reproduce.report(tiny)
    claims = [
        row for section in report.sections if "agrees" in section.title for row in section.rows
    ]
    assert {row[-1] for row in claims} == {"agrees", "differs"}
    assert len({plot.name for plot in report.plots}) == len(report.plots)
    assert '"papers"' in report.to_json()
