"""A run over a stream answers what the local engine answers, while queries come and go."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin import sinks
from muntin.api import run
from muntin.errors import DataError, MuntinError, QueryError
from muntin.queries import queries
from muntin.spark.environment.settings import PROVIDER, ROCKSDB
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.driver.handle import Run
from muntin.spark.streaming.driver.query import SMALL_STATE
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import FolderStream, expected, parts, wait_for_batches

TURNOVER = """CREATE QUERY turnover AS
  SELECT sum(price * vol) AS value FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];"""
LARGE = """CREATE QUERY large AS SELECT count(*) AS n, max(vol) AS largest
  FROM trades [RANGE '12 minutes' SLIDE '5 minutes'] WHERE vol > 5000;"""
VWAP = """CREATE QUERY vwap AS SELECT symbol, sum(price * vol) / sum(vol) AS vwap
  FROM trades [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY symbol;"""
GAPS = """CREATE QUERY gaps AS SELECT count(*) AS n, window_end AS until, avg(price) AS mean
  FROM trades [RANGE '1 minute' SLIDE '1 minute'] WHERE vol > 9000 EMIT EMPTY;"""
EXCHANGES = """CREATE QUERY exchanges AS SELECT exchange, count(*) AS n
  FROM trades [RANGE '6 minutes' SLIDE '2 minutes'] WHERE vol > 200 GROUP BY exchange;"""
JOINED = """CREATE QUERY joined AS SELECT names.long, sum(vol) AS vol
  FROM trades [RANGE '4 minutes' SLIDE '4 minutes']
  JOIN names ON trades.symbol = names.symbol GROUP BY names.long;"""


def shuffled(table: pa.Table, seed: int, seconds: int) -> pa.Table:
    """The rows in another order, each at most so many seconds away from its place."""
    random = np.random.default_rng(seed)
    ticks = table["ts"].cast(pa.int64()).to_numpy()
    return table.take(np.argsort(ticks + random.integers(0, seconds * 10**6, ticks.size)))


def test_same_answers_as_the_local_engine(spark: Any, tmp_path: Path) -> None:
    stream = FolderStream(tmp_path / "in")
    batches = parts(shuffled(trades(4500, seed=16, seconds=5000), 1, 90), 3)
    for batch in batches:
        stream.put(batch)
    text = TURNOVER + LARGE + VWAP + GAPS
    started = run(
        stream.frame(spark),
        text,
        lateness="1 minute",
        trigger="available_now",
        checkpoint=tmp_path / "ck",
        side_output=(aside := sinks.memory()),
        partitions=2,
        buckets=16,
    )
    assert started.await_termination(120)
    assert isinstance(started.sink, sinks.MemorySink)
    answers = expected(batches, [text] * 3, lateness=60_000_000)
    for name in ("turnover", "large", "vwap", "gaps"):
        assert_same_rows(started.sink.table(name), answers[name])
    progress = started.progress()
    assert not progress.is_active
    assert progress.rows == 4500
    assert progress.results == {name: table.num_rows for name, table in answers.items()}
    assert progress.late_rows > 0
    assert "4 queries over 4,500 rows in 3 batches" in str(progress)
    late, whole = aside.table("late_rows"), pa.concat_tables(batches)
    assert late.column_names == whole.column_names
    assert late.num_rows == progress.late_rows
    assert set(late["ts"].to_pylist()) <= set(whole["ts"].to_pylist())
    assert aside.table("bad_rows").num_rows == 0


def test_techniques_travel_with_the_plan(spark: Any, tmp_path: Path) -> None:
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(1800, seed=5, seconds=5000), 4)
    own = LARGE.replace("large AS", "large WITH (technique = 'daba') AS", 1)
    for count, told in ((2, {"technique": "flatfit"}), (4, {"prefer": "latency"})):
        for batch in batches[count - 2 : count]:
            stream.put(batch)
        # Another technique may be told when a run is started again.
        started = run(
            stream.frame(spark),
            VWAP + own,
            trigger="available_now",
            checkpoint=tmp_path / "ck",
            sink=sinks.parquet(tmp_path / "out"),
            partitions=1,
            buckets=2,
            **told,
        )
        assert started.await_termination(120)
        by = {
            final.name: {each.name for _, _, each in final.reads} for final in started.plan().finals
        }
        assert by == {"vwap": {told.get("technique", "running_totals")}, "large": {"daba"}}
    answers = expected(batches, [VWAP + LARGE] * 4, lateness=0)
    found = muntin.read(tmp_path / "out")
    for name in ("vwap", "large"):
        assert_same_rows(found[name], answers[name])


def test_queries_join_and_leave(spark: Any, tmp_path: Path) -> None:
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(3000, seed=3, seconds=6000), 6)
    symbols = pa.array(batches[0]["symbol"].unique().to_pylist()[:2])
    names = [pa.table({"symbol": symbols, "long": [f"{v} 0", f"{v} 1"]}) for v in "ab"]
    sets = []
    with run(
        stream.frame(spark),
        VWAP,
        checkpoint=tmp_path / "ck",
        partitions=1,
        buckets=3,
    ) as started:

        def step() -> None:
            sets.append(started.queries())
            stream.put(batches[len(sets) - 1])
            wait_for_batches(started, len(sets))

        # Nothing has come so far, and nothing is due.
        assert not started.await_termination(0.2)
        assert (started.progress().batches, started.progress().watermark) == (0, None)
        step()
        # A column that no query has read so far, and one that there is not.
        with never_ends(started):
            started.add(EXCHANGES)
        with pytest.raises(QueryError, match="nope"):
            started.add("CREATE QUERY bad AS SELECT sum(nope) FROM t [RANGE '1 min' SLIDE '1 min']")
        step()
        with pytest.raises(QueryError, match="names"):
            started.add(JOINED)
        # No query joins it yet, so its columns may change.
        started.update_table("names", names[0].drop_columns("long"))
        started.update_table("Names", names[0])
        started.add([TURNOVER, JOINED])
        started.remove("vwap")
        with pytest.raises(QueryError, match="already"):
            started.add(TURNOVER)
        step()
        started.add(TURNOVER.replace("CREATE", "CREATE OR REPLACE").replace("15 min", "10 min"))
        with pytest.raises(DataError, match="columns of table 'names' have changed"):
            started.update_table("names", names[1].drop_columns("long"))
        with pytest.raises(DataError, match="no table 'nams'"):
            started.update_table("nams", names[1])
        started.update_table("names", names[1])
        step()
        for query in started.queries():
            started.remove(query.name)
        step()
        started.add(VWAP)
        step()
        assert [query.name for query in started.queries()] == ["vwap"]
    assert not started.is_active
    with pytest.raises(MuntinError, match="has ended"):
        started.add(TURNOVER)
    tables = [{"names": names[number > 2]} for number in range(6)]
    answers = expected(batches, sets, tables=tables)
    assert set(answers) == {"vwap", "exchanges", "turnover", "joined"}
    for name, table in answers.items():
        assert_same_rows(started.sink.table(name), table)


@contextmanager
def never_ends(started: Run) -> Iterator[None]:
    """Looks at a run again and again while a block runs: it is active all the while."""
    seen: Counter[bool] = Counter()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            seen[started.is_active] += 1
            assert not started.await_termination(0.001)

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield
        finally:
            is_over.set()
        looking.result()
    assert seen[True]
    assert not seen[False]


def test_restart_goes_on_with_its_queries(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "muntin.spark")
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(3000, seed=7, seconds=5000), 3)
    options = {"sink": sinks.parquet(tmp_path / "out"), "checkpoint": tmp_path / "ck"}
    stream.put(batches[0])
    with run(stream.frame(spark), TURNOVER + LARGE, partitions=1, **options) as started:
        wait_for_batches(started, 1)
        with pytest.raises(MuntinError, match="another run holds the checkpoint"):
            run(stream.frame(spark), VWAP, **options)
        started.add(VWAP)
        started.remove("turnover")
    stream.put(batches[1])
    with run(stream.frame(spark), TURNOVER + LARGE, **options) as started:
        assert [query.name for query in started.queries()] == ["large", "vwap"]
        wait_for_batches(started, 2)
    assert "turnover was removed while the stream ran" in caplog.text
    changed = FolderStream(tmp_path / "in", stream.schema.replace("vol bigint", "vol int"))
    with pytest.raises(MuntinError, match="'vol' of the stream is int32, and was int64"):
        run(changed.frame(spark), LARGE, **options)
    wider = LARGE.replace("12 minutes", "20 minutes")
    stream.put(batches[2])
    started = run(stream.frame(spark), wider + EXCHANGES, partitions=2, **options)
    wait_for_batches(started, 3)
    started.stop(flush=True)
    assert "query large replaces the one of its name" in caplog.text
    sets = [TURNOVER + LARGE, LARGE + VWAP, wider + VWAP + EXCHANGES]
    output = sinks.read(tmp_path / "out")
    for name, table in expected(batches, sets, close=True).items():
        assert_same_rows(output[name], table)
    with pytest.raises(MuntinError, match="flush=True"):
        run(stream.frame(spark), wider, **options)


def test_a_checkpoint_in_rocksdb_goes_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark goes on with the store that it notes in a checkpoint, to the last batch."""
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(3000, seed=8, seconds=5000), 3)
    options = {"sink": sinks.parquet(tmp_path / "out"), "checkpoint": tmp_path / "ck"}
    stream.put(batches[0])
    with monkeypatch.context() as patch:
        patch.setitem(SMALL_STATE, PROVIDER, ROCKSDB)
        with run(stream.frame(spark), VWAP, partitions=1, **options) as started:
            wait_for_batches(started, 1)
    stream.put(batches[1])
    with run(stream.frame(spark), VWAP, **options) as started:
        wait_for_batches(started, 2)
    stream.put(batches[2])
    started = run(stream.frame(spark), VWAP, **options)
    wait_for_batches(started, 3)
    started.stop(flush=True)
    state = tmp_path / "ck" / "spark" / "state" / "0" / "0"
    assert {path.suffix for path in state.glob("[0-9]*")} <= {".changelog", ".zip"}
    answers = expected(batches, [VWAP] * 3, close=True)
    assert_same_rows(sinks.read(tmp_path / "out")["vwap"], answers["vwap"])


@pytest.mark.parametrize(("partitions", "buckets"), [(2, 16), (7, 21), (16, 16)])
def test_buckets_are_spread_evenly(spark: Any, partitions: int, buckets: int) -> None:
    keys = pa.table({"key": pa.array(Buckets(partitions, buckets).keys, pa.int32())})
    rows = spark.createDataFrame(keys).selectExpr(f"pmod(hash(key), {partitions}) AS place")
    assert [row.place for row in rows.collect()] == [k % partitions for k in range(buckets)]


def test_refused_before_anything_starts(spark: Any, tmp_path: Path) -> None:
    frame = FolderStream(tmp_path / "in").frame(spark)
    bounded = spark.range(3)
    out = sinks.parquet(tmp_path / "out")
    for data, options, words in [
        (bounded, {}, "^the DataFrame is bounded, not a stream"),
        ({"trades": frame, "ids": bounded}, {}, "^stream ids: the DataFrame is bounded"),
        (pa.table({"ts": [1]}), {}, "type Table"),
        (frame, {"lateness": 5}, "no unit"),
        (frame, {"trigger": "5 bananas"}, "bananas"),
        (frame, {"time": "nope"}, "no time column"),
        (frame, {"partitions": 4, "buckets": 2}, "2 buckets for 4 partitions"),
        (frame, {"name": "quotes"}, "no input 'trades'"),
        (frame, {"checkpoint": "s3://bucket/ck"}, "local file system"),
        (frame, {"on_error": "skip"}, "on_error must be null or fail, not 'skip'"),
        (frame, {"sink": out, "side_output": tmp_path / "out"}, "goes where the results go"),
        (frame, {"side_output": 7}, "side output is of type int"),
    ]:
        with pytest.raises(MuntinError, match=words):
            run(data, TURNOVER, **{"checkpoint": tmp_path / "ck", **options})
    (tmp_path / "ck" / "muntin.json").write_text('{"format": 99}')
    with pytest.raises(MuntinError, match="has format 99"):
        run(frame, TURNOVER, checkpoint=tmp_path / "ck")
    with pytest.raises(MuntinError, match="files other than a checkpoint"):
        run(frame, TURNOVER, checkpoint=tmp_path)
    rows = "SELECT sum(vol) FROM trades [ROWS 5 SLIDE 5]"
    with pytest.raises(MuntinError, match="bounded data only"):
        run(frame, queries(rows), checkpoint=tmp_path / "ck2")
