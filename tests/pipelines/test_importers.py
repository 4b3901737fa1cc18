"""Files of Spark SQL and Flink SQL: translated, answered alike, and what is lost said by line."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muntin
from muntin.pipelines import PipelineError, read
from muntin.pipelines.importers import Imported, import_sql
from muntin.queries.sql.spellings import window_text

DOCS = Path(__file__).parents[2] / "docs"
FLINK = """\
-- bids of an auction
CREATE TABLE bids (
  bid_time TIMESTAMP(3) NOT NULL,
  price DECIMAL(10, 2) COMMENT 'in cents',
  item VARCHAR(20),
  quantity INT,
  cost AS price * quantity,
  extra ROW<a INT, b ARRAY<STRING>>,
  part INT METADATA VIRTUAL,
  PRIMARY KEY (item) NOT ENFORCED,
  WATERMARK FOR bid_time AS bid_time - INTERVAL '90' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'a;b', 'properties.bootstrap.servers' = 'here:9092',
  'properties.sasl.jaas.config' = 'hunter2', 'scan.startup.mode' = 'latest-offset',
  'format' = 'json'
);
CREATE TABLE items (item STRING, kind STRING)
  WITH ('connector' = 'filesystem', 'path' = '/items', 'format' = 'csv');
CREATE TABLE totals (window_start TIMESTAMP(3), window_end TIMESTAMP(3), kind STRING, v DOUBLE)
  WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO totals
SELECT window_start, window_end, i.kind, SUM(cost) AS v
FROM TABLE(HOP(DATA => TABLE bids, TIMECOL => DESCRIPTOR(bid_time),
  SLIDE => INTERVAL '5' MINUTES, SIZE => INTERVAL '12' MINUTES)) AS b
JOIN items i ON b.item = i.item
GROUP BY window_start, window_end, i.kind;
END;
CREATE VIEW dear AS SELECT bid_time AS t, price, item FROM bids WHERE price > 10 OR item = 'x';
CREATE VIEW counts AS SELECT item, COUNT(*) AS n FROM dear WHERE item <> 'y'
GROUP BY TUMBLE(t, INTERVAL '1' HOUR), item;
"""
TRANSLATED = """\
-- bids of an auction
-- line 8: column extra has a type ROW<a INT, b ARRAY<STRING>>, which is left out; \
have its fields in columns of their own
-- line 9: column part is metadata; have it in the rows, or leave it out
-- line 10: note: PRIMARY KEY is left out; databases are updated by window and group
-- line 14: the option properties.sasl.jaas.config has no counterpart; \
add it as '${name}', and give it with --set, or through the environment
CREATE STREAM bids (bid_time TIMESTAMP_NTZ, price DECIMAL(10,2), item STRING, quantity INT)
  WITH (
    format = 'kafka',
    subscribe = 'a,b',
    kafka.bootstrap.servers = 'here:9092',
    startingOffsets = 'latest',
    time = 'bid_time',
    lateness = '90 seconds'
  );

CREATE TABLE items (item STRING, kind STRING)
  WITH (format = 'csv', path = '/items', header = FALSE);

CREATE SINK totals
  WITH (format = 'console');

INSERT INTO totals
  SELECT i.kind, sum(b.price * b.quantity) AS v
  FROM bids AS b [RANGE '12 minutes' SLIDE '5 minutes' OFFSET '2 minutes']
  JOIN items AS i ON b.item = i.item
  GROUP BY i.kind;

-- line 28: note: END is left out; a Muntin file needs nothing of the kind

-- line 29: note: the view is written out; \
queries that read it read its source, with its conditions and columns

CREATE QUERY counts AS
  SELECT item, count(*) AS n
  FROM bids [RANGE '1 hour' SLIDE '1 hour']
  WHERE (price > 10 OR item = 'x') AND item <> 'y'
  GROUP BY item;
"""
SPARK = """\
CREATE TABLE IF NOT EXISTS market.trades (ts TIMESTAMP, symbol STRING, price DOUBLE, vol INT)
  USING csv OPTIONS (path '/data/trades', header 'true', sep ';');
CREATE OR REPLACE TEMP VIEW big AS SELECT ts, symbol AS s, price * vol AS value
  FROM market.trades WHERE vol > 20;
CREATE VIEW sliding AS SELECT window.start, window.end, symbol, sum(price) AS p, count(*) AS n
  FROM market.trades GROUP BY window(ts, '12 minutes', '5 minutes'), symbol;
CREATE VIEW moved AS SELECT avg(t.vol) AS a, max(t.price) AS m FROM trades AS t
  WHERE t.symbol <> 'A' GROUP BY window(t.ts, '10 minutes', '5 minutes', '1 minute');
CREATE VIEW large AS WITH x AS (SELECT * FROM big WHERE value > 400)
  SELECT s, sum(value) AS v FROM x GROUP BY window(ts, '7 minutes'), s HAVING count(*) > 1;
"""


@pytest.fixture(scope="module")
def trades() -> pa.Table:
    rng = random.Random(7)
    rows = 3000
    minutes = [rng.randrange(0, 6 * 3600 * 1_000_000) for _ in range(rows)]
    return pa.table(
        {
            "ts": pa.array(minutes, pa.timestamp("us", "UTC")),
            "symbol": [rng.choice("ABC") for _ in range(rows)],
            "price": [rng.randrange(1, 4000) / 8 for _ in range(rows)],
            "vol": pa.array([rng.randrange(-50, 100) for _ in range(rows)], pa.int32()),
        }
    )


def windows(select: str, size: int, slide: int, offset: int, rest: str) -> str:
    """DuckDB's answer: each row once for every window it lies in, in whole minutes."""
    return f"""
        WITH placed AS (SELECT *, epoch_us(ts) // 60000000 - {offset} AS m FROM trades),
        copied AS (
          SELECT *, unnest(range(
            CAST(floor((m - {size}) / {slide}) AS BIGINT) * {slide} + {slide},
            CAST(floor(m / {slide}) AS BIGINT) * {slide} + 1, {slide})) + {offset} AS start
          FROM placed)
        SELECT start, start + {size} AS stop, {select} FROM copied {rest}
    """


def answers(done: Imported, name: str, trades: pa.Table) -> list[tuple[Any, ...]]:
    (query,) = (one for one in done.pipeline.queries["trades"] if one.name == name)
    rows = muntin.aggregate(trades, [query], time="ts")[name].to_pylist()
    return sorted(
        tuple(int(v.timestamp()) // 60 if hasattr(v, "timestamp") else v for v in row.values())
        for row in rows
    )


SPARK_ANSWERS = {
    "sliding": windows("symbol, sum(price), count(*)", 12, 5, 0, "GROUP BY start, symbol"),
    "moved": windows("avg(vol), max(price)", 10, 5, 1, "WHERE symbol <> 'A' GROUP BY start"),
    "large": windows(
        "symbol, sum(price * vol)",
        7,
        7,
        0,
        "WHERE vol > 20 AND price * vol > 400 GROUP BY start, symbol HAVING count(*) > 1",
    ),
}


@pytest.mark.parametrize("name", SPARK_ANSWERS)
def test_spark_queries_are_answered_as_before(name: str, trades: pa.Table) -> None:
    done = import_sql(SPARK)
    assert (done.dialect, done.lost) == ("spark", ())
    expected = sorted(duckdb.query(SPARK_ANSWERS[name]).fetchall())
    assert len(expected) > 50
    assert answers(done, name, trades) == [pytest.approx(row) for row in expected]


def test_whole_numbers_stay_whole_as_in_flink(trades: pa.Table) -> None:
    text = """
    CREATE TABLE trades (ts TIMESTAMP(6), symbol STRING, price DOUBLE, vol INT,
      WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');
    CREATE VIEW a AS SELECT symbol, AVG(vol) AS a, SUM(vol) / 7 AS s, AVG(price) AS p,
      AVG(vol) FILTER (WHERE vol > 90 AND price < 100) AS f
    FROM TABLE(HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '12' MINUTES))
    GROUP BY window_start, window_end, symbol;
    """
    done = import_sql(text)
    assert (done.dialect, done.lost) == ("flink", ())
    cut = "CAST(trunc({}::DOUBLE / {}) AS BIGINT)"
    large = "FILTER (WHERE vol > 90 AND price < 100)"
    parts = [
        "symbol",
        cut.format("sum(vol)", "count(vol)"),
        cut.format("sum(vol)", "7"),
        "avg(price)",
        cut.format(f"(sum(vol) {large})", f"(count(vol) {large})"),
    ]
    sql = windows(", ".join(parts), 12, 5, 0, "GROUP BY start, symbol")
    found = answers(done, "a", trades)
    key = [row[:3] for row in found]
    expected = sorted(duckdb.query(sql).fetchall(), key=lambda row: row[:3])
    assert key == [row[:3] for row in expected]
    assert found == [pytest.approx(row) for row in expected]
    assert any(row[-1] is None for row in found)


def test_lists_hold_null_as_in_flink() -> None:
    text = """
    CREATE TABLE trades (ts TIMESTAMP(6), vol INT, WATERMARK FOR ts AS ts)
      WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');
    CREATE VIEW a AS SELECT ARRAY_AGG(vol) AS plain, ARRAY_AGG(vol IGNORE NULLS) AS ignored,
      ARRAY_AGG(vol RESPECT NULLS) AS kept, CARDINALITY(ARRAY_AGG(vol)) AS n,
      ARRAY_AGG(vol) FILTER (WHERE vol IS NULL) AS filtered,
      ARRAY_AGG(DISTINCT vol IGNORE NULLS) AS once
    FROM TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' MINUTES))
    GROUP BY window_start, window_end;
    """
    done = import_sql(text)
    assert (done.dialect, done.lost) == ("flink", ())
    times = pa.array([1, 2, 3], pa.timestamp("us"))
    rows = pa.table({"ts": times, "vol": pa.array([7, None, 7], pa.int32())})
    [found] = answers(done, "a", rows)
    assert found[2:] == ([7, None, 7], [7, 7], [7, None, 7], 3, [None], [7])
    different = import_sql(text.replace("vol IGNORE NULLS) AS once", "vol) AS once"))
    (note,) = different.lost
    assert note.problem.message == "array_agg(DISTINCT x) leaves NULL out, which Flink lists once"
    assert answers(different, "a", rows) == [found]


def test_a_file_of_flink() -> None:
    done = import_sql(FLINK)
    assert done.dialect == "flink"
    assert done.text == TRANSLATED
    assert [note.problem.line for note in done.lost] == [8, 9, 14]
    assert read(done.text).queries == done.pipeline.queries


def test_importing_again_what_was_pasted_means_the_same() -> None:
    """Windows are written in brackets, and mean what HOP and window() mean where they are read."""
    select = "SELECT symbol, sum(vol) AS v FROM {} GROUP BY {}symbol"
    stream = "CREATE STREAM trades WITH (format = 'rate');"
    hop = "HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '12' MINUTE)"
    call = "window(ts, '12 minutes', '5 minutes'), "
    pasted = read(f"{stream} {select.format(hop, '')}; {select.format('trades', call)}")
    declared = (
        "CREATE TABLE trades (ts TIMESTAMP, symbol STRING, vol BIGINT) USING json LOCATION 'x';"
    )
    bounds = "window_start, window_end, "
    flink = import_sql(f"{declared} {select.format(f'TABLE({hop})', bounds)}")
    spark = import_sql(f"{declared} {select.format('trades', call)}")
    found = [one.window for one in pasted.queries["trades"]]
    found += [one.pipeline.queries["trades"][0].window for one in (flink, spark)]
    assert len({window_text(window) for window in found}) == 1


TRADES = (
    "CREATE TABLE t (ts TIMESTAMP(3), k STRING, v DOUBLE, n INT) WITH ('connector' = 'print2');\n"
)
LOST = {
    "SELECT k, sum(v) AS s\nFROM t GROUP BY SESSION(ts, INTERVAL '5' MINUTE), k": (3, "SESSION"),
    "SELECT sum(v) AS s FROM\nTABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, "
    "INTERVAL '5' MINUTE)) GROUP BY window_start": (3, "CUMULATE"),
    "SELECT sum(v) AS s\nFROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))": (
        3,
        "GROUP BY does not name the window",
    ),
    "SELECT\ncount(DISTINCT k, v) AS c FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)": (
        3,
        "DISTINCT",
    ),
    "SELECT k, sum(v) AS s FROM t GROUP BY window(ts, '1 minute'), k\nLIMIT 5": (3, "LIMIT"),
    "SELECT k, sum(v) AS s FROM t GROUP BY window(ts, '1 month'), k": (2, "month"),
    "SELECT k,\nsum(w) AS s FROM t GROUP BY window(ts, '1 minute'), k": (3, "no column w"),
    "SELECT\ntry_sum(v) AS s FROM t GROUP BY window(ts, '1 minute')": (3, "try_sum"),
    "SELECT sum(v) AS s\nFROM (SELECT max(v) AS v, ts FROM t GROUP BY ts) x "
    "GROUP BY window(ts, '1 minute')": (3, "FROM takes"),
    "SELECT sum(t.v) AS s FROM t\nFULL JOIN t2 ON t.k = t2.k GROUP BY window(ts, '1 minute')": (
        3,
        "FULL",
    ),
    "SELECT sum(v) AS s FROM t GROUP BY window(ts, '1 minute')\nUNION ALL SELECT 1": (3, "UNION"),
    "CREATE FUNCTION f AS 'a.B'": (2, "CREATE FUNCTION"),
    "ALTER TABLE t SET ('a' = 'b')": (2, "ALTER"),
    "INSERT INTO t2\nVALUES (1, 2)": (3, "rows that are written out"),
    "SELECT first_value(v) AS s FROM t\nGROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)": (
        2,
        "first_value goes by",
    ),
    "SELECT\napprox_top_k(k) AS s FROM t GROUP BY window(ts, '1 minute')": (3, "item and count"),
    "SELECT k, sum(v) AS s FROM t GROUP BY window(ts, '1 minute'), k\nORDER BY k": (3, "ORDER BY"),
    "SELECT\nwindow, sum(v) AS s FROM t GROUP BY window(ts, '1 minute')": (3, "two columns"),
    "SELECT\nTUMBLE_ROWTIME(ts, INTERVAL '1' MINUTE), sum(v) AS s FROM t "
    "GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)": (3, "tumble_rowtime is left out"),
    "SELECT sum(v) AS s\nFROM /*+ OPTIONS('a'='b') */ t GROUP BY window(ts, '1 minute')": (
        3,
        "a hint",
    ),
    "INSERT OVERWRITE o SELECT sum(v) AS s FROM t GROUP BY window(ts, '1 minute')": (
        2,
        "OVERWRITE",
    ),
    "INSERT INTO\no (a, b) SELECT sum(v) AS s FROM t GROUP BY window(ts, '1 minute')": (
        3,
        "a list of columns has 2 columns, and SELECT has 1",
    ),
    "CREATE VIEW a AS SELECT sum(v) AS s FROM t GROUP BY window(ts, '1 minute');\n"
    "SELECT max(s) AS m FROM a": (3, "a holds the results"),
}


# Spark promises no order of rows to first_value, so that none is lost; Flink has no approx_top_k.
CASES = [(text, "flink") for text in LOST if "approx_top_k" not in text]
CASES += [(text, "spark") for text in LOST if "first_value" not in text]


@pytest.mark.parametrize(("text", "dialect"), CASES)
def test_what_is_lost_is_said_at_its_line(text: str, dialect: Literal["spark", "flink"]) -> None:
    done = import_sql(TRADES + text + ";", dialect)
    line, said = LOST[text]
    found = [note.problem for note in done.lost if said in note.problem.message]
    assert [problem.line for problem in found] == [line], done.notes
    assert found[0].hint
    assert f"-- line {line}: " in done.text
    read(done.text)


LOOKUP = """
CREATE TABLE orders (
  ts TIMESTAMP(3), cur STRING, price DOUBLE, clock AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = '/o', 'format' = 'json');
CREATE TABLE rates (currency STRING, rate DOUBLE, since TIMESTAMP(3),
  WATERMARK FOR since AS since, PRIMARY KEY (currency) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = '/r', 'format' = 'json');
CREATE TABLE spent (`from` TIMESTAMP(3), until TIMESTAMP(3), currency STRING, total DOUBLE)
  WITH ('connector' = 'print');
"""
HOURLY = """INSERT INTO spent {}
SELECT TUMBLE_START(o.ts, INTERVAL '1' HOUR) AS a, TUMBLE_END(o.ts, INTERVAL '1' HOUR),
  UPPER(o.cur) AS c, SUM(o.price * r.rate) AS x
FROM orders AS o {} JOIN rates FOR SYSTEM_TIME AS OF {} AS r ON o.cur = r.currency
GROUP BY TUMBLE(o.ts, INTERVAL '1' HOUR), UPPER(o.cur);
"""


@pytest.mark.parametrize("join", ["", "LEFT"])
@pytest.mark.parametrize("moment", ["o.clock", "PROCTIME()"])
@pytest.mark.parametrize("listed", ["", "(`from`, until, currency, total)"])
def test_lookup_joins_are_joins_with_static_tables(join: str, moment: str, listed: str) -> None:
    done = import_sql(LOOKUP + HOURLY.format(listed, join, moment), "flink")
    assert done.lost == ()
    assert any("rates is a static table" in note.problem.message for note in done.notes)
    assert [table.name for table in done.pipeline.tables] == ["rates"]
    [query] = done.pipeline.queries["orders"]
    assert query.columns == ("from", "until", "currency", "total")
    assert [(one.table, one.alias, one.kind) for one in query.joins] == [
        ("rates", "r", "left" if join else "inner")
    ]


def test_a_join_with_the_version_of_a_row_is_refused() -> None:
    count = "SELECT count(*) AS n FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR);"
    done = import_sql(LOOKUP + HOURLY.format("", "", "o.ts") + count, "flink")
    assert any("as it was at the time of a row" in note.problem.message for note in done.lost)
    assert [len(found) for found in done.pipeline.queries.values()] == [1]


def test_a_sink_names_columns_in_the_order_of_results() -> None:
    text = """CREATE TABLE o (n BIGINT, k2 STRING) WITH ('connector' = 'print');
    INSERT INTO o SELECT count(*) AS c, k AS kind FROM t
    GROUP BY window(ts, '1 minute'), kind HAVING c > 1;"""
    done = import_sql(TRADES + text, "flink")
    [query] = done.pipeline.queries["t"]
    assert query.columns == ("window_start", "window_end", "k2", "n")
    told = [note.problem.message for note in done.notes if not note.lost]
    assert "results for o have the columns window_start, window_end, k2, n" in told


def option_text(table: str, dialect: Literal["spark", "flink"]) -> str:
    query = "SELECT sum(v) AS s FROM t GROUP BY window(ts, '1 minute')"
    done = import_sql(f"{table}; {query}", dialect)
    text = " ".join(line for line in done.text.split("\n") if not line.startswith("--"))
    return " ".join(text.partition("WITH (")[2].partition(");")[0].split())


C = "CREATE TABLE t (ts TIMESTAMP, v DOUBLE)"


def test_options_of_spark() -> None:
    assert option_text(f"{C} USING parquet LOCATION '/x'", "spark") == (
        "format = 'parquet', path = '/x', time = 'ts'"
    )
    assert option_text(f"{C} USING csv OPTIONS (path 'x', delimiter '|')", "spark") == (
        "format = 'csv', path = 'x', header = FALSE, delimiter = '|', time = 'ts'"
    )
    kafka = (
        "USING kafka OPTIONS (subscribe 'a', kafka.bootstrap.servers 'h:1', maxOffsetsPerTrigger 5)"
    )
    assert option_text(f"{C} {kafka}", "spark") == (
        "format = 'kafka', subscribe = 'a', kafka.bootstrap.servers = 'h:1', "
        "maxOffsetsPerTrigger = '5', time = 'ts'"
    )
    assert option_text(f"{C} USING delta LOCATION '/x'", "spark").startswith("format = 'json'")


def test_options_of_flink() -> None:
    kafka = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'h:1'"
    start = "'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '5'"
    assert option_text(
        f"{C} WITH ({kafka}, 'topic-pattern' = 'a.*', {start}, 'value.format' = 'csv')", "flink"
    ) == (
        "format = 'kafka', kafka.bootstrap.servers = 'h:1', subscribePattern = 'a.*', "
        "startingTimestamp = '5', value_format = 'csv', time = 'ts'"
    )
    done = import_sql(f"{C} WITH ({kafka}, 'topic' = 'a', 'format' = 'avro')", "flink")
    assert [note.problem.message for note in done.lost] == ["messages in avro are not read"]
    done = import_sql(
        "CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS f(ts)) "
        "WITH ('connector' = 'filesystem', 'path' = 'C:\\new', 'format' = 'parquet')",
        "flink",
    )
    assert [note.problem.message for note in done.lost] == ["the watermark is more than a delay"]
    assert done.pipeline.streams[0].path is not None
    assert done.pipeline.streams[0].path.endswith("C:\\new")


def test_views_next_to_joined_tables_name_their_columns() -> None:
    """Both tables have a column k: what the view computes from k is from the stream's."""
    done = import_sql(
        "CREATE TABLE t (ts TIMESTAMP, k STRING, v DOUBLE) USING json LOCATION 'x';"
        "CREATE TABLE j (k STRING, c STRING) USING json LOCATION 'y';"
        "CREATE VIEW w AS SELECT ts, upper(k) AS u, v FROM t WHERE k <> 'z' OR v > 1;"
        "CREATE VIEW q AS SELECT j.c, max(u) AS m FROM w JOIN j ON w.u = j.k WHERE v < 9"
        " GROUP BY window(ts, '1 hour'), j.c"
    )
    assert not done.lost
    assert done.pipeline.queries["t"][0].sql() == (
        "CREATE QUERY q AS SELECT j.c, max(upper(w.k)) AS m FROM t AS w"
        " [RANGE '1 hour' SLIDE '1 hour'] JOIN j ON upper(w.k) = j.k"
        " WHERE (w.k <> 'z' OR w.v > 1) AND v < 9 GROUP BY j.c"
    )


def test_names_that_nothing_declares_are_guessed() -> None:
    done = import_sql(
        "INSERT INTO o SELECT k, sum(v) AS s, max(w) AS m FROM e JOIN c USING (k) "
        "WHERE w > 5 AND b GROUP BY window(at, '1 hour'), k"
    )
    (stream,) = done.pipeline.streams
    kinds = {field.name: str(field.type) for field in stream.schema}
    assert kinds == {
        "at": "timestamp[us, tz=UTC]", "k": "string", "v": "double", "w": "double", "b": "bool"
    }  # fmt: skip
    said = [note.problem.message for note in done.lost]
    assert said == ["nothing declares o", "nothing declares e", "nothing declares c"]


def test_columns_of_files_are_looked_up(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("ts,v\n2024-01-01 00:00:00,1.5\n")
    (tmp_path / "job.sql").write_text(
        "CREATE TABLE t USING csv OPTIONS (path 'in', header true);"
        "SELECT sum(v) AS s FROM t GROUP BY window(ts, '1 hour');"
    )
    done = import_sql(tmp_path / "job.sql")
    assert not done.lost
    assert "CREATE STREAM t (ts TIMESTAMP, v DOUBLE)" in done.text


def test_a_sink_without_queries_is_left_out() -> None:
    sink = "CREATE TABLE o (a INT) WITH ('connector' = 'print');"
    good = "CREATE VIEW q AS SELECT sum(v) AS s FROM t GROUP BY window(ts, '1 minute');"
    for bad in ("nope(v)", "sum(nope)"):
        insert = f"INSERT INTO o SELECT {bad} AS s FROM t GROUP BY window(ts, '1 minute');"
        done = import_sql(TRADES + sink + good + insert, "flink")
        assert done.pipeline.sinks == ()
        assert [query.name for query in done.pipeline.queries["t"]] == ["q"]


OVER_TABLE = (
    "SELECT sum(v) AS s FROM TABLE(TUMBLE(TABLE STREAM, DESCRIPTOR({}), INTERVAL '1' HOUR))"
    " GROUP BY window_start, window_end"
)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT sum(v) AS s FROM t GROUP BY TUMBLE({}, INTERVAL '1' MINUTE)", "pt"),
        ("SELECT sum(v) AS s FROM t GROUP BY HOP({}, INTERVAL '1' DAY, INTERVAL '1' DAY)", "pt"),
        ("SELECT sum(v) AS s FROM t GROUP BY TUMBLE({}, INTERVAL '1' MINUTE)", "PROCTIME()"),
        ("SELECT sum(v) AS s FROM w GROUP BY TUMBLE({}, INTERVAL '1' MINUTE)", "p2"),
        (OVER_TABLE.replace("STREAM", "t"), "pt"),
        (OVER_TABLE.replace("STREAM", "w"), "p2"),
        ("SELECT sum(v) AS s FROM t GROUP BY window({}, '1 minute')", "current_timestamp()"),
    ],
)
def test_processing_time_is_no_time(query: str, place: str) -> None:
    tables = (
        "CREATE TABLE t (ts TIMESTAMP(3), v INT, pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH"
        " ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        "CREATE VIEW w AS SELECT v, pt AS p2 FROM t;"
        "SELECT sum(v) AS s FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);\n"
    )
    done = import_sql(tables + query.format(place), "flink")
    (note,) = [one for one in done.lost if "no query reads" not in one.problem.message]
    assert note.problem.message == "processing time is not event time"
    assert (note.problem.line, note.problem.column) == (2, query.index("{") + 1)
    assert "event time" in (note.problem.hint or "")
    assert len(done.pipeline.queries["t"]) == 1


def test_secrets_are_not_shown() -> None:
    table = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', 'password' = 'hunter2'"
    insert = "INSERT INTO o SELECT nope(v) AS s FROM t GROUP BY window(ts, '1 minute')"
    done = import_sql(f"{TRADES} CREATE TABLE o (a INT) WITH ({table}); {insert}", "flink")
    shown = done.text + "".join(str(note.problem) for note in done.notes)
    assert "hunter2" not in shown
    assert "'password' = '*******'" in done.text


EXAMPLES = [
    (page, text)
    for page in ("from-spark.md", "from-flink.md")
    for text in re.findall(r"```sql\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_of_the_guides(number: int) -> None:
    page, text = EXAMPLES[number]
    if text.startswith("-- Muntin"):
        foreign = import_sql(EXAMPLES[number - 1][1])
        mine, theirs = read(text), foreign.pipeline
        assert (mine.queries, mine.tables) == (theirs.queries, theirs.tables)
        assert mine.rows == theirs.rows
        for a, b in zip(
            (*mine.streams, *mine.sinks), (*theirs.streams, *theirs.sinks), strict=True
        ):
            assert (a.name, a.format, a.options) == (b.name, b.format, b.options)
    else:
        dialect = "spark" if page == "from-spark.md" else "flink"
        assert text.startswith(f"-- {dialect.title()}")
        done = import_sql(text)
        assert done.dialect == dialect
        complete = EXAMPLES[number + 1 :] and EXAMPLES[number + 1][1].startswith("-- Muntin")
        assert len(done.lost) == (0 if complete else 2)


def test_windows_in_the_tables_of_the_guides() -> None:
    """Each row of `Side by side` that shows both windows means one window."""
    pairs = 0
    for line in (DOCS / "from-spark.md").read_text().split("\n"):
        cells = re.findall(r"`([^`]*)`", line)
        if line.startswith("| `window(") and len(cells) == 2:
            mine = read(
                f"CREATE STREAM s WITH (format = 'rate'); SELECT count(*) AS n FROM s {cells[1]}"
            )
            done = import_sql(f"SELECT count(*) AS n FROM s GROUP BY {cells[0]}")
            assert mine.queries["s"][0].window == done.pipeline.queries["s"][0].window
            pairs += 1
    for line in (DOCS / "from-flink.md").read_text().split("\n"):
        cells = re.findall(r"`([^`]*)`", line)
        if line.startswith("| `TABLE(") and len(cells) == 2:
            mine = read(
                f"CREATE STREAM s WITH (format = 'rate'); SELECT count(*) AS n FROM {cells[1]}"
            )
            done = import_sql(f"SELECT count(*) AS n FROM {cells[0]} GROUP BY window_start")
            assert mine.queries["s"][0].window == done.pipeline.queries["s"][0].window
            pairs += 1
    assert pairs == 5


SIGNS = ["(", ")", ",", ";", "'", "`", "<", ">", "=", "AS"]


def imports_or_refuses(text: str | Path) -> None:
    for dialect in ("spark", "flink"):
        try:
            done = import_sql(text, dialect)  # type: ignore[arg-type]
        except PipelineError as error:
            problems, done = error.problems, None
            str(error).encode()
        else:
            problems = tuple(note.problem for note in done.notes)
            assert read(done.text).queries == done.pipeline.queries
        assert all(problem.hint for problem in problems), problems


@settings(max_examples=40, deadline=None)
@given(content=st.binary(max_size=120))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "foreign.sql"
    path.write_bytes(content)
    imports_or_refuses(path)


@pytest.mark.parametrize("text", [FLINK, SPARK], ids=["flink", "spark"])
def test_a_file_that_breaks_off(text: str) -> None:
    for end in range(0, len(text), 97):
        imports_or_refuses(text[:end] + " ")


@pytest.mark.parametrize("text", [FLINK, SPARK], ids=["flink", "spark"])
def test_a_file_with_parts_exchanged_doubled_and_lost(text: str) -> None:
    rng = random.Random(11)
    words = text.split(" ")
    for _ in range(8):
        changed = list(words)
        for _ in range(rng.randrange(1, 5)):
            i, j = rng.randrange(len(changed)), rng.randrange(len(changed))
            changed[i], changed[j] = changed[j], changed[i]
            changed.insert(rng.randrange(len(changed)), rng.choice(SIGNS))
            del changed[rng.randrange(len(changed))]
        imports_or_refuses(" ".join(changed))


HOSTILE = [
    "CREATE TABLE t (" * 3000,
    "CREATE TABLE t (a " + "ROW<" * 3000,
    "CREATE TABLE t (a ARRAY<" + "ARRAY<" * 500 + "INT>) WITH ('a' = 'b')",
    "SELECT " + "(" * 5000 + "1",
    "CREATE VIEW a AS SELECT * FROM a; SELECT count(*) AS n FROM a GROUP BY window(ts, '1 h')",
    "CREATE VIEW a AS SELECT * FROM b; CREATE VIEW b AS SELECT * FROM a; SELECT x FROM b",
    "WITH a AS (SELECT * FROM a) SELECT count(*) AS n FROM a GROUP BY window(ts, '1 h')",
    "CREATE TABLE é (t TIMESTAMP) USING json; SELECT count(*) AS n FROM é GROUP BY window(t, '1h')",
    "SELECT count(*) AS n FROM `a-b` GROUP BY window(ts, '1 h')",
    "CREATE TABLE t (a INT, a INT) WITH ('connector' = 'print')",
    "INSERT INTO t SELECT * FROM t",
    "CREATE TABLE t (ts TIMESTAMP) USING json OPTIONS (path '${x}')",
    "SET 'a' = 'b'",
    "-- nothing",
    "",
    ";;;",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:40]))
def test_hostile_text(text: str) -> None:
    imports_or_refuses(text + "\n")
