"""Counters and registers that move on from window to window, against each window by itself."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.holistic import (
    register_windows,
    rows,
    sliding,
    value_windows,
)
from muntin.aggregates.columns.holistic.registers import RegisterColumn
from muntin.aggregates.columns.holistic.rows import Ranges
from muntin.aggregates.columns.holistic.runs import RunColumn


def drawn(seed, distinct=300, many=900, cells=60):
    """Values in cells, and cells rolled up from ranges of these, with windows over them.

    Windows go forward, as those of a query do, jump back, and some are empty.
    """
    rng = np.random.default_rng(seed)
    array = pa.array(rng.zipf(1.2, many) % distinct)
    owners = np.sort(rng.integers(0, cells, many))
    firsts, starts, ends, held = [0], [], [], []
    for _ in range(25):
        some = sorted(rng.choice(cells, 4, replace=False).tolist())
        ranges = [(some[0], some[1]), (some[2], some[3])][: int(rng.integers(0, 3))]
        starts += [low for low, _ in ranges]
        ends += [high for _, high in ranges]
        firsts.append(len(starts))
        kept = np.zeros(many, np.int64)
        for low, high in ranges:
            kept += (owners >= low) & (owners < high)
        held.append(array.filter(pa.array(kept > 0)).to_pylist())
    lows = np.concatenate([np.arange(20), np.arange(10), rng.integers(0, 25, 30)])
    highs = np.minimum(lows + np.concatenate([np.full(30, 4), rng.integers(0, 9, 30)]), 25)
    members = np.repeat(np.arange(25), np.diff(firsts))
    rolled = np.array(starts), np.array(ends), members, 25
    wanted = [sum(held[low:high], []) for low, high in zip(lows, highs, strict=True)]  # noqa: RUF017
    return array, owners, cells, rolled, lows, highs, wanted


def windowed(kind, array, owners, cells, rolled, lows, highs, column_type=RunColumn):
    column = column_type.empty(Part(kind, (array.type,)), cells)
    column.update(owners, (array,))
    return column.roll_up(*rolled).sliding(1)(lows, highs)


@pytest.mark.parametrize("moved", [0, 1 << 40])
@pytest.mark.parametrize("seed", range(3))
def test_values_of_rolled_up_cells(seed, moved, monkeypatch):
    # Counters that cost nothing are always moved on, those that cost a lot never are.
    monkeypatch.setattr(value_windows, "_MOVED", moved)
    if not moved:
        monkeypatch.setattr(sliding, "select_steps", lambda size: 0)
        monkeypatch.setattr(sliding, "heaviest_steps", lambda size, most: 0)
    array, owners, cells, rolled, lows, highs, held = drawn(seed)
    slid = windowed("runs", array, owners, cells, rolled, lows, highs)
    tops = resolve("top_k", [array.type], [4]).lower([slid]).values.to_pylist()
    often = resolve("frequent", [array.type], [0.05]).lower([slid]).values.to_pylist()
    middles = resolve("percentile_disc", [array.type], [(0.0, 0.5, 1.0)]).lower([slid]).values
    for own, top, most, middle in zip(held, tops, often, middles.to_pylist(), strict=True):
        best = sorted(Counter(own).items(), key=lambda item: (-item[1], item[0]))
        assert [(item["value"], item["count"]) for item in top] == best[:4]
        wanted = [item for item in best if 20 * item[1] >= len(own)]
        assert [(item["value"], item["count"]) for item in most] == wanted
        places = [max(-(-len(own) * k // 2) - 1, 0) for k in range(3)]
        assert middle == ([sorted(own)[place] for place in places] if own else None)
    sets = windowed("set", array, owners, cells, rolled, lows, highs)
    counted = resolve("count_distinct", [array.type]).lower([sets]).values.to_pylist()
    assert counted == [len(set(own)) for own in held]
    added = resolve("sum_distinct", [array.type]).lower([sets]).values.to_pylist()
    assert added == [sum(set(own)) if own else None for own in held]


@pytest.mark.parametrize("distinct", [200, 4000])
@pytest.mark.parametrize("written", [0, 1 << 26])
def test_estimates_do_not_depend_on_how_windows_follow_each_other(distinct, written, monkeypatch):
    monkeypatch.setattr(register_windows, "_WRITTEN", written)
    monkeypatch.setattr(register_windows, "_AT_ONCE", 1 << 20)
    array, owners, cells, rolled, lows, highs, held = drawn(distinct, distinct, 4000)
    values = pa.array([None if v is None else v * 7 for v in array.to_pylist()])
    given = "registers:7", values, owners, cells, rolled
    counts = resolve("approx_count_distinct", [values.type], [0.1])
    assert counts.parts[0].kind == given[0]
    slid = windowed(*given, lows, highs, column_type=RegisterColumn)
    together = counts.lower([slid]).values.to_pylist()
    monkeypatch.setattr(register_windows, "_STACKED", 1)
    assert counts.lower([slid]).values.to_pylist() == together
    alone = [
        counts.lower([windowed(*given, lows[i : i + 1], highs[i : i + 1], RegisterColumn)]).values
        for i in range(lows.size)
    ]
    assert [each.to_pylist()[0] for each in alone] == together
    for own, found in zip(held, together, strict=True):
        exact = len(set(own))
        assert found == exact if exact <= 256 else abs(found - exact) < exact / 2


def test_steps_are_what_enters_and_leaves():
    begins, ends = np.array([0, 2, 50, 48]), np.array([10, 12, 55, 55])
    # Ten enter; two leave, two enter; fifteen are exchanged for five; two enter.
    assert sliding.steps(begins, ends) == 10 + 4 + 15 + 2


def test_cells_as_ranges():
    ranges = Ranges(np.array([0, 2, 2, 3]), np.array([5, 0, 2]), np.array([7, 1, 6]))
    assert ranges.offsets().tolist() == [0, 3, 3, 7]
    assert ranges.between(1, 3).offsets().tolist() == [0, 0, 4]


@pytest.mark.parametrize("distinct", [3, 200])
def test_numbers_are_ranked_by_a_table_or_by_sorting(distinct, monkeypatch):
    monkeypatch.setattr(rows, "_MANY", 0)
    monkeypatch.setattr(rows, "_FEW_BITS", 4)
    numbers = np.random.default_rng(distinct).integers(0, distinct, 500) * 2**50 - 2**51
    assert bool(rows.number_apart(numbers, 4)[1].size) == (distinct == 3)
    ranks, codes = rows.rank_rows(numbers[:, None])
    wanted, places = np.unique(numbers, return_inverse=True)
    assert codes[:, 0].tolist() == wanted.tolist()
    assert ranks.tolist() == places.tolist()
