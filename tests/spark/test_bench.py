"""The benchmarks on Spark run at a small scale, compare all answers, and show every side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from muntin_bench.holistic import benchmark as holistic
from muntin_bench.holistic.spark import SparkSide
from muntin_bench.sharing.data import hour
from muntin_bench.spark.benchmark import Scale
from muntin_bench.spark.bounded import (
    SCAN,
    TRIP,
    WAYS,
    Input,
    measure_workload,
    promises,
    steps,
    table,
)
from muntin_bench.streaming.checkpoints import Kept, by_groups, by_range

KEPT = Kept(5, (3, 6), 1, 4, 8, 10, 1, warm=0)
TINY = Scale(20_000, 50, (1, 4), separately=2, row_group=4_000)


def test_bounded_side(spark: Any, tmp_path: Path) -> None:
    market = hour(TINY.rows, TINY.symbols)
    path = str(tmp_path / "trades.parquet")
    pq.write_table(market.trades, path, row_group_size=TINY.row_group)
    given = Input(spark, path, market)
    found = measure_workload(given, "C low sharing", TINY.sizes, TINY.separately, 2)
    shown = table(found, TINY.sizes)
    assert len(shown.columns) == 1 + len(TINY.sizes)
    *sides, separately, planning = [row[0] for row in shown.rows]
    assert sides == [SCAN, TRIP, *(f"Muntin {way}" for way in WAYS)]
    assert separately.startswith("Spark: window() queries one by one")
    assert planning.startswith("Muntin: parse and plan")
    assert "rows to partials" in [row[0] for row in steps(found, max(TINY.sizes)).rows]
    assert len(shown.timed[0]) == 2 + 2 * len(TINY.sizes)
    checks = list(promises([found], TINY.sizes))
    assert len(checks) == 6
    assert all(0 < check.low <= check.value <= check.high for check in checks)  # type: ignore[operator]


def test_checkpoints_are_measured_by_range_and_by_groups(spark: Any) -> None:
    cached, uncached = (by_range(spark, KEPT, kept) for kept in (True, False))
    groups = by_groups(spark, KEPT)
    for sections, _ in (cached, uncached):
        assert [row[0] for row in sections[0].rows] == [f"{size} s" for size in KEPT.ranges]
    assert [row[0] for row in groups[0][0].rows] == ["4", "8"]
    checks = [check for _, found in (cached, uncached, groups) for check in found]
    assert len(checks) >= 4
    # Bytes and times were seen on every side.
    assert all(check.value > 0 for check in checks)


def test_spark_answers_what_the_others_do_over_all_values(spark: Any) -> None:
    table = holistic.rows(3000)
    side = SparkSide(spark, table)
    scale = holistic.Scale(rows=3000, queries=2, asked=1, repeats=1)
    listed = holistic.windows(2, predicates=True)
    for question in holistic.QUESTIONS:
        # Answers are compared in it.
        seconds = holistic.compared(table, question, listed, scale, side)
        assert ("Spark" in seconds) == bool(question.spark)
        assert all(each > 0 for each in seconds.values())
