"""CREATE STREAM, CREATE TABLE, CREATE SINK and INSERT INTO, as they are written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import Problem
from muntin.queries import CreateQuery, CreateSink, CreateSource, Reference, parse_file

S = "FROM s [RANGE 10 SLIDE 5]"
COUNT = f"SELECT count(*) AS n {S}"


def problem(text: str) -> Problem:
    (found,) = parse_file(text).problems
    return found


def test_a_stream_with_columns_and_options() -> None:
    file = parse_file(
        """
        -- what comes in
        create stream Trades (ts TIMESTAMP, `select` DECIMAL(10, 2), vol BIGINT, größe STRING)
          WITH (Format = 'csv', 'path' = "a b", header = TRUE, kafka.bootstrap.servers = 'h:9092',
                lateness = -5, share = 1.5, folder = ${dir}, quote = 'it''s')
        """
    )
    (stream,) = file.statements
    assert isinstance(stream, CreateSource)
    assert (stream.kind, stream.name) == ("stream", "Trades")
    assert stream.columns == pa.schema(
        {
            "ts": pa.timestamp("us", "UTC"),
            "select": pa.decimal128(10, 2),
            "vol": pa.int64(),
            "größe": pa.string(),
        }
    )
    assert {option.key: option.value for option in stream.options} == {
        "Format": "csv",
        "path": "a b",
        "header": "true",
        "kafka.bootstrap.servers": "h:9092",
        "lateness": "-5",
        "share": "1.5",
        "folder": "${dir}",
        "quote": "it's",
    }
    assert file.names["STREAM"] == {"trades": "Trades"}


def test_columns_may_be_left_out() -> None:
    (table,) = parse_file("CREATE TABLE close WITH (format = 'csv')").statements
    assert isinstance(table, CreateSource)
    assert (table.kind, table.columns) == ("table", None)


def test_sinks_and_inserts() -> None:
    file = parse_file(
        f"""
        CREATE SINK out FOR a, `b` WITH (format = 'console');
        INSERT INTO out {COUNT};
        INSERT INTO out ({COUNT});
        CREATE QUERY OUT_2 AS {COUNT}
        """
    )
    sink, first, second, given = file.statements
    assert isinstance(sink, CreateSink)
    assert sink.queries == (Reference("a"), Reference("b"))
    assert isinstance(first, CreateQuery)
    assert isinstance(second, CreateQuery)
    assert isinstance(given, CreateQuery)
    assert [one.query.name for one in (first, second, given)] == ["out", "out_3", "OUT_2"]
    assert [one.sink for one in (first, second, given)] == [Reference("out")] * 2 + [None]


def test_what_can_be_read_is_read_beside_what_cannot() -> None:
    file = parse_file(f"CREATE STREAM a (; CREATE STREM b; {COUNT}; CREATE SINK c")
    assert [type(one) for one in file.statements] == [CreateQuery]
    assert [found.column for found in file.problems] == [18, 27, 97]
    assert set(file.names["STREAM"]) == {"a"}
    assert set(file.names["SINK"]) == {"c"}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("CREATE STREAM", "expected the name of a stream", "write CREATE STREAM trades"),
        ("CREATE STREAM 's' WITH (a = 1)", "expected the name of a stream", "write CREATE STREAM"),
        ("CREATE STREAM a.b WITH (a = 1)", "letters, digits and _ only", "trades_2"),
        ("CREATE STREAM `a b` WITH (a = 1)", "'a b' is not a name here", "such as trades"),
        ("CREATE STREAM größe WITH (a = 1)", "'größe' is not a name here", "such as trades"),
        (f"CREATE STREAM {'a' * 101} WITH (a = 1)", "more than 100 letters", "shorten"),
        ("CREATE STREAM a", "expected WITH and its options", "write CREATE STREAM"),
        ("CREATE STREAM a ()", "expected the name of a column", "write CREATE STREAM"),
        ("CREATE STREAM a (x) WITH (a = 1)", "expected the type of column x", "DOUBLE, BIGINT"),
        ("CREATE STREAM a (x DUBLE) WITH (a = 1)", "type of column x", "did you mean DOUBLE?"),
        ("CREATE STREAM a (x MAP<INT, INT>) WITH (a = 1)", "the type MAP<INT, INT>", "use BOOLEAN"),
        ("CREATE STREAM a (x DECIMAL(99)) WITH (a = 1)", "the type DECIMAL(99)", "use BOOLEAN"),
        ("CREATE STREAM a (x TIME) WITH (a = 1)", "the type TIME", "DATE or TIMESTAMP"),
        ("CREATE STREAM a (x TIMESTAMP(9)) WITH (a = 1)", "the type TIMESTAMP(9)", "use BOOLEAN"),
        ("CREATE STREAM a (x INT NOT NULL) WITH (a = 1)", "NOT NULL is not checked", "leave it"),
        ("CREATE STREAM a (x INT, X INT) WITH (a = 1)", "two columns named X", "letter case"),
        ("CREATE STREAM a (x INT y INT) WITH (a = 1)", "expected , or )", "CREATE STREAM"),
        (
            "CREATE STREAM a (x INT, WATERMARK FOR x AS x - INTERVAL '5' SECOND) WITH (a = 1)",
            "WATERMARK is not declared among the columns",
            "lateness = '5 seconds'",
        ),
        ("CREATE STREAM a WITH a = 1", "expected ( after WITH", "write WITH (format"),
        ("CREATE STREAM a WITH ()", "expected the name of an option", "write WITH (format"),
        ("CREATE STREAM a WITH (a)", "expected = after a", "write WITH (format"),
        ("CREATE STREAM a WITH (a = b)", "expected the value of an option", "'b', in quotes"),
        ("CREATE STREAM a WITH (a = (1))", "expected the value", "a string such as 'csv'"),
        ("CREATE STREAM a WITH (a = 'x' 'y')", "a second string", "a comma before"),
        ("CREATE STREAM a WITH (a = $x)", "expected {name} after $", "write ${name}"),
        ("CREATE STREAM a WITH (a = ${x)", "expected } after the name", "write ${name}"),
        ("CREATE STREAM a WITH (a = 1, A = 2)", "the option A is given twice", "keep one"),
        ("CREATE STREAM a WITH (a = 1", "expected , or ) after an option", "write WITH"),
        ("CREATE OR REPLACE STREAM a WITH (a = 1)", "only queries are replaced", "OR REPLACE"),
        ("CREATE TABLE IF NOT EXISTS a WITH (a = 1)", "IF NOT EXISTS is not needed", "leave it"),
        ("CREATE SINK a FOR WITH (a = 1)", "expected the name of a query", "write FOR"),
        ("INSERT OVERWRITE a SELECT 1", "expected INTO after INSERT", "write INSERT INTO"),
        ("INSERT INTO a (b) SELECT 1", "a list of columns", "those of the query"),
        (
            "CREATE VIEW a AS SELECT 1",
            "CREATE VIEW is not a statement",
            "STREAM, TABLE, SINK or KEEP",
        ),
        ("STREAM a", "unexpected STREAM", "STREAM, TABLE, SINK or KEEP"),
        ("INSRT INTO a SELECT 1", "unexpected INSRT", "did you mean INSERT?"),
    ],
    ids=lambda text: text[:40],
)
def test_refused(text: str, message: str, hint: str) -> None:
    found = problem(text)
    assert message in found.message
    assert hint in (found.hint or "")
    assert found.line == 1
    assert found.column >= 1
