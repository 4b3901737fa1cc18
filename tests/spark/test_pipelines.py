"""SQL files on Spark: streams, tables and sinks of every kind that needs no server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from muntin import aggregate, pipelines, sinks
from muntin.errors import MuntinError, UnknownQueryError
from muntin.pipelines import rate
from muntin.pipelines.runner import decoded, open_stream
from muntin.spark.streaming.problems import CheckpointError, RunError
from muntin.testing import assert_same_rows, trades

COLUMNS = "(ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT, exchange STRING)"
TOTAL = """CREATE QUERY total AS
  SELECT sum(price * vol) AS value FROM old [RANGE '15 minutes' SLIDE '5 minutes'];"""
JOINED = """CREATE QUERY joined AS SELECT company, count(*) AS n
  FROM old [RANGE '10 minutes' SLIDE '5 minutes'] JOIN names USING (symbol) GROUP BY company;"""

RECENT = "CREATE KEEP recent AS SELECT count(*) FROM old [RANGE '2 hours' SLIDE '1 minute']"


def put_csv(folder: Path, name: str, table: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pyarrow.csv.write_csv(table, folder / f".{name}")
    (folder / f".{name}").rename(folder / name)


def wait(running: Any, is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_done():
        running.poll()
        assert time.monotonic() < deadline, running.progress()
        time.sleep(0.05)


def test_once_with_several_sinks(spark: Any, tmp_path: Path) -> None:
    """A query that goes to two sinks, one that goes to the screen, and a torn line."""
    rows = trades(900, seed=2, seconds=3000)
    put_csv(tmp_path / "in", "a.csv", rows)
    put_csv(tmp_path / "in", "b.csv", rows.slice(0, 0))
    with (tmp_path / "in" / "b.csv").open("a") as file:
        file.write("torn\n")
    names = pa.table({"symbol": ["A", "B"], "company": ["Alder", "Birch"]})
    put_csv(tmp_path, "names.csv", names)
    text = f"""
        CREATE STREAM old {COLUMNS} WITH (format = 'csv', path = '{tmp_path}/in');
        CREATE TABLE names (symbol STRING, company STRING)
          WITH (format = 'csv', path = '{tmp_path}/names.csv');
        CREATE SINK files FOR total WITH (format = 'parquet', path = '{tmp_path}/out');
        CREATE SINK kept FOR total WITH (format = 'memory');
        {TOTAL}{JOINED}"""
    pipeline, screen, watched = pipelines.read(text), sinks.memory(), []
    running = pipelines.run(
        pipeline,
        tmp_path / "ck",
        once=True,
        session=spark,
        screen=screen,
        watcher=lambda batch, query, row: watched.append((query, row.num_rows)),
    )
    assert running.await_termination(120)
    running.stop()
    assert running.progress()["old"].bad_rows == 1
    answers = aggregate(rows, list(pipeline.queries["old"]), "ts", tables={"names": names})
    for found in (sinks.read(tmp_path / "out")["total"], running.sinks["old"]["kept"]["total"]):
        assert_same_rows(found, answers["total"])
    assert_same_rows(screen["joined"], answers["joined"])
    assert set(watched) == {("total", 1)}
    with pytest.raises(MuntinError, match="more rows may belong to"):
        pipelines.run(pipeline, tmp_path / "ck", session=spark, screen=screen)


def test_two_streams_that_queries_join_and_leave(spark: Any, tmp_path: Path) -> None:
    put_csv(tmp_path / "in", "a.csv", trades(300, seed=3, seconds=3000))
    names = tmp_path / "names.csv"
    names.write_text("symbol,company\nA,Alder\n")
    text = f"""
        CREATE STREAM old {COLUMNS} WITH (format = 'csv', path = '{tmp_path}/in');
        CREATE STREAM live WITH (format = 'rate', rows_per_second = 200, symbols = 40);
        CREATE STREAM idle WITH (format = 'rate');
        CREATE TABLE names (symbol STRING, company STRING)
          WITH (format = 'csv', path = '{names}', refresh = '100 milliseconds');
        CREATE SINK files WITH (format = 'parquet', path = '{tmp_path}/out');
        {JOINED}
        {RECENT.replace("recent", "filed")};
        CREATE QUERY seconds AS SELECT count(*) AS n FROM live [RANGE '1 second' SLIDE '1 second'];
        """
    with pipelines.run(pipelines.read(text), tmp_path / "ck", session=spark) as running:
        wait(running, lambda: running.progress()["old"].rows == 300)
        assert running.add(TOTAL) == ["total"]
        assert running.keep(RECENT) == ["recent"]
        with pytest.raises(MuntinError, match="read the streams live, old"):
            running.add("DROP QUERY total; DROP QUERY seconds")
        with pytest.raises(MuntinError, match="named total over another stream"):
            running.add(TOTAL.replace("old", "live"))
        with pytest.raises(MuntinError, match="no query of the file reads idle"):
            running.add(TOTAL.replace("old", "idle"))
        with pytest.raises(UnknownQueryError, match="did you mean total"):
            running.drop("totl")
        before = running.runs["old"]._planner.tables.versions["names"]
        names.write_text("symbol,company\nA,Alder\nB,Birch\n")
        wait(running, lambda: running.runs["old"]._planner.tables.versions["names"] != before)
        put_csv(tmp_path / "in", "b.csv", trades(300, seed=4, seconds=3000, start=1381156000000000))
        put_csv(tmp_path / "in", "c.csv", trades(300, seed=4, seconds=3000, start=1381160000000000))
        wait(running, lambda: running.progress()["live"].results.get("seconds", 0) > 2)
        wait(running, lambda: running.progress()["old"].rows == 900)
        # The newest file, and the minute before its first row: all of it is in whole slices.
        question = "SELECT count(*) AS n FROM {} [RANGE '51 minutes' ALIGNED]"
        answer = running.ask(question.format("Old"), timeout="1 minute")
        assert (answer.table["n"].to_pylist(), answer.exact) == ([300], True)
        facts = running.keep_facts()["old"]
        assert [each["name"] for each in facts] == ["filed", "recent"]
        assert all(each["entries"] > 0 for each in facts)
        with pytest.raises(MuntinError, match="nothing is kept of live"):
            running.ask(question.format("live"))
        running.drop("SECONDS")
        assert [query.name for query in running.queries()["old"]] == ["joined", "total"]
        assert running.queries()["live"] == []
    assert set(sinks.read(tmp_path / "out" / "old")["joined"]["company"].to_pylist()) == {
        "Alder",
        "Birch",
    }
    per_second = sinks.read(tmp_path / "out" / "live")["seconds"]["n"].to_pylist()
    assert 200 in per_second


def test_a_stream_that_fails_is_said(spark: Any, tmp_path: Path) -> None:
    put_csv(tmp_path / "in", "a.csv", trades(30, seed=3).slice(0, 0))
    with (tmp_path / "in" / "a.csv").open("a") as file:
        file.write("torn\n")
    text = f"""
        CREATE STREAM old {COLUMNS}
          WITH (format = 'csv', path = '{tmp_path}/in', on_bad_row = 'fail');{TOTAL}"""
    running = pipelines.run(pipelines.read(text), tmp_path / "ck", once=True, session=spark)
    with pytest.raises(MuntinError, match="batch 0 has 1 row without a usable time"), running:
        running.await_termination(120)


def test_an_end_that_fails_can_be_come_to_again(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One of two streams cannot write its last results: the other is complete all the same."""
    rows = trades(60, seed=6, seconds=3000)
    put_csv(tmp_path / "in", "a.csv", rows)
    text = "".join(
        f"""
        CREATE STREAM {name} {COLUMNS} WITH (format = 'csv', path = '{tmp_path}/in');
        CREATE QUERY n_{name} AS SELECT count(*) AS n FROM {name} [RANGE '9 days' SLIDE '9 days'];
        """
        for name in ("bad", "good")
    )
    pipeline = pipelines.read(
        f"{text} CREATE SINK files WITH (format = 'parquet', path = '{tmp_path}/out');"
    )
    sinks.parquet(tmp_path / "out" / "bad").declare({})
    blocked = tmp_path / "out" / "bad" / "n_bad"
    blocked.write_text("a file, where a folder is wanted")
    running = pipelines.run(pipeline, tmp_path / "ck", once=True, session=spark)
    deadline = time.monotonic() + 120
    while {found.rows for found in running.progress().values()} != {60}:
        assert time.monotonic() < deadline, running.progress()
        time.sleep(0.05)
    with pytest.raises(RunError, match="cannot write results to"):
        running.stop(flush=True)
    assert sinks.read(tmp_path / "out" / "good")["n_good"]["n"].to_pylist() == [60]
    blocked.unlink()
    with pipelines.run(pipeline, tmp_path / "ck", once=True, session=spark) as running:
        assert running.await_termination(120)
    assert "stream good is complete" in caplog.text
    for name in ("bad", "good"):
        found = sinks.read(tmp_path / "out" / name)[f"n_{name}"]
        assert found["n"].to_pylist() == [60]
    with pytest.raises(CheckpointError, match="is complete"):
        pipelines.run(pipeline, tmp_path / "ck", once=True, session=spark)


def test_generated_trades(spark: Any) -> None:
    numbered = spark.range(5000).selectExpr("timestamp_seconds(id) AS timestamp", "id AS value")
    rows = rate.trades(numbered, symbols=800, seed=7).toArrow()
    assert rows.schema.names == trades(1).schema.names
    assert rows.schema.types == trades(1).schema.types
    assert rows.equals(rate.trades(numbered, symbols=800, seed=7).toArrow())
    assert not rows.equals(rate.trades(numbered, symbols=800, seed=8).toArrow())
    symbols = rows["symbol"].value_counts().to_pylist()
    busiest = max(symbols, key=lambda each: each["counts"])
    assert busiest["values"] == "A"
    assert max(len(each["values"]) for each in symbols) == 3
    volumes = rows["vol"].to_pylist()
    assert 2200 < volumes.count(100) < 2800
    assert min(volumes) >= 1
    assert rows.column("price").null_count == 0


@pytest.mark.parametrize("form", ["json", "csv"])
def test_messages_of_kafka(spark: Any, form: str) -> None:
    text = f"""CREATE STREAM orders (`at time` TIMESTAMP, `it's` DECIMAL(10, 2))
      WITH (format = 'kafka', kafka.bootstrap.servers = 'nowhere:1', subscribe = 'orders',
            value_format = '{form}', time = 'at time')"""
    (stream,) = pipelines.read(text).streams
    good = {"json": '{"at time": "2024-01-01T00:00:00Z", "it\'s": 1.25}'}
    message = good.get(form, "2024-01-01T00:00:00Z,1.25").encode()
    sent = [(bytearray(message),), (bytearray(b"{torn"),), (None,)]
    rows = decoded(spark.createDataFrame(sent, "value binary"), stream).toArrow()
    assert rows.schema.remove_metadata() == stream.schema
    assert [str(row) for row in rows["it's"].to_pylist()] == ["1.25", "None", "None"]
    with pytest.raises(MuntinError, match="spark-sql-kafka"):
        open_stream(spark, stream)
