"""Expressions on Spark mean what they mean in the session's time zone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from expressions import conformance, zoned
from expressions.conformance import Answer
from expressions.test_zones import together
from muntin.errors import DataError
from muntin.expressions.zone_names import zone
from muntin.spark import SparkWarning
from muntin.spark.environment.zones import session_zone
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint, load_table
from muntin.spark.streaming.driver.tables import StaticTables
from muntin.testing import assert_same_rows
from spark.folder_stream import FolderStream
from spark.live_expressions import evaluated

NEW_YORK = "America/New_York"
TIME_ZONE = "spark.sql.session.timeZone"
SEED, COUNT = 2013, 120


@pytest.fixture
def in_zone(spark: Any) -> Iterator[Callable[[str], None]]:
    """Sets the session's zone, which is the usual one again after the test."""
    before = spark.conf.get(TIME_ZONE)
    yield lambda name: spark.conf.set(TIME_ZONE, name)
    spark.conf.set(TIME_ZONE, before)


def live(spark: Any, texts: list[str]) -> dict[str, Answer]:
    """Spark's answers; Arrow shows its timestamps in the session's zone."""
    found = evaluated(spark, zoned.table(), texts)
    return {
        text: replace(each, type=re.sub(r"tz=[^\]]*", "tz=UTC", each.type))
        for text, each in found.items()
    }


def test_golden_file_is_what_spark_says(spark: Any, in_zone: Callable[[str], None]) -> None:
    """Set MUNTIN_UPDATE_GOLDEN=1 to store the answers instead of comparing them."""
    found = {}
    for name in zoned.ZONES:
        in_zone(name)
        found[name] = live(spark, zoned.cases())
    if os.environ.get("MUNTIN_UPDATE_GOLDEN"):
        zoned.save_golden(found)
    assert zoned.load_golden() == found


@pytest.mark.parametrize("name", zoned.RANDOM_ZONES)
def test_random_expressions(spark: Any, in_zone: Callable[[str], None], name: str) -> None:
    """Over columns and over constants, around the changes of clocks."""
    in_zone(name)
    texts = zoned.Expressions(SEED).draw(COUNT)
    ours, theirs = together(zoned.table(), texts, session_zone(spark)), live(spark, texts)
    found = {text: conformance.differences(ours[text], theirs[text]) for text in texts}
    assert not {text: lines for text, lines in found.items() if lines}


def test_rules_are_those_of_the_jvm(spark: Any) -> None:
    """The databases agree where nothing has changed lately, told in very different ways."""
    times = np.arange(0, 10**11, 100_003)
    for name in ("America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Asia/Kolkata"):
        assert (session_zone(spark, name).offsets_at(times) == zone(name).offsets_at(times)).all()
    with pytest.raises(DataError, match="there is no time zone 'Mars/Phobos'"):
        session_zone(spark, "Mars/Phobos")


# 26 hours around the night in which New York's clocks went back, a row every ten minutes.
START = 1_383_426_000_000_000
ROWS = pa.table(
    {
        "ts": pa.array([START + i * 600_000_000 for i in range(156)], pa.timestamp("us", "UTC")),
        "v": pa.array(range(156), pa.int64()),
    }
)
DAYS = pa.table({"day": pa.array([16_012, 16_013], pa.int32()).cast(pa.date32()), "w": [2, 3]})
# Everywhere an expression may stand: SQL of Spark's, with its windows for ours.
METRICS = {
    "filtered": "SELECT {w} count(*) AS n FROM t WHERE ts >= '2013-11-03 01:30:00' GROUP BY {g}",
    "grouped": "SELECT {w} hour(ts) AS h, sum(v) AS s FROM t GROUP BY {g}, hour(ts)",
    "daily": "SELECT {w} cast(ts AS date) AS d, max(v) AS m FROM t GROUP BY {g}, cast(ts AS date)",
    "measured": "SELECT {w} sum(hour(ts) * 60 + minute(ts)) AS m, max(date_trunc('day', ts)) AS d"
    " FROM t GROUP BY {g}",
    "part": "SELECT {w} count(*) FILTER (WHERE hour(ts) BETWEEN 1 AND 2) AS n FROM t GROUP BY {g}",
    "shown": "SELECT {w} hour(max(ts)) AS h, cast(min(ts) AS string) AS s FROM t GROUP BY {g}",
    "having": "SELECT {w} count(*) AS n FROM t GROUP BY {g}"
    " HAVING max(ts) < '2013-11-03 03:00:00' AND hour(min(ts)) > 0",
    "joined": "SELECT {w} sum(v * w) AS s FROM t JOIN days ON cast(ts AS date) = days.day"
    " GROUP BY {g}",
    "midnight": "SELECT {w} sum(v * w) AS s FROM t JOIN days ON date_trunc('day', ts) = days.day"
    " GROUP BY {g}",
}
WINDOW = "window(ts, '2 hours', '1 hour')"


def ours(name: str) -> str:
    return f"CREATE QUERY {name} AS {METRICS[name].format(w='', g=WINDOW)};"


ALL = "".join(map(ours, METRICS))


def assert_same_results(found: Any, expected: Any) -> None:
    """Times as instants, in whatever zone they are shown."""
    for name in METRICS:
        assert_same_rows(found.table(name), expected.table(name).cast(found.table(name).schema))


def theirs(spark: Any, frame: Any, name: str) -> pa.Table:
    frame.createOrReplaceTempView("t")
    spark.createDataFrame(DAYS).createOrReplaceTempView("days")
    bounds = "window.start AS window_start, window.end AS window_end,"
    return spark.sql(METRICS[name].format(w=bounds, g=WINDOW)).toArrow()


def test_queries_mean_what_they_mean_in_the_session(
    spark: Any, in_zone: Callable[[str], None], tmp_path: Path
) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    in_zone(NEW_YORK)
    frame = spark.createDataFrame(ROWS)
    results = muntin.aggregate(frame, ALL, "ts", tables={"days": DAYS})
    for name in METRICS:
        expected = theirs(spark, frame, name)
        assert expected.num_rows
        assert_same_rows(results.table(name), expected.cast(results.table(name).schema))
    read = muntin.aggregate(
        muntin.files(str(tmp_path / "rows.parquet")), ALL, "ts", tables={"days": DAYS}
    )
    local = muntin.aggregate(ROWS, ALL, "ts", tables={"days": DAYS}, timezone=NEW_YORK)
    assert_same_results(read, local)
    assert_same_results(results, local)
    in_zone("UTC")
    asked = muntin.aggregate(frame, ALL, "ts", tables={"days": DAYS}, timezone=NEW_YORK)
    assert_same_results(asked, local)
    with pytest.raises(DataError, match="there is no time zone"):
        muntin.aggregate(frame, ALL, "ts", tables={"days": DAYS}, timezone="New York")


def test_text_is_read_in_the_zone(
    spark: Any, in_zone: Callable[[str], None], tmp_path: Path
) -> None:
    """Times that are skipped or come twice, by workers and by Spark's own reader."""
    times = ["2013-03-10 01:59:59", "2013-03-10 02:30:00", "2013-11-03 01:30:00"]
    lines = ["ts,v", *(f"{text},{i}" for i, text in enumerate(times))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n", "utf-8")
    query = "SELECT unix_seconds(max(ts)) AS t FROM s [RANGE '1 second' SLIDE '1 second']"
    instants = [1_362_898_799, 1_362_900_600, 1_383_456_600]
    files = muntin.files(str(tmp_path), "csv", schema="ts TIMESTAMP, v INT", header=True)
    by_spark = muntin.files(
        str(tmp_path), "csv", schema="ts TIMESTAMP, v INT", header=True, mode="PERMISSIVE"
    )
    in_zone(NEW_YORK)
    for data in (files, by_spark):
        assert muntin.aggregate(data, query, "ts").table("q1")["t"].to_pylist() == instants
    in_zone("UTC")
    for data in (files, by_spark):
        results = muntin.aggregate(data, query, "ts", timezone=NEW_YORK)
        assert results.table("q1")["t"].to_pylist() == instants


SINCE = 1_381_154_400  # ten o'clock in New York


def test_tables_in_files_are_read_in_the_zone(
    spark: Any, in_zone: Callable[[str], None], tmp_path: Path
) -> None:
    """By whatever reads tables: a call, a stream in this process, and a run that goes on."""
    in_zone("UTC")
    (tmp_path / "days.csv").write_text("k,since\na,2013-10-07 10:00:00\n", "utf-8")
    days = muntin.files(str(tmp_path), "csv", schema="k STRING, since TIMESTAMP")
    query = (
        "SELECT max(unix_seconds(d.since)) AS t FROM s [RANGE '1 day' SLIDE '1 day']"
        " JOIN d ON s.k = d.k"
    )
    rows = pa.table({"ts": ROWS["ts"].slice(0, 1), "k": ["a"]})
    told: dict[str, Any] = {"tables": {"d": days}, "timezone": NEW_YORK}
    for data in (rows, spark.createDataFrame(rows)):
        assert muntin.aggregate(data, query, "ts", **told).table("q1")["t"].to_pylist() == [SINCE]
    stream = muntin.stream(query, rows.schema, "ts", **told)
    stream.feed(rows)
    assert stream.close()["q1"]["t"].to_pylist() == [SINCE]
    checkpoint = Checkpoint(tmp_path / "ck", Buckets(1, 1))
    tables = StaticTables({"d": days}, checkpoint, {}, NEW_YORK)
    kept = load_table(checkpoint.table_path(tables.versions["d"]))
    checkpoint.release()
    assert [each.timestamp() for each in kept["since"].to_pylist()] == [SINCE]
    (written,) = days.in_zone("Asia/Tokyo").in_zone(NEW_YORK).toArrow()["since"].to_pylist()
    assert written.timestamp() == SINCE - 13 * 3600


def test_folders_are_read_in_the_zone(
    spark: Any, in_zone: Callable[[str], None], tmp_path: Path
) -> None:
    """By workers and by Spark's own reader, at once and as they arrive."""
    in_zone("UTC")
    folder = tmp_path / "in" / "slot=2013-10-07 10%3A00%3A00"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"ts": ROWS["ts"].slice(0, 1)}), folder / "a.parquet")
    query = "SELECT max(unix_seconds(slot)) AS t FROM s [RANGE '1 day' SLIDE '1 day']"
    by_workers = muntin.files(str(tmp_path / "in"))
    by_spark = muntin.files(str(tmp_path / "in"), ignoreCorruptFiles=False)
    for data in (by_workers, by_spark):
        results = muntin.aggregate(data, query, "ts", timezone=NEW_YORK)
        assert results.table("q1")["t"].to_pylist() == [SINCE]
    run = muntin.run(
        by_workers,
        query,
        "ts",
        timezone=NEW_YORK,
        max_ahead=None,
        trigger="available_now",
        sink=muntin.sinks.parquet(tmp_path / "out"),
        checkpoint=tmp_path / "ck",
    )
    assert run.await_termination(120)
    run.stop(flush=True)
    assert muntin.read(tmp_path / "out")["q1"]["t"].to_pylist() == [SINCE]


def test_a_stream_goes_on_in_the_zone_that_it_began_with(
    spark: Any, in_zone: Callable[[str], None], tmp_path: Path
) -> None:
    stream = FolderStream(tmp_path / "in", "ts timestamp, v bigint")
    text = "".join(ours(name) for name in METRICS if name != "midnight")

    def run(sql: str, **options: Any) -> Any:
        started = muntin.run(
            stream.frame(spark),
            sql,
            "ts",
            tables={"days": DAYS},
            max_ahead=None,
            trigger="available_now",
            sink=muntin.sinks.parquet(tmp_path / "out"),
            checkpoint=tmp_path / "ck",
            partitions=1,
            buckets=2,
            **options,
        )
        assert started.await_termination(120)
        return started

    in_zone(NEW_YORK)
    stream.put(ROWS.slice(0, 80))
    assert run(text).plan().zone.name == NEW_YORK
    stream.put(ROWS.slice(80))
    in_zone("UTC")
    said = f"the run goes on in the time zone {NEW_YORK} .* the session has UTC"
    with pytest.warns(SparkWarning, match=said):
        ended = run(text + ours("midnight"))
    ended.stop(flush=True)
    expected = muntin.aggregate(ROWS, text, "ts", tables={"days": DAYS}, timezone=NEW_YORK)
    for name in expected:
        found = muntin.read(tmp_path / "out")[name]
        assert_same_rows(found, expected[name].cast(found.schema))
    assert ended.plan().zone.name == NEW_YORK
