"""Figures of questions: the simulated window of chapter 7, and the report's shared answers."""

from __future__ import annotations

import numpy as np
import pytest

from muntin_bench.papers import isolation, shared_answers
from muntin_bench.papers.shared_answers import drawn, milliseconds, windows_of


def test_figures_of_chapter_7_agree() -> None:
    part = isolation.figures((10, 100), 15)
    assert len(part.sections) == 11
    # A few movements do not tell means apart; what is aborted and how often is told.
    told = [claim for claim in part.claims if claim.where in ("Figure 7.8", "Figure 7.10")]
    assert len(told) == 9
    assert [claim.row for claim in told if not claim.holds] == []
    assert any("aborted" in section.title for section in part.sections)


def test_answers_of_the_report_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    values = drawn("Gaussian", 200)
    assert windows_of(3) == [333, 666, 1000]
    for way in shared_answers.WAYS:
        assert milliseconds(way, values, 4, 5, 1) > 0
    wrong = type("Wrong", (shared_answers._Ordered,), {"answer": lambda self, window: (9e9, 9e9)})
    monkeypatch.setitem(shared_answers.WAYS, "OrderedSharing", wrong)
    with pytest.raises(AssertionError, match="OrderedSharing"):
        milliseconds("OrderedSharing", values, 4, 5, 1)


def test_figures_of_the_report_have_a_line_per_way() -> None:
    part = shared_answers.figures(60, 16, 1)
    assert [section.columns[1:] for section in part.sections] == [tuple(shared_answers.WAYS)] * 4
    assert np.isfinite([float(row[1].replace(",", "")) for row in part.sections[0].rows]).all()
    assert len(part.claims) == 15
