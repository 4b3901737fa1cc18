"""From a SQL file to the model: what it holds, and everything that is wrong with it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from muntin.errors import MuntinError
from muntin.pipelines import Pipeline, PipelineError, read

W = "[RANGE '1 minute' SLIDE '1 minute']"
RATE = "CREATE STREAM trades WITH (format = 'rate');\n"
PIPELINE = f"""\
-- What comes in.
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT)
  WITH (time = 'TS', lateness = '5 seconds', format = 'csv', path = '${{folder}}/trades',
        delimiter = ';', files_per_batch = 2, on_bad_row = 'FAIL', max_ahead = 'none',
        on_error = 'fail', side_output = 'aside', advance_when_idle = '1 minute');
CREATE STREAM Made WITH (format = 'rate', rows_per_second = ${{speed}}, symbols = 3, seed = 1);
CREATE TABLE close (symbol STRING, cp DOUBLE)
  WITH (format = 'json', path = '/tables/close', refresh = '30 seconds');
/* What comes out. */
CREATE SINK files WITH (format = 'parquet', path = 'out');
CREATE SINK screen FOR value, `Moves` WITH (format = 'console');
CREATE SINK alerts WITH (format = 'postgres', prefix = 'alert_');

CREATE QUERY value AS
  SELECT sum(price * vol) AS value FROM trades {W} WHERE vol > 500;
CREATE QUERY moves AS SELECT max(price / cp) AS m FROM TRADES {W} JOIN Close USING (symbol);
INSERT INTO alerts SELECT symbol, count(*) AS n FROM made {W} GROUP BY symbol;
SELECT count(*) AS n FROM made {W};
CREATE QUERY gone AS SELECT count(*) AS n FROM made {W};
DROP QUERY gone;
"""


def refused(text: str | Path, **variables: str) -> PipelineError:
    with pytest.raises(PipelineError) as caught:
        read(text, variables)
    for problem in caught.value.problems:
        assert problem.hint, problem
        assert problem.line >= 1, problem
        assert problem.column >= 1, problem
    return caught.value


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    path = tmp_path / "trades.sql"
    path.write_text(PIPELINE)
    return read(path, {"folder": "in", "speed": "50"})


def test_streams(pipeline: Pipeline, tmp_path: Path) -> None:
    trades, made = pipeline.streams
    assert (trades.name, trades.format, trades.time) == ("trades", "csv", "ts")
    assert (trades.lateness, trades.on_bad_row, trades.max_ahead) == ("5 seconds", "fail", None)
    assert trades.path == str(tmp_path / "in" / "trades")
    assert (trades.on_error, trades.side_output) == ("fail", str(tmp_path / "aside"))
    assert trades.spark_options() == {"header": "true", "sep": ";", "maxFilesPerTrigger": "2"}
    assert (trades.place.line, trades.place.column, trades.declared) == (2, 1, True)
    assert str(trades.place) == f"{tmp_path / 'trades.sql'}:2:1"
    assert made.schema.names == ["ts", "symbol", "price", "vol", "exchange"]
    assert made.options == {"rows_per_second": 50, "symbols": 3, "seed": 1}
    assert (made.on_error, made.side_output) == ("null", None)
    assert (trades.advance_when_idle, made.advance_when_idle) == ("1 minute", None)
    assert (made.path, made.lateness, made.max_ahead) == (None, 0, "1 day")
    assert pipeline.stream("TRADES") is trades
    with pytest.raises(MuntinError, match="did you mean trades"):
        pipeline.stream("trade")


def test_tables_and_sinks(pipeline: Pipeline, tmp_path: Path) -> None:
    (close,) = pipeline.tables
    assert (close.path, close.refresh, close.place.line) == ("/tables/close", "30 seconds", 7)
    files, screen, alerts = pipeline.sinks
    assert files.options == {"path": str(tmp_path / "out")}
    assert (files.takes_all, screen.takes_all, alerts.takes_all) == (True, False, False)
    assert screen.queries == ("value", "moves")
    assert alerts.options["url_env"] == "MUNTIN_POSTGRES_URL"
    assert [sink.name for sink in pipeline.sinks_of("VALUE")] == ["files", "screen"]
    assert [sink.name for sink in pipeline.sinks_of("alerts_2")] == ["files"]


def test_queries_by_stream(pipeline: Pipeline) -> None:
    names = {name: [query.name for query in each] for name, each in pipeline.queries.items()}
    assert names == {"trades": ["value", "moves"], "Made": ["alerts", "q10"]}
    assert pipeline.places["alerts"].line == 17
    assert len(pipeline.plan("made").finals) == 2
    assert str(pipeline.plan("trades")).startswith("SharedPlan  2 queries")


def test_a_pipeline_travels(pipeline: Pipeline) -> None:
    copy = pickle.loads(pickle.dumps(pipeline))
    assert copy.queries == pipeline.queries
    assert copy.streams == pipeline.streams


def test_credentials_are_not_shown() -> None:
    (stream,) = read(
        """CREATE STREAM k (ts TIMESTAMP) WITH (format = 'kafka', subscribe = 'trades',
        kafka.bootstrap.servers = 'h:9092', kafka.sasl.jaas.config = 'secret',
        maxoffsetspertrigger = 100)"""
    ).streams
    assert "secret" not in repr(stream)
    assert stream.spark_options() == {
        "kafka.bootstrap.servers": "h:9092",
        "kafka.sasl.jaas.config": "secret",
        "subscribe": "trades",
        "maxOffsetsPerTrigger": "100",
    }


def test_replacing_and_dropping() -> None:
    text = f"""{RATE}
    CREATE QUERY a AS SELECT count(*) AS n FROM trades {W};
    CREATE OR REPLACE QUERY A AS SELECT sum(vol) AS n FROM trades {W};
    """
    (query,) = read(text).queries["trades"]
    assert query.columns[-1] == "n"
    assert "sum(vol)" in query.sql()
    assert read(text + "DROP QUERY a").queries["trades"] == ()


def test_a_sink_for_a_query_that_is_dropped_takes_none() -> None:
    text = f"""{RATE} CREATE SINK s FOR a WITH (format = 'console');
    CREATE QUERY a AS SELECT count(*) AS n FROM trades {W};
    CREATE QUERY b AS SELECT count(*) AS n FROM trades {W}; DROP QUERY a"""
    pipeline = read(text)
    assert pipeline.sinks_of("b") == ()
    assert pipeline.sinks[0].queries == ()


def test_a_plain_number_as_time() -> None:
    stream = "CREATE STREAM s (n BIGINT, v DOUBLE) WITH (format = 'csv', path = 'x', time = 'n', "
    query = "SELECT sum(v) AS v FROM s [RANGE 10 SLIDE 5]"
    assert read(f"{stream} lateness = 5); {query}").streams[0].lateness == 5
    (problem,) = refused(f"{stream} lateness = '5 seconds'); {query}").problems
    assert "a plain integer" in problem.message


def test_twenty_kinds_of_mistakes_are_all_reported(tmp_path: Path) -> None:
    lines = [
        (
            "CREATE STREAM s (ts TIMESTAMP, k STRING, v DOUBLE) WITH (format = 'csv', path = 'x');",
            0,
        ),
        ("CREATE STREAM t (ts TIMESTAMP) WITH (format = 'csvv', path = 'x', latenes = '1s');", 2),
        ("CREATE STREAM u (ts TIMESTAMP) WITH (format = 'csv', header = 'maybe');", 2),
        ("CREATE STREAM w (at TIMESTAMP) WITH (format = 'csv', path = '${fodler}');", 2),
        ("CREATE STREAM S WITH (format = 'rate');", 1),
        ("CREATE TABLE c WITH (format = 'csv', path = 'nothing/there.csv');", 1),
        ("CREATE SINK o FOR a, nobody WITH (format = 'postgres', url = 'x');", 2),
        ("CREATE SINK O WITH (format = 'console');", 1),
        (f"CREATE QUERY a AS SELECT sum(w) AS x, max(y) AS y FROM s {W} WHERE l = 'x';", 3),
        (f"CREATE QUERY b AS SELECT count(*) AS n FROM sss {W};", 1),
        (f"CREATE QUERY d AS SELECT count(*) AS n FROM c {W};", 1),
        ("CREATE QUERY e AS SELECT count(*) AS n FROM s [RANGE 5 SLIDE 5];", 1),
        ("CREATE QUERY f AS SELECT count(*) AS n FROM s [ROWS 5 SLIDE 5];", 1),
        ("CREATE QUERY g AS SELECT count(*) AS n FROM s [RANGE '1 hour'];", 1),
        (f"CREATE QUERY h AS SELECT sum(k) AS n FROM s {W};", 1),
        (f"CREATE QUERY i AS SELECT count(*) AS n FROM s {W} JOIN d USING (k);", 1),
        (f"CREATE QUERY j AS SELECT count(*) AS n FROM s {W} JOIN s AS z USING (k);", 1),
        (f"CREATE QUERY k AS SELECT count(*) AS n FROM s {W} JOIN c USING (k);", 0),
        (f"CREATE QUERY l AS SELECT sum(vv) AS n FROM t {W};", 1),
        ("DROP QUERY nobody;", 1),
        (f"INSERT INTO oo SELECT count(*) AS n FROM s {W};", 1),
        ("CRATE QUERY z;", 1),
        ("SELECT count(* FROM s;", 1),
    ]
    path = tmp_path / "bad.sql"
    path.write_text("\n".join(line for line, _ in lines))
    error = refused(path, folder="x")
    found = [problem.line for problem in error.problems]
    assert {n: found.count(n) for n in found} == {
        number: count for number, (_, count) in enumerate(lines, 1) if count
    }
    text = str(error)
    for problem in error.problems:
        assert f"{path}:{problem.line}:{problem.column}: " in text
    assert text.count("^") == len(found)
    assert text.count("  Hint: ") == len(found)


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("", (1, 1), "no statement", "CREATE STREAM"),
        ("-- nothing", (1, 1), "no statement", "CREATE STREAM"),
        (RATE + f"SELECT sum(vl) FROM trades {W}", (2, 12), "no column vl", "mean vol?"),
        (RATE + f"SELECT sum(vol) FROM trade {W}", (2, 22), "no stream trade", "mean trades?"),
        (f"SELECT sum(vol) FROM t {W}", (1, 22), "no stream t", "CREATE STREAM t"),
        (RATE + f"SELECT lenth(symbol) FROM trades {W}", (2, 8), "no function lenth", "length?"),
        (
            "CREATE STREAM t WITH (format = 'rate', row_per_second = 5)",
            (1, 40),
            "a rate stream has no option row_per_second",
            "did you mean rows_per_second?",
        ),
        (
            "CREATE STREAM t (a INT) WITH (format = 'rate')",
            (1, 1),
            "columns of its own",
            "ts, symbol, price, vol, exchange",
        ),
        (
            "CREATE STREAM t WITH (format = 'rate', rows_per_second = 0)",
            (1, 58),
            "the value is '0'",
            "a whole number from 1",
        ),
        (
            "CREATE STREAM t WITH (format = 'rate', time = 'vol', lateness = '5s')",
            (1, 65),
            "a plain integer",
            "as a number",
        ),
        ("CREATE STREAM t WITH (format = 'rate', lateness = 5)", (1, 51), "no unit", "10 seconds"),
        (
            "CREATE STREAM t WITH (format = 'rate', time = 'vol', advance_when_idle = '5s')",
            (1, 74),
            "which no clock moves",
            "leave out advance_when_idle",
        ),
        (
            "CREATE STREAM t WITH (format = 'rate', advance_when_idle = 5)",
            (1, 60),
            "advance_when_idle is 5",
            "as in '1 minute'",
        ),
        ("CREATE STREAM t WITH (format = 'rate', time = 'symbol')", (1, 47), "time column", "use"),
        (
            "CREATE STREAM t (ts TIMESTAMP) WITH (format = 'kafka', topic = 'x')",
            (1, 56),
            "no option topic",
            "subscribe",
        ),
        (
            "CREATE STREAM t WITH (format = 'kafka', subscribe = 'x', kafka.bootstrap.servers='h')",
            (1, 82),
            "needs columns",
            "declare those",
        ),
        ("CREATE SINK s WITH (format = 'duckdb')", (1, 1), "there is no path", "add path"),
        ("CREATE SINK s WITH (format = 'memory', rows = 1)", (1, 40), "no option rows", "max_rows"),
        (
            "CREATE TABLE t (a INT) WITH (format = 'csv', path = 'x', refresh = 'soon')",
            (1, 68),
            "refresh",
            "",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_one_mistake(text: str, place: tuple[int, int], message: str, hint: str) -> None:
    problems = refused(text).problems
    said = [problem for problem in problems if message in problem.message]
    assert said, problems
    assert (said[0].line, said[0].column) == place
    assert hint in (said[0].hint or "")


def test_the_place_is_shown() -> None:
    error = refused(RATE + f"CREATE QUERY a AS\n  SELECT sum(vl) AS v FROM trades {W}")
    assert str(error) == (
        "text:3:14: query a: no column vl\n"
        f"    SELECT sum(vl) AS v FROM trades {W}\n"
        "               ^\n"
        "  Hint: did you mean vol?"
    )
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)


def test_variables_stand_for_values_and_nothing_else() -> None:
    text = "CREATE SINK s WITH (format = 'duckdb', path = '${a}/$${a}.db')"
    hostile = "x'); DROP QUERY a; --${b}"
    (sink,) = read(text, {"a": "/" + hostile}).sinks
    assert sink.options["path"] == f"/{hostile}/${{a}}.db"
    assert "--set a=" in (refused(text).problems[0].hint or "")
    assert refused(text, aa="1").problems[0].hint == "did you mean aa?"
    # Elsewhere they are text like any other, or no SQL at all.
    query = f"{RATE}SELECT count(*) AS n FROM trades {W} WHERE symbol = '${{a}}'"
    assert "'${a}'" in read(query, {"a": "x"}).queries["trades"][0].sql()
    refused(query.replace("'${a}'", "${a}"), a="x")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.sql"
    garbage.write_bytes(bytes(range(256)))
    for path, reason in [
        (garbage, "is not UTF-8 text"),
        (tmp_path / "nothing.sql", "No such file"),
        (tmp_path, "Is a directory"),
        (Path("/dev/zero"), "more than 20,000,000 bytes"),
    ]:
        with pytest.raises(PipelineError, match=reason) as caught:
            read(path)
        assert caught.value.problems[0].hint


def test_marks_and_line_ends_of_other_systems(tmp_path: Path) -> None:
    path = tmp_path / "windows.sql"
    path.write_bytes(
        b"\xef\xbb\xbf" + f"{RATE}SELECT sum(vl) FROM trades {W}".replace("\n", "\r\n").encode()
    )
    (problem,) = refused(path).problems
    assert (problem.line, problem.column) == (2, 12)


def test_types_of_declared_columns() -> None:
    (stream,) = read(
        """CREATE STREAM s (ts TIMESTAMP_NTZ, a TINYINT, b SMALLINT, c INTEGER, d LONG, e FLOAT,
        f DECIMAL, g BOOLEAN, h DATE, i BINARY, j VARCHAR(5),
        k TIMESTAMP(3)) WITH (format = 'csv', path = 'x')"""
    ).streams
    expected = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.decimal128(10, 0)]
    expected += [pa.bool_(), pa.date32(), pa.binary(), pa.string(), pa.timestamp("us", "UTC")]
    assert stream.schema.types == [pa.timestamp("us"), *expected]


def test_arrays_and_structs_of_declared_columns() -> None:
    columns = "(ts TIMESTAMP, l STRUCT<a: INT, b: STRUCT<xs: ARRAY<DOUBLE>>>, n ARRAY<BIGINT>)"
    where = "WITH (format = 'json', path = 'x')"
    asked = f"SELECT sum(l.a) AS a, max(l.b.xs[0]) AS x, min(n[1]) AS n FROM s {W}"
    (stream,) = read(f"CREATE STREAM s {columns} {where}; {asked}").streams
    inner = pa.struct([("xs", pa.list_(pa.float64()))])
    expected = [pa.struct([("a", pa.int32()), ("b", inner)]), pa.list_(pa.int64())]
    assert stream.schema.types[1:] == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("STREAM s (ts TIMESTAMP, n ARRAY<INT>) WITH (format = 'csv', path = 'x')", "CSV has no"),
        ("TABLE s (k INT, n ARRAY<INT>) WITH (format = 'json', path = 'x')", "a table has no"),
        ("STREAM s (ts TIMESTAMP, n MAP<INT, INT>) WITH (format = 'json', path = 'x')", "MAP<INT"),
        ("STREAM s (ts TIMESTAMP, n STRUCT<a: INT, A: INT>) WITH (format = 'json')", "STRUCT<a"),
        ("STREAM s (ts TIMESTAMP, n ARRAY<MAP<INT, INT>>) WITH (format = 'json')", "ARRAY<MAP"),
    ],
)
def test_types_that_columns_cannot_have(text: str, reason: str) -> None:
    assert reason in refused(f"CREATE {text}").problems[0].message


KEEP = f"CREATE KEEP recent AS SELECT symbol, max(price) FROM trades {W} GROUP BY symbol;\n"
QUERY = f"CREATE QUERY n AS SELECT count(*) AS n FROM trades {W};\n"


def test_what_is_kept_of_each_stream() -> None:
    other = "CREATE STREAM others WITH (format = 'rate');\n"
    dropped = "CREATE KEEP gone AS SELECT max(vol) FROM trades [RANGE 9 SLIDE 1]; DROP KEEP gone;"
    replaced = KEEP.replace("KEEP", "OR REPLACE KEEP").replace("max", "min")
    text = RATE + other + QUERY + KEEP + dropped.replace("9 SLIDE 1", "'9 s' SLIDE '1 s'")
    pipeline = read(text + replaced)
    (keep,) = pipeline.keeps["trades"]
    assert "min(price)" in str(keep)
    assert [len(run.keeps) for run in pipeline.runs()] == [1, 0]
    (kept,) = pipeline.kept("Trades")
    assert "about" in kept.explain()
    assert "bytes" in kept.explain()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (KEEP.replace("price", "prise"), 2, "prise"),
        (KEEP.replace("FROM trades", "FROM trade"), 2, "there is no stream trade"),
        (KEEP + KEEP, 3, "two keeps named recent"),
        ("DROP KEEP recnt;\n" + KEEP, 2, "no keep named recnt"),
        ("CREATE KEEP last AS SELECT * FROM trades [ROWS 5];", 2, "keeps slices, not the latest"),
        (QUERY.replace("[RANGE", "[PARTITION BY symbol ROWS 5 RANGE"), 2, "expected RANGE or ROWS"),
    ],
)
def test_what_is_wrong_with_a_keep(text: str, line: int, said: str) -> None:
    (problem,) = refused(RATE + text).problems
    assert problem.line == line
    assert said in problem.message


def test_queries_are_checked_where_options_of_their_stream_are_wrong() -> None:
    error = refused(f"""\
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE)
  WITH (format = 'csv', path = 'in', lateness = 'soon', nope = 1);
CREATE QUERY a AS SELECT top_k(price, 0) AS t, top_k(pric, 3) AS u, sum(zz) AS s FROM trades {W};
CREATE QUERY b AS SELECT id FROM trades [RANGE '1 minute'] WHERE symbol = 'A';
CREATE KEEP k AS SELECT max(prize) FROM trades {W};
""")
    said = [(problem.line, problem.message.rpartition(": ")[2]) for problem in error.problems]
    assert said == [
        (2, "cannot read duration 'soon'"),
        (2, "a csv stream has no option nope"),
        (3, "top_k takes a whole number from 1 to 10,000, not 0"),
        (3, "no column pric"),
        (3, "no column zz"),
        (4, "no column id in trades"),
        (5, "no column prize"),
    ]
