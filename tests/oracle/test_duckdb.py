"""The engine against DuckDB's own SQL, on random queries over random streams."""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import muntin
from muntin.testing import rows_of
from oracle.random_queries import queries
from oracle.random_streams import stream


@pytest.mark.parametrize("seed", range(60))
def test_engine_equals_duckdb(seed: int) -> None:
    rng = random.Random(2000 + seed)
    table = stream(rng, wild=False)
    asked = queries(rng, own=False, most=20)
    results = muntin.aggregate(table, ";\n".join(q.sql for q in asked), time="ts")
    with duckdb.connect() as connection:
        connection.register("s", table)
        for query in asked:
            ours = _ordered(rows_of(results[query.name]))
            theirs = _ordered(connection.sql(query.duck).fetchall())
            assert len(ours) == len(theirs), query.sql
            scale = _magnitude(table)
            for left, right in zip(ours, theirs, strict=True):
                assert all(map(lambda a, b: _same(a, b, scale), left, right)), (
                    query.sql,
                    left,
                    right,
                )


def _magnitude(table: pa.Table) -> float:
    """Σ|x|, in which the rounding of DuckDB's float sums is measured."""
    return math.fsum(abs(x) for x in table["x"].to_pylist() if x is not None and not math.isnan(x))


def _ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [_sortable(value) for value in row])


def _sortable(value: Any) -> str:
    # Doubles may differ in the last bits: the exact columns come first and decide.
    return repr(value) if not isinstance(value, float) else "float"


def _same(ours: Any, theirs: Any, scale: float) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return abs(ours - theirs) <= 1e-12 * scale
    return bool(ours == theirs)
