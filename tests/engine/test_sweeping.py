"""A sweep over time gives what rolling up each predicate gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine import LocalEngine, sweeping
from muntin.engine.naive import answer
from muntin.engine.sweeping import reads_of
from muntin.engine.sweeping_kernels import BLOCK, _total, sweep
from muntin.plan import build_plan
from muntin.queries import queries

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
        }
    )
    lines = []
    for number in range(int(rng.integers(2, 12))):
        low, high = sorted(rng.integers(-9, 9, 2).tolist())
        where = rng.choice(
            [f"y >= {low} AND y < {high}", f"y < {low} OR y > {high}", f"x > {low} AND y <> {high}"]
        )
        window = f"[RANGE {rng.integers(1, 90)} SLIDE {rng.integers(1, 60)}]"
        select = SELECTS[seed % len(SELECTS)]
        lines.append(f"CREATE QUERY q{number} AS SELECT {select} FROM s {window} WHERE {where};")
    return table, "\n".join(lines)


def answers(table: pa.Table, sql: str) -> dict[str, pa.Table]:
    engine = LocalEngine(build_plan(queries(sql), table.schema, "t"))
    engine.feed(table)
    return engine.close()


@pytest.mark.parametrize("seed", range(25))
def test_both_ways_agree_with_recomputation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table, sql = drawn(seed)
    made: list[bool] = []
    make = sweeping.make_sweep

    def counted(*given: Any) -> Any:
        found = make(*given)
        made.append(found is not None)
        return found

    monkeypatch.setattr("muntin.engine.stage_b.make_sweep", counted)
    monkeypatch.setattr(sweeping, "_FEW", 0)
    monkeypatch.setattr(sweeping, "_READS", 1 << 30)
    swept = answers(table, sql)
    additive = "max" not in sql
    assert any(made) == additive
    monkeypatch.setattr(sweeping, "_READS", 0)
    walked = answers(table, sql)
    plan = build_plan(queries(sql), table.schema, "t")
    for name, result in swept.items():
        assert repr(result.to_pydict()) == repr(walked[name].to_pydict())
        assert repr(result.to_pydict()) == repr(answer(plan, name, table).to_pydict())


def test_totals_may_wrap_around() -> None:
    most = np.iinfo(np.int64).max
    rows = np.array([[most], [most], [5]])
    edges = np.array([2, 0, 3, 1])
    spans, places = np.array([[0, 1]]), np.array([[0, 1], [0, 1]])
    order = np.argsort(edges, kind="stable")
    found = sweep(rows, np.zeros(3, np.int64), 1, edges, order, spans, places)
    assert found.tolist() == [[5], [most]]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 100])
def test_a_range_of_cells_is_the_sum_of_blocks_and_single_cells(size: int) -> None:
    rng = np.random.default_rng(size)
    totals = rng.integers(-(2**40), 2**40, size)
    padded = np.zeros(-(-size // BLOCK) * BLOCK, np.int64)
    padded[:size] = totals
    blocks = padded.reshape(-1, BLOCK).sum(axis=1)
    for low in range(size):
        for high in range(low, size + 1):
            assert _total(totals, blocks, low, high) == totals[low:high].sum()


def test_reads_are_counted_as_they_are_made() -> None:
    held = np.zeros((3, 50), np.bool_)
    held[0, 3:40] = True  # 13 cells, the block from 16 to 31, 8 cells
    held[1, [1, 5]] = True
    assert reads_of(held).tolist() == [13 + 1 + 8, 2, 0]
