"""Whatever comes in or breaks, a run ends in a clear state or a clear error, and can go on."""

from __future__ import annotations

import errno
import json
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from muntin import aggregate, files, sinks
from muntin.api import run
from muntin.errors import DataError, MuntinError
from muntin.sinks.durable import write_atomically
from muntin.spark.streaming.checkpoint.files import hold
from muntin.spark.streaming.problems import CheckpointError, RunError
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import FolderStream, parts

SUMS = """CREATE QUERY sums AS SELECT symbol, sum(vol) AS vol, count(*) AS n
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] GROUP BY symbol"""
TUMBLING = "FROM s [RANGE '1 minute' SLIDE '1 minute']"


def clock(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


def test_rows_that_cannot_be_used(spark: Any, tmp_path: Path) -> None:
    """A corrupt row, a NULL time, the year 9999, an empty batch, a late row; then no more rows."""
    lines = [
        [{"ts": clock(0), "vol": 1}, {"ts": None, "vol": 2}, {"ts": clock(50), "vol": 3}],
        [],
        [{"ts": "9999-12-31T23:59:59Z", "vol": 4}, {"ts": clock(70), "vol": 0}, "{corrupt"],
        [{"ts": clock(10), "vol": 6}, {"ts": clock(130), "vol": 7}],
    ]
    stream = FolderStream(tmp_path / "in", "ts timestamp, vol bigint, _corrupt_record string")
    for rows in lines:
        texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        stream.put_text("".join(f"{text}\n" for text in texts), "json")
    text = f"CREATE QUERY n AS SELECT count(*) AS n, sum(10 / vol) AS x {TUMBLING}"
    sink, aside = sinks.memory(), tmp_path / "aside"
    options = {
        "sink": sink,
        "side_output": aside,
        "checkpoint": tmp_path / "ck",
        "trigger": "available_now",
        "partitions": 1,
    }
    for failing, words in [
        ({"on_bad_row": "fail"}, "batch 0 has 1 row without a usable time"),
        ({"on_error": "fail"}, "1 value of batch 2 failed .* in query n"),
    ]:
        started = run(stream.frame(spark, "json"), text, **options, **failing)
        with pytest.raises(DataError, match=words):
            started.await_termination()
        assert not started.is_active
    started = run(stream.frame(spark, "json"), text, **options)
    assert started.await_termination(120)
    progress = started.progress()
    assert (progress.rows, progress.bad_rows, progress.late_rows) == (8, 3, 1)
    assert progress.errors == {"n": 1}
    assert progress.watermark == 130_000_000
    assert sink.table("n").select(["n", "x"]).to_pylist() == [
        {"n": 2, "x": 10 + 10 / 3},
        {"n": 1, "x": None},
    ]
    output = sinks.read(aside)
    assert output["late_rows"]["vol"].to_pylist() == [6]
    assert sorted(output["bad_rows"]["vol"].to_pylist(), key=str) == [2, 4, None]
    assert "{corrupt" in output["bad_rows"]["_corrupt_record"].to_pylist()


def test_files_that_arrive(spark: Any, tmp_path: Path) -> None:
    """Workers read them, folders give columns, and a file that is broken can be mended."""
    table = trades(3000, seed=11, seconds=3000).select(["ts", "symbol", "vol"])
    folder = tmp_path / "in"
    query = SUMS.replace("SELECT symbol", "SELECT day, symbol").replace(
        "BY symbol", "BY day, symbol"
    )
    options = {
        "sink": sinks.parquet(tmp_path / "out"),
        "checkpoint": tmp_path / "ck",
        "trigger": "available_now",
        "partitions": 1,
    }
    folder.mkdir()
    with pytest.raises(DataError, match="no file"):
        run(files(folder), query, **options)
    pieces = parts(table, 3)
    paths = [folder / f"day={day}" / f"{day} %.parquet" for day in (1, 2, 3)]
    for path, piece in zip(paths, pieces, strict=True):
        path.parent.mkdir()
        pq.write_table(piece, path, row_group_size=200)
    sound = paths[2].read_bytes()
    paths[2].write_bytes(sound[:-9])
    arriving = files(folder, maxFilesPerTrigger=2)
    started = run(arriving, query, **options)
    with pytest.raises(MuntinError, match=r"day=3.* cannot be read") as raised:
        started.await_termination()
    assert "same checkpoint" in str(raised.value)
    paths[2].write_bytes(sound)
    started = run(arriving, query, **options)
    assert started.await_termination(120)
    assert started.progress().rows == 3000
    again = run(arriving, query, **options)
    again.stop(flush=True)
    days = [
        piece.append_column("day", pa.array([day] * piece.num_rows, pa.int32()))
        for day, piece in enumerate(pieces, 1)
    ]
    answers = aggregate(pa.concat_tables(days), query, time="ts")
    assert_same_rows(sinks.read(tmp_path / "out")["sums"], answers["sums"])


def test_results_that_cannot_be_written(spark: Any, tmp_path: Path) -> None:
    """The run says where and why, nothing is half there, and a restart goes on."""
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(2000, seed=12, seconds=3000), 2)
    for batch in batches:
        stream.put(batch)
    options = {"checkpoint": tmp_path / "ck", "trigger": "available_now", "partitions": 1}
    (tmp_path / "out").mkdir()
    blocked = tmp_path / "out" / "sums"
    sink = sinks.parquet(tmp_path / "out")
    sink.declare({})
    blocked.write_text("a file, where a folder is wanted")
    started = run(stream.frame(spark), SUMS, sink=sink, **options)
    with pytest.raises(MuntinError, match=r"cannot write results to .*out") as raised:
        started.await_termination()
    assert "choose a folder, not a file" in str(raised.value)
    assert "what is committed is safe" in str(raised.value)
    blocked.unlink()
    started = run(stream.frame(spark), SUMS, sink=sinks.parquet(tmp_path / "out"), **options)
    assert started.await_termination(120)
    # The same at the end, where the open windows are answered.
    started = run(stream.frame(spark), SUMS, sink=sinks.parquet(tmp_path / "out"), **options)
    blocked.rename(tmp_path / "moved")
    blocked.write_text("a file, where a folder is wanted")
    with pytest.raises(RunError, match=r"^the run failed: cannot write results to .*out"):
        started.stop(flush=True)
    with pytest.raises(RunError, match=r"^the run failed: cannot write results to .*out"):
        run(stream.frame(spark), SUMS, sink=sinks.parquet(tmp_path / "out"), **options)
    blocked.unlink()
    (tmp_path / "moved").rename(blocked)
    copytree(tmp_path / "ck", tmp_path / "copy")
    answers = aggregate(pa.concat_tables(batches), SUMS, time="ts")
    ended = run(stream.frame(spark), SUMS, sink=sinks.parquet(tmp_path / "out"), **options)
    assert (ended.await_termination(1), ended.is_active, ended.progress().rows) == (
        True,
        False,
        2000,
    )
    ended.stop(flush=True)
    assert_same_rows(sinks.read(tmp_path / "out")["sums"], answers["sums"])
    options |= {"checkpoint": tmp_path / "copy", "trigger": None}
    with pytest.raises(CheckpointError, match="is complete: it was stopped with flush=True"):
        run(stream.frame(spark), SUMS, sink=sinks.parquet(tmp_path / "out"), **options)
    assert_same_rows(sinks.read(tmp_path / "out")["sums"], answers["sums"])


def test_checkpoints_that_cannot_be_written(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in its place, and a disk that is full before the first batch or in the middle."""
    (tmp_path / "file").write_text("a file, where a folder is wanted")
    for path in (tmp_path / "file", tmp_path / "file" / "ck"):
        with pytest.raises(CheckpointError, match=f"cannot write to the checkpoint {path}: ") as no:
            hold(path)
        assert no.value.hint == "choose a folder, not a file"
    stream = FolderStream(tmp_path / "in")
    stream.put(trades(30, seed=13))
    options = {"sink": sinks.memory(), "checkpoint": tmp_path / "ck", "partitions": 1}
    full = {"batches", "ck"}

    def write(path: Path, content: bytes) -> None:
        if path.parent.name in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_atomically(path, content)

    monkeypatch.setattr("muntin.spark.streaming.checkpoint.files.write_atomically", write)
    words = r"cannot write to the checkpoint .*/{}: No space left on device\nHint: free some space"
    with pytest.raises(CheckpointError, match=words.format("ck")):
        run(stream.frame(spark), SUMS, **options)
    full.remove("ck")
    started = run(stream.frame(spark), SUMS, **options)
    with pytest.raises(CheckpointError, match=words.format("ck/batches")):
        started.await_termination(120)
    full.clear()
    started = run(stream.frame(spark), SUMS, trigger="available_now", **options)
    assert started.await_termination(120)
    assert started.progress().rows == 30
