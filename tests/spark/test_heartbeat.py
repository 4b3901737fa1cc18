"""A stream that falls silent: the clock answers its windows, and a repeat of that agrees."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from muntin import files, sinks
from muntin.api import run
from muntin.engine import LocalEngine
from muntin.errors import WindowError
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.spark.streaming.driver.handle import Run
from muntin.spark.streaming.problems import CheckpointError
from muntin.testing import assert_same_rows
from spark.folder_stream import PATIENCE, FolderStream

SECOND = 1_000_000
QUERIES = """
CREATE QUERY totals AS SELECT k, sum(v) AS total FROM s [RANGE '2 s' SLIDE '1 s'] GROUP BY k;
CREATE QUERY n AS SELECT count(*) AS n FROM s [RANGE '1 s' SLIDE '1 s'] EMIT EMPTY;
"""
SCHEMA = "ts timestamp, k bigint, v bigint"


def rows(*seconds: float) -> pa.Table:
    times = [int(second * SECOND) for second in seconds]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array([index % 3 for index in range(len(times))], pa.int64()),
            "v": pa.array(times, pa.int64()),
        }
    )


def wait_for(started: Run, watermark: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while (started.progress().watermark or 0) < watermark:
        assert time.monotonic() < deadline, started.progress()
        assert not started.await_termination(0.02), started.progress()


def test_windows_are_answered_while_no_row_comes(spark: Any, tmp_path: Path) -> None:
    stream, out, checkpoint = (
        FolderStream(tmp_path / "in", SCHEMA),
        tmp_path / "out",
        tmp_path / "ck",
    )
    options: dict[str, Any] = {"lateness": "1 second", "checkpoint": checkpoint, "partitions": 2}
    first, second = rows(1.5, 3.2, 3.4, 2.9), rows(4.0, 4000.5)
    stream.put(first)

    def start(**others: Any) -> Run:
        given = files(str(stream.folder), schema=SCHEMA)
        return run(given, QUERIES, sink=sinks.parquet(out), **options, **others)

    with start(advance_when_idle="1 second") as started:
        # The last window with a row ends at 5, and the clock has to go on for 2.6 s for it.
        wait_for(started, 5 * SECOND)
        quiet = started.progress()
        assert (quiet.seen, quiet.rows, quiet.late_rows) == (3_400_000, 4, 0)
    last = quiet.batches - 1
    before = outcome(checkpoint, last)
    # As if the driver had died before Spark's commit: the batch is run again by its record.
    for name in (str(last), f".{last}.crc"):
        (checkpoint / "spark" / "commits" / name).unlink()
    stream.put(second)
    with start() as started:
        while started.progress().rows < 6:
            assert not started.await_termination(0.02)
        # A row below W is late, as any other would be.
        assert started.progress().late_rows == 1
    assert without_costs(outcome(checkpoint, last)) == without_costs(before)
    records = [json.loads(path.read_bytes()) for path in logged(checkpoint, "record")]
    answers = sinks.read(out)
    for name, wanted in replayed(records, [first, second]).items():
        assert_same_rows(answers[name], wanted)
    with pytest.raises(WindowError, match="advance_when_idle must be a positive duration, not 5"):
        start(advance_when_idle=5)


def without_costs(content: dict[str, Any]) -> dict[str, Any]:
    """An outcome without the aggregations it took, which depend on what a worker had in memory."""
    return {key: value for key, value in content.items() if key not in ("aggregations", "checksum")}


def logged(checkpoint: Path, kind: str) -> list[Path]:
    return sorted((checkpoint / "batches").glob(f"*.{kind}.json"))


def replayed(records: list[dict[str, Any]], parts: list[pa.Table]) -> dict[str, pa.Table]:
    """What the local engine answers, moved by the clock where the records say so."""
    engine = LocalEngine(build_plan(queries(QUERIES), parts[0].schema, "ts"), SECOND)
    found: dict[str, list[pa.Table]] = {}
    for record, following in zip(records, [*records[1:], None], strict=True):
        # The next record shows whether the batch had rows.
        has_rows = engine.seen is None or (following or record)["seen"] != record["seen"]
        if has_rows or (following is None and len(parts) > 0):
            answered = engine.feed(parts.pop(0))
        else:
            answered = engine.idle(record["moment"] - record["seen"])
        for name, table in answered.items():
            found.setdefault(name, []).append(table)
    assert not parts
    assert len(records) > 2
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def outcome(checkpoint: Path, batch: int) -> dict[str, Any]:
    path = checkpoint / "batches" / f"{batch:020d}.outcome.json"
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def test_a_run_that_takes_in_what_there_is_ends(spark: Any, tmp_path: Path) -> None:
    stream, sink = FolderStream(tmp_path / "in", SCHEMA), sinks.memory()
    stream.put(rows(1.5, 3.4))

    def start(checkpoint: str = "ck", **options: Any) -> None:
        started = run(
            stream.frame(spark),
            QUERIES,
            sink=sink,
            checkpoint=tmp_path / checkpoint,
            trigger="available_now",
            partitions=1,
            **options,
        )
        assert started.await_termination(PATIENCE)

    start(advance_when_idle="1 millisecond")
    assert sink.table("n")["n"].to_pylist() == [1]
    # Seconds have passed since then, and there is nothing to read.
    time.sleep(2)
    start(advance_when_idle="1 millisecond")
    assert sink.table("n")["n"].to_pylist() == [1, 0, 1]
    # It may be switched off, not on.
    stream.put(rows(9000.0))
    start()
    start("other")
    with pytest.raises(CheckpointError, match="begun without advance_when_idle"):
        start("other", advance_when_idle="1 minute")
