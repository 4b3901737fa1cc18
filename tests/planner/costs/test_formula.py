"""Ω against counted operations, and costs by hand."""

import gc
import json

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create
from muntin.errors import AggregateError, WindowError
from muntin.planner.costs import machine
from muntin.planner.costs.formula import TECHNIQUES, WindowQuery, omega, plan_cost, tree_cost
from muntin.planner.costs.machine import MachineCosts, TechniqueCosts, machine_costs
from muntin.planner.costs.omega import harmonic, omega_alone

RANGES = [3, 7, 16, 40, 64]


def counted(technique, ranges):
    """Operations and moves along the deque per slide, once the windows are full."""
    name = "max" if technique == "slickdeque_noninv" else "sum"
    window = create(technique, resolve(name, [pa.int64()]), ranges=ranges)
    values = np.random.default_rng(1).integers(0, 2**40, 4000)
    window.run(values[:1000])
    before = window.operations + window.steps
    window.run(values[1000:])
    # Every range is compared with a place on the deque at least once, which is not counted.
    compared = len(ranges) if technique == "slickdeque_noninv" else 0
    return (window.operations + window.steps - before) / 3000 + compared


@pytest.mark.parametrize(
    ("technique", "slack"),
    [
        # Panes of n partials take n - 1 combines, where the formula says n.
        ("panes", 0.06),
        # 3 a range is what the thesis rounds to; it saw 2 to 4, fewer when ranges share jumps.
        ("flatfit", 0.45),
        ("slickdeque_inv", 1e-9),
        ("slickdeque_noninv", 0.2),
    ],
)
def test_omega_is_what_a_technique_counts(technique, slack):
    assert counted(technique, RANGES) == pytest.approx(omega(technique, RANGES, RANGES), rel=slack)


@pytest.mark.parametrize(
    ("partials", "cost"), [(1, 0.0), (2, 0.5), (3, 2.0), (4, 1.75), (5, 3.0), (16, 3.9375)]
)
def test_flatfat_by_its_formula(partials, cost):
    assert omega("flatfat", [partials], [partials]) == cost


def test_slickdeque_inv_pays_twice_per_distinct_window():
    assert omega("slickdeque_inv", [3, 3, 5, 5, 9], [1] * 5) == 6


def test_the_deque_is_as_long_as_the_harmonic_number():
    assert harmonic(64) == pytest.approx(4.74, abs=0.005)
    assert harmonic(10_000) == pytest.approx(sum(1 / i for i in range(1, 10_001)), rel=1e-12)
    assert omega("slickdeque_noninv", [64, 8], [64, 8]) == pytest.approx(
        2 - 2 / 64 + 2 + float(harmonic(64))
    )


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_alone_is_a_tree_of_one(technique):
    partials, overlaps = [1, 2.4, 7, 300], [1, 2, 7, 90]
    alone = [omega(technique, [p], [o]) for p, o in zip(partials, overlaps, strict=True)]
    assert omega_alone(technique, partials, overlaps).tolist() == pytest.approx(alone)


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_no_queries_take_no_operations(technique):
    assert omega(technique, [], []) == 0


def test_a_tree_by_hand():
    # Example 2 of the thesis: slides 2 and 4, ranges 6 and 8; an edge every 2 units.
    tree = [WindowQuery(6, 2), WindowQuery(8, 4)]
    cost = tree_cost(tree, rate=3, technique="panes")
    assert (cost.partial, cost.edges, cost.omega) == (3, 0.5, 5)
    assert cost.total == 3 + 0.5 * 5
    # 1.5 edges a slide of 5: (5, 0) and (5, 3) of range 7, shared with (10, 0).
    fragments = tree_cost([WindowQuery(7, 5), WindowQuery(10, 10)], rate=1, technique="flatfit")
    assert (fragments.edges, fragments.omega) == (0.4, 6)


def test_equal_windows_are_answered_once_in_a_tree_and_twice_in_a_plan():
    one, twin = WindowQuery(6, 2, name="a"), WindowQuery(6, 2, phase=4, name="b")
    shared = tree_cost([one, twin], 1, "panes")
    assert shared == tree_cost([one], 1, "panes")
    assert plan_cost([[one], [twin]], 1, "panes") == 2 * shared.total


def test_what_cannot_be_is_refused():
    with pytest.raises(WindowError, match="slide 0"):
        WindowQuery(3, 0)
    with pytest.raises(WindowError, match="rate must be 0 or more, not nan"):
        tree_cost([WindowQuery(3, 1)], float("nan"), "panes")
    with pytest.raises(AggregateError, match="did you mean flatfat"):
        omega("flatfatt", [1], [1])


def test_measured_costs_are_kept_and_bad_files_measured_anew(tmp_path, monkeypatch):
    measured = MachineCosts(1e-9, dict.fromkeys(TECHNIQUES, TechniqueCosts(2e-9, 3e-9, 0.0)))
    calls = []
    monkeypatch.setattr(machine, "calibrate", lambda: calls.append(1) or measured)
    folder = tmp_path / "cache"
    assert machine_costs(folder) == measured
    assert machine_costs(folder) == measured
    assert len(calls) == 1
    kept = folder / machine.FILE
    for bad in ("", "[]", json.dumps({"format": 0}), kept.read_text().replace("1e-09", "-1")):
        kept.write_text(bad)
        assert machine_costs(folder) == measured
    assert len(calls) == 5
    assert [path.name for path in folder.iterdir()] == [machine.FILE]
    assert machine_costs(None) == measured


def test_calibration_finds_times(monkeypatch):
    monkeypatch.setattr(machine, "REPEATS", 1)
    monkeypatch.setattr(machine, "PARTIALS", 512)
    monkeypatch.setattr(machine, "ROWS", 2**13)
    found = machine.calibrate()
    assert found.row > 0
    assert tuple(found.techniques) == TECHNIQUES
    for costs in found.techniques.values():
        assert min(costs.edge, costs.operation, costs.answer) >= 0
        assert costs.seconds(edges=1.0, omega_=4.0, queries=1) > 0


def test_constants_explain_what_the_trials_took():
    seconds = {machine.ROW_TRIAL: 4e-9 * machine.ROWS}
    for number, technique in enumerate(TECHNIQUES):
        for ranges in machine.RANGES:
            each = 3 + number + 2 * omega(technique, ranges, ranges)
            seconds[technique, ranges] = 1e-9 * each * machine.PARTIALS
    found = machine.costs_of(seconds)
    assert found.row == pytest.approx(4e-9)
    for number, (technique, costs) in enumerate(found.techniques.items()):
        each = costs.edge + costs.operation * omega(technique, [7], [7]) + costs.answer
        assert each == pytest.approx(1e-9 * (3 + number + 2 * omega(technique, [7], [7])))


def test_works_take_turns_and_collecting_goes_on():
    ran = []
    works = {name: lambda name=name: ran.append((name, gc.isenabled())) for name in "ab"}
    assert set(machine.warm_seconds(works, repeats=2)) == {"a", "b"}
    assert "".join(name for name, _ in ran) == "ab" + "aabb" + "bbaa"
    assert not any(enabled for _, enabled in ran[2:])
    assert gc.isenabled()


def test_collecting_goes_on_after_work_that_fails():
    calls = []

    def work():
        calls.append(1)
        if len(calls) > 1:
            raise ValueError("twice")

    with pytest.raises(ValueError, match="twice"):
        machine.warm_seconds({"a": work}, repeats=1)
    assert gc.isenabled()


def test_costs_are_fitted_and_never_below_zero():
    assert machine.fitted([[1, 2], [1, 4], [3, 1]], [5.0, 9.0, 5.0]) == pytest.approx([1, 2])
    assert machine.fitted([[1, 1], [1, 2], [1, 3]], [3.0, 2.0, 1.0])[1] == 0
