"""The benchmark on Spark runs at a small scale, compares all answers, and shows every side."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from muntin.bench.spark import SMALL
from muntin.spark.java import find_java

RUN = "from muntin.bench.spark import run; print(run().to_json())"


@pytest.mark.spark
def test_small_run() -> None:
    pytest.importorskip("pyspark")
    if find_java() is None:
        pytest.skip("no Java runtime")
    # A process of its own: it stops its session, which others here may use.
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "MUNTIN_BENCH_QUICK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout[done.stdout.index("{") :])
    table, steps, *streams = report["sections"]
    assert len(table["columns"]) == 1 + len(SMALL.sizes)
    assert [row[0].split(":")[0] for row in table["rows"]].count("Spark") == 2
    assert "rows to partials" in [row[0] for row in steps["rows"]]
    assert len(streams) == 5
    assert all(each["title"].startswith("stream") and each["rows"] for each in streams)
    assert len(report["checks"]) == 7
    assert all(check["value"] > 0 for check in report["checks"])
