"""How a run ends: at the end of its input, or by Ctrl-C; and tables that change or vanish."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from muntin import sinks
from muntin.api import run
from muntin.errors import DataError, MuntinError
from muntin.spark.interrupts import ctrl_c
from muntin.spark.streaming.checkpoint.arrivals import Arrivals, SparkLogs, mark, marks
from muntin.spark.streaming.problems import CheckpointError
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import FolderStream, expected, parts, wait_for_batches

COUNTS = """CREATE QUERY counts AS SELECT symbol, count(*) AS n
  FROM trades [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY symbol;"""
JOINED = """CREATE QUERY joined AS SELECT names.long, sum(vol) AS vol
  FROM trades [RANGE '4 minutes' SLIDE '4 minutes']
  JOIN names ON trades.symbol = names.symbol GROUP BY names.long;"""


@pytest.fixture
def rows() -> pa.Table:
    return trades(3000, seed=3, seconds=5000)


@pytest.mark.parametrize("how", ["await_termination", "stop"])
def test_open_windows_are_answered_after_the_end(
    spark: Any, tmp_path: Path, rows: pa.Table, how: str
) -> None:
    stream = FolderStream(tmp_path / "in")
    stream.put(rows)
    sink = sinks.parquet(tmp_path / "out")
    options = {"sink": sink, "checkpoint": tmp_path / "ck", "trigger": "available_now"}
    started = run(stream.frame(spark), COUNTS, **options)
    if how == "stop":
        wait_for_batches(started, 1)
        started.stop()
    assert started.await_termination()
    open_before = sinks.read(tmp_path / "out")["counts"].num_rows
    started.stop(flush=True)
    started.stop(flush=True)
    found = sinks.read(tmp_path / "out")["counts"]
    assert open_before < found.num_rows
    assert_same_rows(found, expected([rows], [COUNTS], close=True)["counts"])
    with pytest.raises(CheckpointError, match="complete"):
        run(stream.frame(spark), COUNTS, **options)


def test_a_run_that_others_went_on_with_is_not_flushed(
    spark: Any, tmp_path: Path, rows: pa.Table
) -> None:
    stream = FolderStream(tmp_path / "in")
    options = {"checkpoint": tmp_path / "ck", "trigger": "available_now"}
    runs = []
    for part in parts(rows, 2):
        stream.put(part)
        runs.append(run(stream.frame(spark), COUNTS, **options))
        runs[-1].await_termination()
    with pytest.raises(CheckpointError, match="another run has since continued"):
        runs[0].stop(flush=True)
    runs[1].stop(flush=True)
    assert runs[1].sink.table("counts").num_rows


def test_ctrl_c_ends_the_wait_and_not_the_batch(spark: Any, tmp_path: Path, rows: pa.Table) -> None:
    stream = FolderStream(tmp_path / "in")
    for part in parts(rows, 3):
        stream.put(part)
    started = run(stream.frame(spark), COUNTS, checkpoint=tmp_path / "ck")
    pressing = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    with started:
        pressing.start()
        with pytest.raises(KeyboardInterrupt):
            started.await_termination()
        assert signal.getsignal(signal.SIGINT) is before
        assert started.is_active
        wait_for_batches(started, 3)
    assert_same_rows(started.sink.table("counts"), expected(parts(rows, 3), [COUNTS] * 3)["counts"])


def test_ctrl_c_at_the_end_of_a_wait_is_not_lost() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), ctrl_c():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_of_others_are_left_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ctrl_c() as check:
            os.kill(os.getpid(), signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            check()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", ["frame", "files"])
def test_a_table_is_read_as_it_is_now(
    spark: Any, tmp_path: Path, rows: pa.Table, kind: str
) -> None:
    folder, stream = tmp_path / "names", FolderStream(tmp_path / "in")
    folder.mkdir()
    symbols = sorted(set(rows["symbol"].to_pylist()))
    versions = [_named(symbols[::2], "old"), _named(symbols[1::2], "more"), _named(symbols, "new")]
    pq.write_table(versions[0], folder / "first.parquet")
    table = spark.read.parquet(str(folder)) if kind == "frame" else muntin.files(folder)
    batches = parts(rows, 4)
    tables = [versions[0], pa.concat_tables(versions[:2]), versions[2], versions[2]]
    with run(
        stream.frame(spark), JOINED, tables={"names": table}, checkpoint=tmp_path / "ck"
    ) as started:
        stream.put(batches[0])
        wait_for_batches(started, 1)
        pq.write_table(versions[1], folder / "second.parquet")
        started.refresh("names")
        stream.put(batches[1])
        wait_for_batches(started, 2)
        for path in folder.iterdir():
            path.unlink()
        pq.write_table(versions[2], folder / "third.parquet")
        started.refresh("names")
        stream.put(batches[2])
        wait_for_batches(started, 3)
        shutil.rmtree(folder)
        with pytest.raises(DataError, match=r"table 'names' cannot be read: .*exist"):
            started.refresh("names")
        stream.put(batches[3])
        wait_for_batches(started, 4)
    answers = expected(batches, [JOINED] * 4, tables=[{"names": each} for each in tables])
    assert_same_rows(started.sink.table("joined"), answers["joined"])


def _named(symbols: list[str], word: str) -> pa.Table:
    return pa.table({"symbol": symbols, "long": [f"{word} {each}" for each in symbols]})


@pytest.mark.parametrize("kind", ["frame", "files"])
def test_a_batch_waits_for_a_file_that_is_gone(
    spark: Any, tmp_path: Path, rows: pa.Table, kind: str
) -> None:
    stream = FolderStream(tmp_path / "in folder")
    batches = parts(rows, 3)
    source = muntin.files(stream.folder, schema=stream.schema, maxFilesPerTrigger=1)
    options = {
        "sink": sinks.parquet(tmp_path / "out"),
        "checkpoint": tmp_path / "ck",
        "trigger": "available_now",
    }

    def go() -> None:
        given = stream.frame(spark) if kind == "frame" else source
        run(given, COUNTS, **options).await_termination()

    stream.put(batches[0])
    stream.put(batches[1])
    file, away = stream.folder / "00001.parquet", tmp_path / "away.parquet"
    content = file.read_bytes()
    file.write_bytes(content[:100])
    # Spark leaves out files that are much older than the latest it has seen.
    os.utime(file, (1e9 + 1, 1e9 + 1))
    with pytest.raises(MuntinError):
        go()
    file.rename(away)
    for _ in range(2):
        with pytest.raises(
            MuntinError, match=r"00001.parquet, which batch 1 reads, no longer exists"
        ):
            go()
    file.write_bytes(content)
    go()
    stream.put(batches[2])
    go()
    found = sinks.read(tmp_path / "out")["counts"]
    assert_same_rows(found, expected(batches, [COUNTS] * 3)["counts"])


def test_files_of_a_batch_are_found_in_compacted_logs(tmp_path: Path) -> None:
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    (tmp_path / "offsets").mkdir()
    for batch, offset in ((0, 8), (1, 10)):
        lines = ["v1", "{}", json.dumps({"logOffset": offset})]
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(lines))
    entries = [
        json.dumps({"path": f"file:///gone%20{number}.parquet", "batchId": number})
        for number in range(12)
    ]
    (log / "9.compact").write_text("\n".join(["v1", *entries[:10]]))
    (log / "10").write_text("\n".join(["v1", entries[10]]))
    logs = SparkLogs(tmp_path)
    first, second = logs.offsets(0), logs.offsets(1)
    arrivals = Arrivals(logs, first, second)
    assert list(arrivals.missing()) == ["/gone 9.parquet", "/gone 10.parquet"]
    whole = mark(f"file:///gone%20{number}.parquet" for number in range(11))
    assert marks(logs, second) == (whole,)
    assert arrivals.added_to(marks(logs, first)) == (whole,)


def test_ctrl_c_while_spark_starts_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a call of the JVM, it would print what PySpark was doing."""
    done: list[str] = []

    class Builder:
        def appName(self, name: str) -> Builder:
            return self

        def config(self, name: str, value: str) -> Builder:
            return self

        def getOrCreate(self) -> str:
            os.kill(os.getpid(), signal.SIGINT)
            done.append("started")
            return "session"

    monkeypatch.setattr("pyspark.sql.SparkSession.builder", Builder())
    session_module: Any = importlib.import_module("muntin.spark.session")
    monkeypatch.setattr(session_module, "stop", done.append)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            session_module._create("muntin", {})
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["started", "session"]
