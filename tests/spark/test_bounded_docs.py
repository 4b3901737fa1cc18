"""Python in the documentation of Spark runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from muntin.testing import trades

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_python_on_the_page_runs(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "trades.parquet")
    pq.write_table(trades(500), path)
    scope: dict[str, Any] = {"path": path}
    for code in re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(code, PAGE.name, "exec"), scope)
    assert scope["results"].rows == 500
