"""The benchmarks on Spark run at a small scale, compare all answers, and show every side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from muntin.bench.sharing_data import hour
from muntin.bench.spark import SMALL
from muntin.bench.spark_bounded import Input, measure_workload, promises, steps, table


@pytest.mark.long
def test_bounded_side(spark: Any, tmp_path: Path) -> None:
    market = hour(SMALL.rows, SMALL.symbols)
    path = str(tmp_path / "trades.parquet")
    pq.write_table(market.trades, path, row_group_size=SMALL.row_group)
    given = Input(spark, path, market)
    found = measure_workload(given, "C low sharing", SMALL.sizes, SMALL.separately, 1)
    shown = table(found, SMALL.sizes)
    assert len(shown.columns) == 1 + len(SMALL.sizes)
    assert [row[0].split(":")[0] for row in shown.rows].count("Spark") == 2
    assert "rows to partials" in [row[0] for row in steps(found, max(SMALL.sizes)).rows]
    checks = list(promises([found], SMALL.sizes))
    assert len(checks) == 6
    assert all(check.value > 0 for check in checks)
