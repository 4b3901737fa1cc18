"""A sweep over time, and scans inside a category, give what rolling up each predicate gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.engine.answers import scan, ungrouped, unmerged
from muntin.engine.answers.scan import Scan
from muntin.engine.answers.sweep import BLOCK, LANES, Spans, sweep, total_of
from muntin.engine.slices.radix_sort import sort_in_time
from muntin.engine.slices.store import SliceStore
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing.oracle import answer

SELECTS = (
    "sum(x) AS a, count(*) AS n",
    "avg(x) AS a, count(*) FILTER (WHERE y > 3) AS n",
    "var_samp(y) AS a, sum(y) FILTER (WHERE x < 0.5) AS n",
    "sum(y) AS a, max(x) AS n",
    "product(x) AS a, count(x) AS n",
)


def drawn(seed: int) -> tuple[pa.Table, str]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 400))
    x = rng.normal(size=size) * 10.0 ** rng.integers(-200, 200, size)
    x[rng.random(size) < 0.05] = rng.choice([np.nan, np.inf, -np.inf])
    nulls = rng.random(size) < 0.1
    table = pa.table(
        {
            "t": rng.integers(0, 300, size),
            "x": pa.array(x, mask=nulls),
            "y": rng.integers(-8, 8, size),
            "z": pa.array(rng.choice(["a", "b", "c"], size), mask=rng.random(size) < 0.1),
        }
    )
    lines = []
    for number in range(int(rng.integers(2, 12))):
        low, high = sorted(rng.integers(-9, 9, 2).tolist())
        where = rng.choice(
            [
                f"y >= {low} AND y < {high}",
                f"y < {low} OR y > {high}",
                f"x > {low} AND y <> {high}",
                f"y BETWEEN {low} AND {high} AND x < {high} AND z = 'b'",
            ]
        )
        window = f"[RANGE {rng.integers(1, 90)} SLIDE {rng.integers(1, 60)}]"
        select = SELECTS[seed % len(SELECTS)]
        lines.append(f"CREATE QUERY q{number} AS SELECT {select} FROM s {window} WHERE {where};")
    return table, "\n".join(lines)


def answers(table: pa.Table, sql: str, threads: int = 1) -> dict[str, pa.Table]:
    engine = LocalEngine(build_plan(queries(sql), table.schema, "t"), threads=threads)
    engine.feed(table)
    return engine.close()


@pytest.mark.parametrize("seed", range(12))
def test_batches_are_swept_unmerged(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of other exponents, NaN in some batches only, and slices that lie in two of them."""
    table, sql = drawn(seed)
    table = table.take(pa.array(np.argsort(table["t"].to_numpy(), kind="stable")))
    monkeypatch.setattr(ungrouped, "_FEW", 0)
    monkeypatch.setattr(ungrouped, "_READS", 1 << 30)
    monkeypatch.setattr(unmerged, "_CHUNK", 7)
    if "max" not in sql:
        monkeypatch.setattr(SliceStore, "table", lambda self: pytest.fail("it was merged"))
    engine = LocalEngine(build_plan(queries(sql), table.schema, "t"))
    for at in range(0, table.num_rows, 60):
        engine.feed(table.slice(at, 60))
    found = engine.close()
    monkeypatch.undo()
    plan = build_plan(queries(sql), table.schema, "t")
    for name, results in found.items():
        assert repr(results.to_pydict()) == repr(answer(plan, name, table).to_pydict())


@pytest.mark.parametrize("seed", range(30))
def test_all_ways_agree_with_recomputation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table, sql = drawn(seed)
    made: list[str] = []
    find = ungrouped.find_runs

    def noted(*given: Any) -> Any:
        found = find(*given)
        if found is not None:
            made.append(type(found._way).__name__)
        return found

    monkeypatch.setattr("muntin.engine.answers.stage_b.find_runs", noted)
    monkeypatch.setattr(ungrouped, "_FEW", 0)
    monkeypatch.setattr(ungrouped, "_READS", 1 << 30)
    found = {"sweep": answers(table, sql)}
    monkeypatch.setattr("muntin.engine.answers.sweep._SHARE", 1)
    found["sweep by three threads"] = answers(table, sql, threads=3)
    additive = "max" not in sql
    assert set(made) == ({"Sweep"} if additive else set())
    made.clear()
    # Scans that cost nothing are always chosen, where predicates are conditions on single columns.
    monkeypatch.setattr(ungrouped, "_MANY", -1)
    monkeypatch.setattr(scan, "_SORTED", 0)
    # The category differs from predicate to predicate.
    dear = np.random.default_rng(seed).random((20, 4)) * 1e-9
    monkeypatch.setattr(
        Scan, "_costs", lambda self, runs: dear[: runs.size, : len(self._ranks)] + 0 * runs[:, None]
    )
    found["scan"] = answers(table, sql)
    found["scan by three threads"] = answers(table, sql, threads=3)
    assert (made == []) == (not additive)
    assert " OR " in sql or "Sweep" not in made
    monkeypatch.setattr(ungrouped, "_READS", -1)
    found["roll up"] = answers(table, sql)
    plan = build_plan(queries(sql), table.schema, "t")
    for name in found["sweep"]:
        expected = repr(answer(plan, name, table).to_pydict())
        for way, results in found.items():
            assert repr(results[name].to_pydict()) == expected, way


def test_predicates_of_three_quantities_are_scanned_for() -> None:
    rng = np.random.default_rng(3)
    size = 20_000
    table = pa.table(
        {
            "t": np.sort(rng.integers(0, 50_000, size)),
            "x": rng.integers(0, 1000, size),
            "y": rng.integers(0, 1000, size),
            "z": rng.choice(["a", "b", "c", "d", "e"], size),
        }
    )
    text = ";".join(
        f"CREATE QUERY q{n} AS SELECT sum(x) AS v FROM s [RANGE {600 + 7 * n} SLIDE {300 + 5 * n}]"
        f" WHERE x BETWEEN {n} AND {n + 400} AND y < {13 * n} AND z = '{'abcde'[n % 5]}'"
        for n in range(1, 65)
    )
    plan = build_plan(queries(text), table.schema, "t")
    engine = LocalEngine(plan)
    engine.feed(table)
    results = engine.close()
    # A sweep would read some hundred totals at each of 20,000 edges.
    assert engine.progress().final_aggregations < 10 * size
    for name in ("q1", "q33", "q64"):
        assert results[name].equals(answer(plan, name, table))


@pytest.mark.parametrize("seed", range(6))
def test_entries_in_time_order_are_numbered_like_any_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 500))
    starts = np.sort(rng.integers(0, 1 + size // int(rng.integers(1, 200)), size))
    codes = rng.integers(0, 90, size)
    if seed % 2:
        starts[-1] = -1  # out of order
    numbers, kept = sort_in_time(starts, codes)
    pairs = list(zip(starts.tolist(), codes.tolist(), strict=True))
    expected = sorted(set(pairs))
    assert [expected[number] for number in numbers] == pairs
    assert [pairs[place] for place in kept] == expected


def test_totals_may_wrap_around() -> None:
    most = np.iinfo(np.int64).max
    rows = np.zeros((3, LANES), np.int64)
    rows[:, 1] = most, most, 5
    edges = np.array([2, 0, 3, 1])
    spans, places = np.array([[0, 1]]), np.array([[0, 1], [0, 1]])
    order = np.argsort(edges, kind="stable")
    totals, blocks, found = (np.zeros((size, LANES), np.int64) for size in (1, 1, 2))
    cells, done = np.zeros(3, np.int64), 0
    # Rows one after the other, as if each were a batch.
    for first in range(3):
        own = slice(first, first + 1)
        done = sweep(
            rows[own], cells[own], first, edges, order, done, spans, places, totals, blocks, found
        )
    assert found.tolist() == [[0, 5, 0, 0], [0, most, 0, 0]]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 100])
def test_a_range_of_cells_is_the_sum_of_blocks_and_single_cells(size: int) -> None:
    rng = np.random.default_rng(size)
    totals = rng.integers(-(2**40), 2**40, (size, 2 * LANES))
    padded = np.zeros((-(-size // BLOCK) * BLOCK, 2 * LANES), np.int64)
    padded[:size] = totals
    blocks = padded.reshape(-1, BLOCK, 2 * LANES).sum(axis=1)
    for low in range(size):
        for high in range(low, size + 1):
            for lane in (0, LANES):
                found = total_of(totals, blocks, lane, np.array([[low, high]]))
                assert found == tuple(totals[low:high, lane : lane + LANES].sum(axis=0))
    both = total_of(totals, blocks, 0, np.array([[0, size // 2], [size // 2, size]]))
    assert both == tuple(totals[:, :LANES].sum(axis=0))


def test_reads_are_counted_as_they_are_made() -> None:
    held = np.zeros((3, 50), np.bool_)
    held[0, 3:40] = True  # 13 cells, the block from 16 to 31, 8 cells
    held[1, [1, 5]] = True
    assert Spans.of(held).reads().tolist() == [13 + 1 + 8, 2, 0]
