"""The optimizer's benchmark, on little: every part is whole, and what it compares is equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from muntin.engine import LocalEngine
from muntin.planner import build_plan
from muntin.planner.costs.formula import TECHNIQUES
from muntin.planner.costs.machine import RANGES, MachineCosts, TechniqueCosts
from muntin.planner.edges import f1
from muntin.queries import queries
from muntin_bench.optimizer import (
    edges,
    engine,
    estimates,
    figures,
    planning,
    runs,
)
from muntin_bench.optimizer.edges import EXPERIMENTS
from muntin_bench.optimizer.figures import FIGURES, Figure
from muntin_bench.optimizer.fit import deviation
from muntin_bench.optimizer.planning import Large
from muntin_bench.optimizer.runs import SIDES, TRIALS, WORK, EngineLoad, Run
from muntin_bench.report import Report, Section

LOAD = EngineLoad("two", "sum", ((14, 7), (22, 11)), 2.0)


def check_whole(sections: list[Section]) -> None:
    for section in sections:
        assert section.rows, section.title
        assert {len(row) for row in section.rows} == {len(section.columns)}, section.title


def test_edges_are_counted_by_all_methods_and_refused_counts_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f1, "F1_LIMIT", 1000)
    sections = edges.edge_sections((2, 20), (0,))
    check_whole(sections)
    assert len(sections) == len(EXPERIMENTS) + 1
    two, twenty = sections[0].rows
    assert "-" not in two
    assert twenty[1] == twenty[2] == "-"
    assert twenty[3] != "-"


def test_methods_that_count_differently_fail_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "edge_count", lambda _, method: len(method))
    with pytest.raises(AssertionError, match="edges"):
        edges.edge_sections((2,), (0,))


def test_trees_have_as_many_slides_as_asked_for() -> None:
    for experiment in EXPERIMENTS:
        (classes,) = edges.trees(experiment, 5, [3])
        assert len(set(classes)) == 5


def test_panes_cost_more_the_longer_windows_overlap() -> None:
    assert [figure.number for figure in FIGURES] == [42, 43, 44, 45, 46]
    overlaps = Figure(44, "overlap", (100, 1000), 1.0)
    sections, (check,), plots = figures.figure_sections((0,), (overlaps,))
    check_whole(sections)
    assert len(sections[0].rows) == 2 * len(TECHNIQUES)
    assert [plot.name for plot in plots] == ["figure-44-weaveshare", "figure-44-triweave"]
    costs = figures.costs_of(overlaps, (0,))
    assert costs["WeaveShare", "panes", 1000] > 5 * costs["WeaveShare", "panes", 100]
    assert 20 < check.value < check.limit


def test_a_skew_below_zero_can_be_drawn(tmp_path: Path) -> None:
    skew = Figure(46, "skew", (-1, 1), 1.0)
    *_, plots = figures.figure_sections((0,), (skew,))
    assert [x for x, _ in plots[0].lines["panes"]] == [0.5, 2.0]
    written = Report("optimizer", "little", plots=tuple(plots)).save(tmp_path)
    assert len(written) == 3


def test_planning_is_timed() -> None:
    section, checks = planning.planning_section((Large(100, 1000), Large(50, 100_000)))
    check_whole([section])
    assert [check.limit for check in checks] == [60, 60]
    assert sum(each.queries for each in planning.FULL) == 1_010_000


def test_higher_rates_leave_fewer_trees_as_in_the_thesis() -> None:
    section = planning.trees_section((0,))
    check_whole([section])
    ours, thesis = ([float(row[place]) for row in section.rows] for place in (1, 2))
    assert ours == sorted(ours, reverse=True)
    assert ours[-1] == thesis[-1] == 1
    assert all(each / 2 <= count <= each * 2 for count, each in zip(ours, thesis, strict=True))


def test_estimates_stand_beside_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = MachineCosts(5e-9, dict.fromkeys(TECHNIQUES, TechniqueCosts(1e-8, 1e-9, 1e-9)))
    monkeypatch.setattr(estimates, "trials", lambda: {("row", ()): list})
    monkeypatch.setattr(estimates, "costs_of", lambda seconds: costs if len(seconds) == 1 else None)
    monkeypatch.setattr(estimates, "TECHNIQUES", ("panes", "slickdeque_noninv"))
    sections, (check,) = estimates.estimate_sections(2000, 1)
    check_whole(sections)
    assert len(sections[0].rows) == 2 * len(estimates.LOADS)
    assert [row[0] for row in sections[1].rows] == ["panes", "slickdeque_noninv"]
    assert (check.limit, check.value > 0) == (22, True)


def test_no_load_is_among_the_trials() -> None:
    trials = {tuple(sorted(ranges)) for ranges in RANGES}
    for case, plan in estimates._plans().items():
        queries = estimates.LOADS[case[0]][1]
        for tree, cost in zip(plan.trees, plan.costs, strict=True):
            ranges = {round(cost.edges * queries[each].range) for each in tree}
            assert tuple(sorted(ranges)) not in trials


def test_batches_hold_all_slices_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "PARTIALS", 100)
    (name, (rate, queries)), *_ = estimates.LOADS.items()
    plan = estimates._plans()[name, "slickdeque_inv"]
    works = estimates._prepared(plan, queries, 4000)
    assert len(plan.trees) == 1
    assert sum(len(rows) for work in works[::2] for (rows,) in [work.args[1]]) == 4000 * rate
    assert sum(len(work.args[0]) for work in works[1::2]) == 4000 * plan.costs[0].edges


def test_throughputs_half_and_twice_as_high_deviate() -> None:
    assert deviation([2.0, 0.5], [1.0, 1.0]) == pytest.approx((0.5 + 1.0) / 2)


@pytest.mark.parametrize("strategy", ["cells", "unshared"])
def test_work_is_estimated_near_what_the_engine_does(strategy: str) -> None:
    table = runs.stream(4000, LOAD.rate)
    plan = build_plan(queries(LOAD.sql), table.schema, "ts", strategy=strategy)  # type: ignore[arg-type]
    work = dict(zip(WORK, runs.work(plan, LOAD, 4000), strict=True))
    local = LocalEngine(plan)
    local.feed(table)
    slices = local.progress().slices
    windows = sum(result.num_rows for result in local.close().values())
    assert work["row into a tree"] == local.progress().partial_aggregations
    assert work["slice that holds rows"] == pytest.approx(slices, rel=0.05)
    assert work["window"] == pytest.approx(windows, rel=0.02)


def test_runs_of_known_costs_are_foretold() -> None:
    costs = (1e-3, 2e-4, 1e-8, 3e-8, 5e-9, 1e-7)
    known = [
        Run(load, side, 1, work, sum(a * b for a, b in zip(work, costs, strict=True)))
        for number, load in enumerate(runs.engine_loads())
        for side in SIDES
        for work in [tuple((number * 7 + 3) ** k % 101 + len(side) * 10**k for k in range(6))]
    ]
    foretold = engine.estimates(known)
    assert foretold == pytest.approx([run.seconds for run in known], rel=1e-3)


def test_plans_of_the_engine_are_compared() -> None:
    coarse = tuple((8 * overlap, 8) for overlap in range(2, 12))
    fine = EngineLoad("fine", "max", ((2, 1), *coarse), 0.5)
    loads = [LOAD, replace(LOAD, rate=1.0), fine, replace(fine, rate=2.0)]
    sections, checks = engine.engine_sections(loads, 400, 1)
    check_whole(sections)
    assert [row[0] for row in sections[2].rows] == [str(steps) for steps in TRIALS]
    assert [check.limit for check in checks] == [1.15, 1.05, 22]
