"""Random row queries on Spark, with a restart, against recomputation at every instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark.random_rows import run_seed


@pytest.mark.parametrize("seed", [0, 3])
def test_random_queries_are_right_at_every_instant(spark: Any, tmp_path: Path, seed: int) -> None:
    assert len(run_seed(spark, tmp_path, seed)) >= 3
