"""Figures 4 and 10: costs by formula, on rates and fragments that are counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest

from muntin.planner.costs.formula import WindowQuery
from muntin.planner.edges.counts import edge_rate
from muntin_bench.papers.shared_fragments import PAPER, counted, figure_10
from muntin_bench.papers.shared_slices import Costs, costs, crossing, figure_4
from muntin_bench.sharing.data import hour
from muntin_bench.sharing.rows import columns_of
from muntin_bench.sharing.workloads import windows, workload


def test_one_query_costs_two_slices_a_slide() -> None:
    (only,) = costs([(750, 500)])
    assert only.unshared == 3 / 500
    assert only.shared == pytest.approx(2 / 500 * 1.5, rel=0.1)
    assert only.totals(10.0) == (10.0 + only.unshared, 10.0 + only.shared)


def test_sampled_edges_are_near_those_counted() -> None:
    drawn = list(islice(windows(3), 5))
    found = costs(drawn)[-1]
    classes = {each for window in drawn for each in WindowQuery(*window).classes}
    exact = float(edge_rate(classes)) * sum(range_ / slide for range_, slide in drawn)
    assert found.shared == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize(
    ("shared", "first"), [((1, 1, 1), 4), ((1, 9, 1), 4), ((1, 9, 9), 2), ((9, 9, 9), 1)]
)
def test_the_crossing_is_where_sharing_starts_to_cost_more(
    shared: Sequence[float], first: int
) -> None:
    found = [Costs(n, 2.0, each) for n, each in enumerate(shared, start=1)]
    assert crossing(found, rate=0.0) == first


def test_figure_4_differs_as_printed_and_agrees_per_millisecond() -> None:
    part = figure_4(160, (0,))
    assert [claim.verdict for claim in part.claims] == ["agrees", "differs", "agrees"]
    assert part.sections[0].columns[-1] == "128"
    assert len(part.plots[0].lines) == 6


def test_fragments_are_those_of_plain_sets() -> None:
    market, work = hour(3000, 40), workload("B", 12)
    columns = columns_of(market)
    rows = [query.predicate.holds(columns) for query in work.queries if query.predicate]
    periods = columns["ts"] // 600_000_000
    found = counted(work, columns)
    assert len(found) == len(np.unique(periods))
    for period, each in zip(np.unique(periods), found, strict=True):
        chosen = np.flatnonzero(periods == period)
        held = [frozenset(k for k, row in enumerate(rows) if row[i]) for i in chosen]
        kept = [signature for signature in held if signature]
        assert (each.tuples, each.count) == (len(kept), len(set(kept)))
        assert each.alpha == pytest.approx(np.mean([len(one) for one in kept]))
        assert each.beta == pytest.approx(np.mean([len(one) for one in set(kept)]))


def test_the_papers_numbers_make_its_figure() -> None:
    assert PAPER.shared == 189_445 + 12_068 * 76
    assert round(PAPER.unshared / PAPER.shared, 1) == 13.0
    assert 0.98 < PAPER.even / PAPER.tuples < 1


def test_figure_10_counts_with_the_engine() -> None:
    part = figure_10(5000, 16)
    formula, engine = part.claims[2:]
    assert formula.ours == engine.ours
    assert len(part.sections[0].rows) == 7
