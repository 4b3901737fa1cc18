"""Answers that are read off all values of a window, against counting them one by one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregates.algebra import Part
from muntin.aggregates.caps import Cap
from muntin.aggregates.columns.holistic import value_windows
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.errors import DataError
from muntin.planner import build_plan
from muntin.queries import queries


def windowed(kind, array, cells, size, lows, highs):
    column = RunColumn.empty(Part(kind, (array.type,)), size)
    column.update(cells, (array,))
    return column.sliding(1)(np.array(lows), np.array(highs))


def draw(seed, distinct, rows=600, size=40, windows=60):
    rng = np.random.default_rng(seed)
    array = pa.array(rng.zipf(1.3, rows) % distinct)
    cells = np.sort(rng.integers(0, size, rows))
    lows = rng.integers(0, size, windows)
    highs = np.minimum(size, lows + rng.integers(0, size, windows))
    held = [array.filter(pa.array((cells >= low) & (cells < high))).to_pylist()
            for low, high in zip(lows, highs, strict=True)]  # fmt: skip
    return array, cells, size, lows, highs, held


@pytest.mark.parametrize("distinct", [1, 2, 7, 300])
@pytest.mark.parametrize("looked", [0, 8])
def test_frequent_values_are_found_by_counting_and_by_searching(distinct, looked, monkeypatch):
    monkeypatch.setattr(value_windows, "_LOOKED", looked)
    monkeypatch.setattr(value_windows, "_SEARCHED", 0)
    monkeypatch.setattr(value_windows, "_TRIED", 1)
    monkeypatch.setattr(value_windows, "_AT_ONCE", 50)
    array, cells, size, lows, highs, held = draw(distinct, distinct)
    slid = windowed("runs", array, cells, size, lows, highs)
    for k in (1, 3):
        found = resolve("top_k", [array.type], [k]).lower([slid]).values.to_pylist()
        for items, rows in zip(found, held, strict=True):
            best = sorted(Counter(rows).items(), key=lambda item: (-item[1], item[0]))[:k]
            assert [(item["value"], item["count"]) for item in items] == best
    found = resolve("frequent", [array.type], [0.1]).lower([slid]).values.to_pylist()
    for items, rows in zip(found, held, strict=True):
        wanted = {value: n for value, n in Counter(rows).items() if 10 * n >= len(rows)}
        assert {item["value"]: item["count"] for item in items} == wanted


def test_windows_with_too_many_values_fail_and_no_others():
    array, cells, size, lows, highs, held = draw(3, 300)
    texts = array.cast(pa.string())
    over = [len(set(rows)) > 20 for rows in held]
    assert any(over)
    assert not all(over)
    for name, constants, kind in (
        ("count_distinct", [], "set"),
        ("sum_distinct", [], "set"),
        ("collect_set", [], "set"),
        ("median", [], "runs"),
        ("top_k", [2], "runs"),
    ):
        resolved = resolve(name, [array.type], constants)
        few = replace(resolved, cap=Cap(values=20))
        slid = windowed(kind, array, cells, size, lows, highs)
        lowered, every = few.lower([slid]), resolved.lower([slid])
        assert lowered.errors.to_pylist() == over
        wanted = [
            None if no else value for no, value in zip(over, every.values.to_pylist(), strict=True)
        ]
        assert lowered.values.to_pylist() == wanted
        with pytest.raises(DataError, match=f"for {name}, and may have 20"):
            replace(resolved, cap=Cap(values=20, on="fail")).lower([slid])
    few = replace(resolve("count_distinct", [pa.string()]), cap=Cap(bytes=50))
    slid = windowed("set", texts, cells, size, lows, highs)
    errors = few.lower([slid]).errors.to_pylist()
    assert errors == [sum(map(len, map(str, set(rows)))) > 50 for rows in held]


def test_a_list_is_judged_by_all_its_values():
    column = RunColumn.empty(Part("list", (pa.int64(),)), 2)
    column.update(np.array([0, 0, 1, 1, 1, 1]), (pa.array([7] * 6),), np.zeros(6, np.int64))
    few = replace(resolve("collect_list", [pa.int64()]), cap=Cap(values=3))
    lowered = few.lower([column])
    assert lowered.values.to_pylist() == [[7, 7], None]
    assert lowered.errors.to_pylist() == [False, True]


def test_one_time_on_both_sides_of_an_edge_is_in_order_of_values():
    column = RunColumn.empty(Part("list", (pa.string(),)), 2)
    column.update(np.array([0, 1]), (pa.array(["b", "a"]),), np.array([5, 5]))
    slid = column.sliding(1)(np.array([0]), np.array([2]))
    assert resolve("collect_list", [pa.string()]).lower([slid]).values.to_pylist() == [["a", "b"]]


def test_queries_that_hold_all_values_share_slices():
    """A structure over each query's own slices would write every window out."""
    text = "; ".join(
        f"SELECT {call} AS v FROM s [RANGE {length} SLIDE 2] GROUP BY k"
        for call in ("count(DISTINCT v)", "median(v)", "top_k(v, 2)", "collect_list(v)")
        for length in (4, 10, 30)
    )
    schema = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()})
    plan = build_plan(queries(text), schema, "ts")
    assert not any(node.is_driven for node in plan.partials)
