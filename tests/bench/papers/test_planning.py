"""The thesis's figures of planning: operations, times, node costs and estimates."""

from __future__ import annotations

from itertools import chain, combinations
from math import lcm

import pytest

from muntin_bench.papers.thesis import estimated_rates
from muntin_bench.papers.thesis.edge_operations import bitset_operations, f1_operations, figure_34
from muntin_bench.papers.thesis.node_costs import costs, figure_41
from muntin_bench.papers.thesis.plan_times import (
    EXPERIMENTS,
    SIDES,
    Experiment,
    figures_35_to_39,
    planned,
)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_operations_to_count_edges_are_those_done(n: int) -> None:
    slides = range(1, n + 1)
    period = lcm(*slides)
    assert bitset_operations(n) == sum(len(range(0, period, slide)) for slide in slides)
    groups = chain.from_iterable(combinations(slides, size) for size in slides)
    assert f1_operations(n) == sum(map(len, groups))


def test_figure_34_grows() -> None:
    part = figure_34((2, 6, 10, 30))
    assert [claim.verdict for claim in part.claims] == ["agrees", "agrees"]
    assert part.sections[0].rows[-1][-2:] == ("refused", "-")


SMALL = Experiment(
    35, "queries", (5, 20), {"max_slide": 12, "rate": 0.1, "skew": 0.5, "overlap": 10}, (350, 790)
)


def test_small_sets_are_planned_by_all_three() -> None:
    found = planned(SMALL, budget=60.0)
    assert found.keys() == {(side, value) for side in SIDES for value in (5, 20)}
    assert all(seconds is not None for seconds in found.values())


def test_what_takes_too_long_has_no_plan() -> None:
    part = figures_35_to_39(-1.0, (SMALL,))
    rows = {row[0]: row[1:] for row in part.sections[0].rows}
    assert rows["Bit Set"] == rows["F1"] == ("none in -1 s", "none in -1 s")
    assert [claim.verdict for claim in part.claims] == ["differs", "agrees"]


def test_the_experiments_are_those_of_table_5() -> None:
    assert [each.figure for each in EXPERIMENTS] == [35, 36, 37, 38, 39]
    assert EXPERIMENTS[1].fixed["slides"] == "prime"


def test_nodes_of_figure_41_add_up_to_the_total() -> None:
    found = costs("WG_I", 0, merge=True)
    assert found.total == sum(found.nodes)
    assert found.nodes == tuple(sorted(found.nodes, reverse=True))
    assert 1 <= found.imbalance < 1.25


def test_figure_41_has_both_ways() -> None:
    part = figure_41((0,), ("W_TN", "WG_TN", "W_I", "WG_I"))
    assert len(part.sections) == 2
    assert len(part.claims) == 14


def test_estimates_are_compared_in_both_readings() -> None:
    estimated = {"panes": 1.0, "flatfat": 5.0, "flatfit": 10.0}
    measured = {"panes": 200.0, "flatfat": 400.0, "flatfit": 1000.0}
    assert estimated_rates.deviation(estimated, measured) == pytest.approx((1 + 0.2 + 0) / 3)
    assert estimated_rates.distance(estimated, measured) == pytest.approx((0.1 + 0.1 + 0) / 3)


def test_a_plan_takes_longer_with_panes_than_with_a_deque(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        estimated_rates, "_slide_seconds", lambda window, budget: window.window.window
    )
    part = estimated_rates.figures_47_48(0.01, overlap=50)
    for section in part.sections:
        shares = {row[0]: float(row[3]) for row in section.rows}
        assert shares["panes"] < 1
    assert len(part.claims) == 6
