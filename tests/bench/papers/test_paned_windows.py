"""Figure 3 of the panes paper: both sides answer the same, and count what the formulas say."""

from __future__ import annotations

import numpy as np
import pytest

from muntin_bench.papers import paned_windows
from muntin_bench.papers.paned_windows import Ratio, copies, figure_3, ratios, sides


@pytest.mark.parametrize(("rows", "rows_per_pane", "panes"), [(50, 5, 3), (47, 4, 2), (9, 1, 5)])
def test_both_sides_take_the_maximum_of_every_window(
    rows: int, rows_per_pane: int, panes: int
) -> None:
    values = np.random.default_rng(1).random(rows)
    size = rows_per_pane * panes
    ends = range(rows_per_pane, rows + size, rows_per_pane)
    wanted = [values[max(end - size, 0) : end].max() for end in ends if end - size < rows]
    paned, windowed = sides(values, rows_per_pane, panes)
    assert paned()[0].to_pylist() == windowed()[0].to_pylist() == wanted


def test_every_row_is_copied_once_a_window() -> None:
    window, row = copies(10, 2, 3)
    assert np.bincount(row).tolist() == [3] * 10
    assert sorted(set(zip(window.tolist(), row.tolist(), strict=True))) == list(
        zip(window.tolist(), row.tolist(), strict=True)
    )


def test_aggregations_are_as_the_formulas_have_them() -> None:
    (found,) = ratios(4000, (20,), (5,), 1)
    assert found.formula == pytest.approx(0.25)
    assert found.aggregations == pytest.approx(0.25, rel=0.02)
    assert found.seconds > 0


def test_different_answers_fail_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    right = copies

    def wrong(rows: int, rows_per_pane: int, panes: int) -> tuple[object, object]:
        window, row = right(rows, rows_per_pane, panes)
        return window, row[::-1]

    monkeypatch.setattr(paned_windows, "copies", wrong)
    with pytest.raises(AssertionError, match="5 rows per pane, 2 panes per window"):
        list(ratios(100, (5,), (2,), 1))


def test_the_verdicts_come_from_the_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*_: object) -> list[Ratio]:
        return [Ratio(1, 5, 1.5, 1.2), Ratio(20, 5, 0.35, 0.25), Ratio(100, 5, 1.6, 0.2)]

    monkeypatch.setattr(paned_windows, "ratios", found)
    part = figure_3(1000, (1, 20, 100), (5,), 1)
    assert [claim.verdict for claim in part.claims] == ["agrees", "differs", "differs"]
    assert [row[1] for row in part.sections[0].rows] == ["1.500", "0.350", "1.600"]
