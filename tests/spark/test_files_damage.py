"""Files that no one meant to write: workers read them as Spark does, or leave them to it."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from muntin.spark.files.pieces import Piece
from muntin.spark.files.source import FilesSource
from muntin.spark.frames import spark_schema
from muntin.spark.problems import SparkError
from muntin.spark.streaming.problems import as_run_error
from spark.text_cases import SCHEMA, text_case, text_rows

CASES = 400


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_no_file_ends_the_process(kind: str, tmp_path: Path) -> None:
    script = [sys.executable, str(Path(__file__).with_name("text_cases.py"))]
    ended = subprocess.run(
        [*script, kind, "0", str(CASES), str(tmp_path)], capture_output=True, check=False
    )
    last = (tmp_path / f"case.{kind}").read_bytes()
    assert ended.returncode == 0, f"{last!r} ends the process: {ended.stderr.decode()}"


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_what_workers_read_is_what_spark_reads(spark: Any, kind: str, tmp_path: Path) -> None:
    ours: dict[str, list[str]] = {}
    for seed in range(CASES):
        path = tmp_path / f"{seed}.{kind}"
        path.write_bytes(text_case(kind, seed))
        tables = text_rows(kind, path)
        if tables is None:
            path.unlink()
        else:
            rows = (row for table in tables for row in table.to_pylist())
            ours[path.name] = _shown(rows)
    reader = spark.read.format(kind).schema(spark_schema(SCHEMA))
    found: pa.Table = reader.load(str(tmp_path)).selectExpr("*", "_metadata.file_name").toArrow()
    theirs: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in found.to_pylist():
        theirs[row.pop("file_name")].append(row)
    assert len(ours) > CASES // 10
    assert ours == {name: _shown(theirs[name]) for name in ours}


def test_a_worker_that_dies_names_the_file(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, folder / "deadly.parquet")
    pq.write_table(rows, folder / "sound.parquet")

    def read(piece: Piece, schema: pa.Schema) -> Iterator[pa.Table]:
        if "deadly" in piece.path:
            os.kill(os.getpid(), signal.SIGSEGV)
        yield rows

    monkeypatch.setattr(FilesSource, "_read", property(lambda _: read))
    monkeypatch.setattr(FilesSource, "sample", lambda _: None)
    sql = "SELECT count(*) AS n FROM t [RANGE '1 min' SLIDE '1 min']"
    named = r"while it read \S*/deadly.parquet\n"
    with pytest.raises(SparkError, match=named) as caught:
        muntin.aggregate(muntin.files(folder), sql, time="ts")
    assert "leave it out" in (caught.value.hint or "")
    assert caught.value.__cause__ is not None
    told = as_run_error(caught.value.__cause__, tmp_path)
    assert caught.value.message in told.message
    assert "same checkpoint" in (told.hint or "")


def _shown(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Rows in an order of their own, in which NaN equals NaN."""
    return sorted(
        repr([None if value is None else _plain(value) for value in row.values()]) for row in rows
    )


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
