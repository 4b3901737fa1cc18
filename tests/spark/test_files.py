"""Files that workers read have the answers of Spark's reader."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import muntin
from muntin.errors import DataError
from muntin.testing import assert_same_rows, trades
from oracle.random_queries import queries
from oracle.random_streams import stream

TRADES = trades(4000, seed=9, symbols=12)
SQL = """
  CREATE QUERY one AS SELECT sum(price * vol) AS v, count(*) AS n, min(ts) AS first
    FROM t [RANGE '12 min' SLIDE '5 min'] WHERE vol > 300;
  CREATE QUERY two AS SELECT symbol, max(price) AS m, count(exchange) AS e
    FROM t [RANGE '20 min' SLIDE '10 min'] GROUP BY symbol"""
EVERYTHING = """
  SELECT count(*) AS n, {}, min(ts) AS t0, max(ts) AS t1
  FROM t [RANGE '9000 days' SLIDE '9000 days']
  GROUP BY ts"""


def check(
    spark: Any, caplog: Any, path: Any, sql: str, *, by_workers: bool = True, **how: Any
) -> muntin.Results:
    """Both ways give the same rows; whether workers read the files is in the log."""
    files = muntin.files(path, **how)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "muntin.spark"):
        ours = muntin.aggregate(files, sql, time="ts")
    assert ("Spark's reader" not in caplog.text) == by_workers, caplog.text
    reader = spark.read.format(files.format).options(**dict(files.options))
    if files.schema is not None:
        reader = reader.schema(files.schema)
    expected = muntin.aggregate(reader.load(list(files.paths)), sql, time="ts")
    for name in expected:
        assert_same_rows(ours.table(name), expected.table(name))
    assert (ours.rows, ours.bad_rows) == (expected.rows, expected.bad_rows)
    return ours


@pytest.mark.parametrize("seed", range(2))
def test_random_queries_over_parquet(spark: Any, caplog: Any, tmp_path: Path, seed: int) -> None:
    rng = random.Random(8000 + seed)
    table = stream(rng)
    sql = ";\n".join(query.sql for query in queries(rng, most=10))
    path = tmp_path / "odd name%41#.parquet"
    pq.write_table(table, path, row_group_size=rng.choice([7, 50, 1000]))
    ours = check(spark, caplog, path, sql)
    expected = muntin.aggregate(table, sql, time="ts")
    for name in expected:
        assert_same_rows(ours.table(name), expected.table(name))


def test_parquet_of_sparks_own(spark: Any, caplog: Any, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        frame = spark.sql("""
          SELECT timestamp '1890-01-01 00:00:00' + make_interval(0, 0, 0, id * 9000) AS ts,
                 cast(id AS TINYINT) AS a, id / 7 AS b, cast(id AS DECIMAL(20, 3)) AS c,
                 if(id % 3 = 0, NULL, concat('s', id)) AS d, date '1969-12-31' AS e, id > 3 AS f,
                 timestamp_ntz '2024-01-01 00:00:00' AS g, named_struct('x', id) AS h,
                 id % 2 AS k, concat('v ', id % 3) AS l
          FROM range(20)""")
        frame.write.partitionBy("k", "l").parquet(str(tmp_path / "out"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    columns = [f"max({name}) AS {name}, count({name}) AS c{name}" for name in "abcdefgkl"]
    check(spark, caplog, tmp_path / "out", EVERYTHING.format(", ".join(columns)))
    check(spark, caplog, tmp_path / "out" / "k=0", EVERYTHING.format("max(l) AS l"))


def test_parquet_of_arrows_own(spark: Any, caplog: Any, tmp_path: Path) -> None:
    times = pa.array([0, 1_500, None, -1], pa.timestamp("ms", "America/New_York"))
    table = pa.table(
        {
            "ts": times,
            "a": pa.array([1, 2, 3, 255], pa.uint8()),
            "b": pa.array([1, 2, 3, 2**32 - 1], pa.uint32()),
            "c": pa.array([1, 2, 3, 2**64 - 1], pa.uint64()),
            "d": pa.array(["x", None, "y", ""]).dictionary_encode(),
            "e": pa.array([b"x", None, b"y", b""], pa.large_binary()),
            "f": pa.array([1.5, None, float("nan"), -0.0], pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    # Other files may lack columns, have more, and spell them otherwise.
    other = table.select(["ts", "d", "b"]).rename_columns(["TS", "D", "B"])
    pq.write_table(other.append_column("z", pa.array([1, 2, 3, 4])), tmp_path / "b.parquet")
    columns = [f"max({name}) AS {name}, count({name}) AS c{name}" for name in "abcdf"]
    ours = check(spark, caplog, tmp_path, EVERYTHING.format(", ".join(columns)))
    assert ours.rows == 8
    assert ours.bad_rows == 2
    # Columns of types that do not go together are for Spark to judge.
    wrong = table.set_column(1, "a", pa.array(["x"] * 4))
    pq.write_table(wrong, tmp_path / "c.parquet")
    with pytest.raises(Exception, match=r"(?i)parquet"):
        muntin.aggregate(muntin.files(tmp_path), EVERYTHING.format("max(a)"), time="ts")


@pytest.mark.parametrize("schema", [None, "ts TIMESTAMP, symbol STRING, price DOUBLE, vol INT"])
def test_csv(spark: Any, caplog: Any, tmp_path: Path, schema: str | None) -> None:
    table = TRADES.select(["ts", "symbol", "price", "vol"])
    for number in range(2):
        part = table.slice(number * 2000, 2000)
        arrow_csv.write_csv(part, tmp_path / f"{number}.csv")
    sql = SQL.replace("count(exchange)", "count(vol)")
    ours = check(spark, caplog, tmp_path, sql, format="csv", schema=schema)
    expected = muntin.aggregate(table, sql, time="ts")
    assert_same_rows(ours.table("two"), expected.table("two"))


def test_csv_with_nulls_and_folders(spark: Any, caplog: Any, tmp_path: Path) -> None:
    folder = tmp_path / "day=2024-01-01" / "kind=a%2Fb"
    folder.mkdir(parents=True)
    (folder / "x.csv").write_text(
        "2024-01-01 00:00:00;;1.5;true\n2024-01-01 00:00:01;a;;\n;b;2;false\n\n", "utf-8"
    )
    columns = "max(a), count(a), sum(b), count(c), max(day) AS day, max(kind) AS kind"
    how = {"format": "csv", "schema": "ts TIMESTAMP, a STRING, b DOUBLE, c BOOLEAN"}
    path = tmp_path
    ours = check(spark, caplog, path, EVERYTHING.format(columns), sep=";", header=False, **how)
    assert ours.bad_rows == 1
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        check(spark, caplog, path, EVERYTHING.format(columns), sep=";", header=False, **how)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_csv_whose_line_of_names_gives_other_columns(
    spark: Any, caplog: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("ts,V,w\n2024-01-01 00:00:00,1,100\n")
    (tmp_path / "b.csv").write_text("ts,w,v\n2024-01-01 00:00:00,1000,10\n")
    sql = EVERYTHING.format("sum(v) AS v, sum(w) AS w")
    how = {"format": "csv", "schema": "ts TIMESTAMP, v INT, w INT"}
    with pytest.raises(Exception, match=r"(?s)header.*b\.csv"):
        muntin.aggregate(muntin.files(tmp_path, **how), sql, time="ts").table("q1")
    assert "its columns are ts, w, v, instead of ts, v, w" in caplog.text
    # By their place, for those who ask for it.
    ours = check(spark, caplog, tmp_path, sql, enforceSchema=True, **how)
    assert ours.table("q1")["v"].to_pylist() == [1001]


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ('2024-01-01 00:00:00,"a ""quoted"" b",1', {}),
        ("2024-01-01 00:00:00,a, 1", {}),
        ("2024-01-01,a,1", {}),
        ("2024-01-01 00:00:00,a", {}),
        ("2024-01-01 00:00:00,a,x", {}),
        ("2024-01-01 00:00:00,-,1", {"nullValue": "-"}),
    ],
)
def test_csv_that_spark_reads_in_its_own_way(
    spark: Any, caplog: Any, tmp_path: Path, line: str, options: dict[str, Any]
) -> None:
    (tmp_path / "x.csv").write_text(f"ts,s,n\n2024-01-02 00:00:00,a,7\n{line}\n")
    how = {"format": "csv", "schema": "ts TIMESTAMP, s STRING, n INT", **options}
    sql = EVERYTHING.format("max(s) AS s, max(n) AS n")
    check(spark, caplog, tmp_path, sql.replace("AS n,", "AS rows,", 1), by_workers=False, **how)


def test_json(spark: Any, caplog: Any, tmp_path: Path) -> None:
    lines = [
        '{"ts": "2024-01-01T00:00:00Z", "symbol": "ü", "price": 1, "vol": 7, "more": [1, 2]}',
        '{"symbol": null, "ts": "2024-01-01T00:00:00.25Z", "price": 2.5e3}',
        '{"price": -0.5, "vol": 3}',
    ]
    (tmp_path / "x.json").write_text("\n".join(lines), "utf-8")
    sql = EVERYTHING.format("max(symbol) AS s, sum(price) AS p, sum(vol) AS v")
    typed = "ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT"
    ours = check(spark, caplog, tmp_path, sql, format="json", schema=typed)
    assert ours.bad_rows == 1
    # Spark takes times for text unless it is told.
    inferred = {"format": "json", "inferTimestamp": True}
    check(spark, caplog, tmp_path, sql, by_workers=False, **inferred)
    (tmp_path / "y.json").write_text('{"ts": "2024-01-01T00:00:00Z", "vol": 1.5, "price": "x"}\n{')
    check(spark, caplog, tmp_path, sql, format="json", schema=typed, by_workers=False)


def test_other_places_and_missing_files(spark: Any, caplog: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Spark cannot list or read"):
        muntin.aggregate(muntin.files(tmp_path / "none"), SQL, time="ts")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    with pytest.raises(Exception, match=r"(?i)parquet"):
        muntin.aggregate(muntin.files(tmp_path), SQL, time="ts")
    pq.write_table(TRADES, tmp_path / "good.parquet")
    tables = {"t2": muntin.files(tmp_path / "good.parquet")}
    joined = "SELECT count(*) AS n FROM t [RANGE '1 h' SLIDE '1 h'] JOIN t2 ON t.vol = t2.vol"
    ours = muntin.aggregate(TRADES.slice(0, 50), joined, "ts", tables=tables)
    expected = muntin.aggregate(TRADES.slice(0, 50), joined, "ts", tables={"t2": TRADES})
    assert_same_rows(ours["q1"], expected["q1"])
