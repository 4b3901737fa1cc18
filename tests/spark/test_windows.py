"""Muntin's answers are those of Spark's own window()."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import muntin
from muntin.testing import rows_of
from oracle.random_streams import stream

MINUTE = 60_000_000
AGGREGATES = [
    *("count(*)", "count(x)", "sum(n)", "sum(x)", "avg(x)", "avg(n)", "min(x)", "max(x)"),
    *("min(k)", "max(k)", "min(n)", "max(ts)", "bool_and(b)", "bool_or(b)", "count_if(b)"),
    *("var_pop(n)", "stddev_samp(n)", "sum(n) FILTER (WHERE b)", "sum(n) / count(*)", "max(b)"),
]
PREDICATES = ["true", "n > 0", "k IN ('a', 'b')", "x >= 1", "NOT b", "n % 2 = 0", "k LIKE 'key1%'"]


@pytest.mark.parametrize("seed", range(6))
def test_same_windows_and_values(spark: Any, seed: int) -> None:
    rng = random.Random(seed)
    table = stream(rng, wild=False)
    spark.createDataFrame(table).createOrReplaceTempView("s")
    for _ in range(3):
        ours, theirs = _query(rng)
        left = _ordered(rows_of(muntin.aggregate(table, ours, time="ts")["q1"]))
        right = _ordered(rows_of(spark.sql(theirs).toArrow()))
        assert len(left) == len(right), theirs
        for row, expected in zip(left, right, strict=True):
            assert all(map(_same, row, expected)), (theirs, row, expected)


def _query(rng: random.Random) -> tuple[str, str]:
    slide = rng.choice([1, 2, 5, 7, 15, 60]) * rng.choice([MINUTE, MINUTE // 60])
    size = rng.choice([slide, 2 * slide, slide * 3 // 2, 7 * slide // 5, 11 * slide])
    offset = rng.choice([0, 0, slide // 3, slide // 2])
    window = f"window(ts, '{size} microseconds', '{slide} microseconds', '{offset} microseconds')"
    groups = rng.sample(["k", "g", "b"], rng.choice([0, 1, 2]))
    chosen = rng.sample(AGGREGATES, 4)
    select = ", ".join([*groups, *(f"{text} AS a{i}" for i, text in enumerate(chosen))])
    tail = f"FROM s WHERE {rng.choice(PREDICATES)} GROUP BY {', '.join([window, *groups])}"
    return f"SELECT {select} {tail}", f"SELECT window.start, window.end, {select} {tail}"


def _ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [repr(v) if not isinstance(v, float) else "" for v in row])


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        # Spark rounds every addition, and so loses what cancels.
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(ours == theirs)
