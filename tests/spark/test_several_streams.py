"""Several streams in one Spark query: each answers what it would answer in a run of its own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin import sinks
from muntin.api import run
from muntin.errors import MuntinError
from muntin.spark.streaming.checkpoint.records import (
    BatchOutcome,
    BatchRecord,
    StreamOutcome,
    StreamRecord,
)
from muntin.spark.streaming.driver.handle import Run
from muntin.spark.streaming.problems import CheckpointError
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import PATIENCE, FolderStream, expected, parts, wait_for_batches
from spark.test_run import shuffled

SECOND = 1_000_000
CLICKS_SCHEMA = "at timestamp, page string, cost double"
VISITS = """CREATE QUERY visits AS SELECT page, count(*) AS n, sum(cost) AS cost
  FROM clicks [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY page;"""
COSTLY = """CREATE QUERY costly AS SELECT max(cost) AS most
  FROM clicks [RANGE '4 minutes' SLIDE '2 minutes'] WHERE cost > 20;"""
TURNOVER = """CREATE QUERY turnover AS
  SELECT sum(price * vol) AS value FROM orders [RANGE '15 minutes' SLIDE '5 minutes'];"""
VWAP = """CREATE QUERY vwap AS SELECT symbol, sum(price * vol) / sum(vol) AS vwap
  FROM orders [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY symbol;"""
NAMED = """CREATE QUERY named AS SELECT names.long, sum(vol) AS vol
  FROM orders [RANGE '4 minutes' SLIDE '4 minutes']
  JOIN names ON orders.symbol = names.symbol GROUP BY names.long;"""


def clicks(rows: int, seed: int, seconds: int = 5000) -> pa.Table:
    """Rows of a second stream, whose times have another name."""
    table = trades(rows, seed=seed, seconds=seconds)
    return pa.table({"at": table["ts"], "page": table["symbol"], "cost": table["price"]})


def as_orders(batches: list[pa.Table]) -> list[pa.Table]:
    """Clicks with the name of the time column that the local engine is told."""
    return [batch.rename_columns(["ts", "page", "cost"]) for batch in batches]


def test_each_stream_answers_as_in_a_run_of_its_own(spark: Any, tmp_path: Path) -> None:
    first, second = FolderStream(tmp_path / "c", CLICKS_SCHEMA), FolderStream(tmp_path / "o")
    # One stream is over two batches before the other.
    clicked = parts(clicks(900, seed=1, seconds=3000), 2)
    ordered = parts(shuffled(trades(2400, seed=2, seconds=5000), 1, 90), 4)
    for batch in clicked:
        first.put(batch)
    for batch in ordered:
        second.put(batch)
    names = pa.table({"symbol": ordered[0]["symbol"].unique().to_pylist()[:2], "long": ["a", "b"]})
    aside = sinks.memory()
    started = run(
        {
            "orders": second.frame(spark),
            "clicks": muntin.files(str(first.folder), schema=CLICKS_SCHEMA, maxFilesPerTrigger=1),
        },
        VISITS + COSTLY + TURNOVER + VWAP + NAMED,
        {"clicks": "at", "orders": "ts"},
        lateness={"Orders": "1 minute"},
        tables={"names": names},
        trigger="available_now",
        side_output=aside,
        checkpoint=tmp_path / "ck",
        partitions=2,
        buckets=4,
    )
    assert started.await_termination(PATIENCE)
    answers = expected(as_orders(clicked), [VISITS + COSTLY] * 2)
    answers |= expected(
        ordered, [TURNOVER + VWAP + NAMED] * 4, lateness=60 * SECOND, tables=[{"names": names}] * 4
    )
    assert isinstance(started.sink, sinks.MemorySink)
    for name, table in answers.items():
        assert_same_rows(started.sink.table(name), table)
    progress = started.progress()
    assert progress.results == {name: table.num_rows for name, table in answers.items()}
    assert (progress.batches, progress.rows) == (4, 3300)
    of_clicks, of_orders = progress.streams["clicks"], progress.streams["orders"]
    assert (of_clicks.rows, of_orders.rows) == (900, 2400)
    assert (of_clicks.late_rows, progress.late_rows) == (0, of_orders.late_rows)
    assert of_orders.late_rows == aside.table("late_rows_orders").num_rows > 0
    assert aside.table("late_rows_orders").column_names == ordered[0].column_names
    assert progress.watermark == of_clicks.watermark
    assert progress.held_by == "clicks"
    assert progress.gap == of_orders.watermark - of_clicks.watermark > 0
    assert str(progress).endswith("clicks is 1943 seconds behind the stream that is furthest")
    assert [final.name for final in started.plan("Clicks").finals] == ["visits", "costly"]
    with pytest.raises(MuntinError, match="there are several streams"):
        started.plan()


def test_changes_restarts_and_a_batch_that_is_run_again(spark: Any, tmp_path: Path) -> None:
    first, second = FolderStream(tmp_path / "c", CLICKS_SCHEMA), FolderStream(tmp_path / "o")
    clicked = parts(clicks(1200, seed=3), 4)
    ordered = parts(trades(1200, seed=4, seconds=5000), 4)
    out, checkpoint = tmp_path / "out", tmp_path / "ck"

    def start(**others: Any) -> Run:
        given = muntin.files(str(first.folder), schema=CLICKS_SCHEMA, maxFilesPerTrigger=1)
        streams: dict[str, Any] = {"clicks": given, "orders": second.frame(spark)}
        if others:
            # The order of streams is not the caller's.
            streams = dict(reversed(streams.items()))
        return run(
            streams,
            VISITS + TURNOVER,
            {"clicks": "at"},
            sink=sinks.parquet(out),
            checkpoint=checkpoint,
            partitions=1,
            buckets=3,
            **others,
        )

    def put(number: int) -> None:
        first.put(clicked[number])
        second.put(ordered[number])

    # Both files are there when Spark looks first.
    put(0)
    with start() as started:
        wait_for_batches(started, 1)
        with pytest.raises(MuntinError, match="no input 'payments'"):
            started.add(VISITS.replace("visits", "paid").replace("FROM clicks", "FROM payments"))
        # A column of the other stream that no query has read so far.
        started.add([COSTLY, VWAP])
        started.remove("turnover")
    put(1)
    done = start(trigger="available_now")
    assert done.await_termination(PATIENCE)
    before = outcome(checkpoint, 1)
    assert [stream["rows"] for stream in before["streams"]] == [600, 600]
    # As if the driver had died before Spark's commit: the batch is run again by its record.
    for name in ("1", ".1.crc"):
        (checkpoint / "spark" / "commits" / name).unlink()
    put(2)
    done = start(trigger="available_now")
    assert done.await_termination(PATIENCE)
    assert outcome(checkpoint, 1) == before
    for other in ("clicks", "payments"):
        with pytest.raises(CheckpointError, match="begun over other streams: clicks, orders") as no:
            run(
                {"orders": second.frame(spark), other: second.frame(spark)}
                if other != "clicks"
                else {"orders": second.frame(spark)},
                TURNOVER,
                checkpoint=checkpoint,
            )
        assert "Give the streams that it was begun with" in str(no.value)
    put(3)
    with start() as started:
        wait_for_batches(started, 4)
        started.stop(flush=True)
    answers = expected(as_orders(clicked), [VISITS, *[VISITS + COSTLY] * 3], close=True)
    answers |= expected(ordered, [TURNOVER, *[VWAP] * 3], close=True)
    found = sinks.read(out)
    for name, table in answers.items():
        assert_same_rows(found[name], table)
    assert json.loads((checkpoint / "muntin.json").read_bytes())["format"] == 6


def outcome(checkpoint: Path, batch: int) -> dict[str, Any]:
    path = checkpoint / "batches" / f"{batch:020d}.outcome.json"
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


PER_SECOND = """
CREATE QUERY clicked AS SELECT count(*) AS n FROM clicks [RANGE '1 s' SLIDE '1 s'];
CREATE QUERY ordered AS SELECT count(*) AS n FROM orders [RANGE '1 s' SLIDE '1 s'];
"""


def at(*seconds: float) -> pa.Table:
    times = pa.array([int(second * SECOND) for second in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": times})


def test_an_idle_stream_takes_the_watermark_of_the_others(spark: Any, tmp_path: Path) -> None:
    """
    clicks  1.5          |          |       | 2.5 (late)  9.2
    orders      1.5  5.5 | 7.5      | 8.5   |
    W       1.5      5.5 |          | 7.5   |
    """
    first, second = (FolderStream(tmp_path / name, "ts timestamp") for name in "co")
    first.put(at(1.5))
    second.put(at(1.5, 5.5))

    def start() -> Run:
        streams = {"clicks": first.frame(spark), "orders": second.frame(spark)}
        return run(
            streams,
            PER_SECOND,
            idle={"clicks": "1 second"},
            sink=sinks.parquet(tmp_path / "out"),
            checkpoint=tmp_path / "ck",
            partitions=1,
            buckets=1,
        )

    def counts(name: str) -> list[int]:
        found = sinks.read(tmp_path / "out").get(name)
        return [] if found is None else [each.second for each in found["window_end"].to_pylist()]

    with start() as started:
        wait_for_batches(started, 1)
        assert (counts("clicked"), counts("ordered")) == ([], [2])
        wait_until_idle(started)
        second.put(at(7.5))
        wait_for_batches(started, 2)
        # It has what W of the orders was before the batch.
        assert started.progress().streams["clicks"].watermark == 5.5 * SECOND
        assert (counts("clicked"), counts("ordered")) == ([2], [2, 6])
    before = outcome(tmp_path / "ck", 1)
    for name in ("1", ".1.crc"):
        (tmp_path / "ck" / "spark" / "commits" / name).unlink()
    first.put(at(2.5, 9.2))
    with start() as started:
        wait_for_batches(started, 3)
        assert outcome(tmp_path / "ck", 1) == before
        of_clicks = started.progress().streams["clicks"]
        assert (of_clicks.rows, of_clicks.late_rows) == (3, 1)
        assert of_clicks.watermark == 9.2 * SECOND
        assert started.progress().held_by == "orders"
    assert (counts("clicked"), counts("ordered")) == ([2], [2, 6])


def wait_until_idle(started: Run) -> None:
    deadline = time.monotonic() + PATIENCE
    while not started.progress().streams["clicks"].is_idle:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_refused_before_anything_starts(spark: Any, tmp_path: Path) -> None:
    frame = FolderStream(tmp_path / "in").frame(spark)
    plain = FolderStream(tmp_path / "plain", "ts bigint").frame(spark)
    other = FolderStream(tmp_path / "in").frame(spark.newSession())
    both = {"orders": frame, "clicks": frame}
    for streams, options, words in [
        ({}, {}, "there are no streams"),
        ({"orders": frame, "Orders": frame}, {}, "differ only in letter case"),
        ({"my orders": frame}, {}, "'my orders' cannot be the name"),
        (both, {"name": "orders"}, "have names already"),
        (both, {"time": {"order": "ts"}}, "time is given for a stream 'order'"),
        (both, {"lateness": {"orders": 5}}, "no unit"),
        (both, {"idle": 5}, "idle must be a positive duration"),
        ({"orders": frame, "clicks": plain}, {"idle": "1 minute"}, "are numbers and those of"),
        ({"orders": frame, "clicks": other}, {}, "different Spark sessions"),
        ({"clicks": frame}, {}, "no input 'orders'"),
    ]:
        with pytest.raises(MuntinError, match=words):
            run(streams, TURNOVER, **{"checkpoint": tmp_path / "ck", **options})


def test_a_single_stream_is_written_as_before() -> None:
    """Records of a single stream have no list of streams: runs from before go on."""
    record = BatchRecord(3, (StreamRecord("p", "q", 5, 4, 1, 9, 7),), 11, {"t": "v"})
    content = record.to_content()
    assert content == {
        "batch": 3,
        "plan": "p",
        "before": "q",
        "seen": 5,
        "watermark": 4,
        "lateness": 1,
        "horizon": 9,
        "clock": 11,
        "tables": {"t": "v"},
        "changes": 0,
        "offsets": (),
        "arrivals": (),
        "is_closing": False,
        "moment": 7,
    }
    assert BatchRecord.of_content(content) == record
    two = BatchOutcome(3, (StreamOutcome(2, state="p", seen=5), StreamOutcome(state="q")), {"n": 1})
    assert [each["rows"] for each in two.to_content()["streams"]] == [2, 0]
    assert BatchOutcome.of_content(two.to_content()) == two
