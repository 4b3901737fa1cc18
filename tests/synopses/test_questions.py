"""What questions may say, and what is said where they cannot be answered."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.streams import Stream
from muntin.synopses import Asking

COLUMNS = {"ts": "int64", "k": "string", "v": "int64", "x": "double"}
QUERY = "SELECT count(*) AS n FROM t [RANGE 60 SLIDE 60]"
KEEP = (
    "CREATE KEEP recent AS SELECT k, max(v), sum(v), count(*), min(x), max(x), sum(x)"
    " FROM t [RANGE 60 SLIDE 5] GROUP BY k CUT (v > 10)"
)
ROWS = pa.table(
    {
        "ts": [1, 7, 12, 13],
        "k": ["a", "a", "b", None],
        "v": [9, 30, 4, 50],
        "x": [1.5, -2.0, 0.5, 0.0],
    }
)


@pytest.fixture
def stream() -> Stream:
    opened = muntin.stream(QUERY, COLUMNS, keeps=KEEP)
    opened.feed(ROWS)
    return opened


def refusal(stream: Stream, sql: str, **options: object) -> str:
    with pytest.raises(muntin.MuntinError) as caught:
        stream.ask(sql, **options)
    return str(caught.value)


def test_an_ungrouped_question_always_gives_one_row(stream: Stream) -> None:
    answer = stream.ask("SELECT count(*) AS n, max(v) AS m FROM t [RANGE 10] WHERE k = 'nobody'")
    assert answer.frame.to_pylist() == [{"n": 0, "m": None}]
    empty = muntin.stream(QUERY, COLUMNS, keeps=KEEP)
    answer = empty.ask("SELECT count(*) AS n FROM t [RANGE 10]")
    assert (answer.frame.to_pylist(), answer.covers, answer.as_of) == (
        [{"n": 0}],
        None,
        (None, None),
    )


def test_answers_are_ordered_and_limited(stream: Stream) -> None:
    by_group = stream.ask("SELECT k, max(v) AS m FROM t [RANGE 14] GROUP BY k").frame.to_pylist()
    assert [row["k"] for row in by_group] == [None, "a", "b"]
    sql = "SELECT k, max(v) AS m FROM t [RANGE 14] GROUP BY k HAVING count(*) < 9"
    sql += " ORDER BY m DESC LIMIT 2"
    assert [row["k"] for row in stream.ask(sql).frame.to_pylist()] == [None, "a"]
    assert len(stream.ask(sql.replace("LIMIT 2", "LIMIT 1")).frame) == 1
    assert "whole number" in refusal(stream, sql.replace("LIMIT 2", "LIMIT 1.5"))
    assert "not a column of the answer" in refusal(stream, sql.replace("BY m", "BY v"))


def test_groups_roll_up_and_may_be_computed(stream: Stream) -> None:
    sql = "SELECT k IS NULL AS unknown, sum(v) AS s FROM t [RANGE 14] GROUP BY k IS NULL"
    assert stream.ask(sql).frame.to_pylist() == [
        {"unknown": False, "s": 43},
        {"unknown": True, "s": 50},
    ]


def test_filters_and_expressions_of_aggregates(stream: Stream) -> None:
    sql = (
        "SELECT count(*) FILTER (WHERE v > 10) AS big, sum(v) / count(*) AS mean FROM t [RANGE 14]"
    )
    assert stream.ask(sql).frame.to_pylist() == [{"big": 2, "mean": 93 / 4}]
    assert "computed from several" in refusal(stream, sql.replace("RANGE 14", "RANGE 10 AS OF 12"))


def test_bounds_stand_beside_what_is_not_exact(stream: Stream) -> None:
    answer = stream.ask("SELECT count(*) AS n, sum(x) AS s FROM t [RANGE 8 AS OF 13]")
    assert not answer.exact
    assert answer.covers == (5, 15)
    (row,) = answer.frame.to_pylist()
    assert (row["n"], row["n_low"], row["n_high"]) == (3, 1, 3)
    assert row["s_low"] <= -1.5 <= row["s_high"]
    assert stream.ask("SELECT count(*) AS n FROM t [RANGE 8 AS OF 13 ALIGNED]").exact
    having = "SELECT k, count(*) AS n FROM t [RANGE 8 AS OF 13] GROUP BY k HAVING count(*) > {}"
    assert len(stream.ask(having.format(0)).frame) == 3
    assert len(stream.ask(having.format(1)).frame) == 0


def test_widths_are_kept_or_refused(stream: Stream) -> None:
    sql = "SELECT count(*) AS n FROM t [RANGE 8 AS OF 13 WITHIN {}%]"
    assert stream.ask(sql.format(70)).frame.column_names == ["n", "n_low", "n_high"]
    text = refusal(stream, sql.format(10))
    assert "a keep with a shorter SLIDE would do: CREATE OR REPLACE KEEP" in text
    stream.keep(text.partition("would do: ")[2].partition("; or ask")[0])
    stream.feed(pa.table({"ts": [18, 29], "k": ["a", "b"], "v": [1, 2], "x": [0.0, 0.0]}))
    assert stream.ask("SELECT count(*) AS n FROM t [RANGE 8 WITHIN 10%]").exact


def test_the_keep_of_a_refusal_joins_what_the_question_does() -> None:
    tables = {"names": pa.table({"k": ["a", "b"], "name": ["one", "two"]})}
    kept = """CREATE KEEP recent AS SELECT names.name, count(*) FROM t [RANGE 60 SLIDE 5]
      JOIN names ON t.k = names.k GROUP BY names.name"""
    stream = muntin.stream(QUERY, COLUMNS, tables=tables, keeps=kept)
    stream.feed(ROWS)
    joined = (
        "SELECT names.name, max(v) AS m FROM t [RANGE 9] JOIN names ON t.k = names.k GROUP BY 1"
    )
    plain = "SELECT max(v) AS m FROM t [RANGE 9]"
    texts = [refusal(stream, sql) for sql in (joined, plain)]
    assert "CREATE OR REPLACE KEEP recent AS SELECT names.name" in texts[0]
    assert "CREATE KEEP more AS SELECT max(v) FROM t [RANGE 9" in texts[1]
    for text in texts:
        stream.keep(text.partition("on: ")[2])
    stream.feed(pa.table({"ts": [40, 41], "k": ["a", "b"], "v": [1, 2], "x": [0.0, 0.0]}))
    found = stream.ask(joined, timeout="1 minute").frame.to_pylist()
    assert found == [{"name": "one", "m": 1}, {"name": "two", "m": 2}]
    assert stream.ask(plain, timeout="1 minute").frame.to_pylist() == [{"m": 2}]


def test_sums_need_the_extremes_of_what_is_added(stream: Stream) -> None:
    sql = "SELECT sum(v) AS s FROM t [RANGE 8 AS OF 13]"
    text = refusal(stream, sql)
    assert "keep min(v) and max(v) too" in text
    again = muntin.stream(QUERY, COLUMNS, keeps=text.partition("too: ")[2].partition("; or ask")[0])
    again.feed(ROWS)
    assert again.ask(sql).frame.to_pylist() == [{"s": 84, "s_low": 30, "s_high": 84}]


@pytest.mark.parametrize(
    ("first", "second", "rows"),
    [
        ("RANGE 5 AS OF -5", "RANGE 5 AS OF -15", 2),
        ("RANGE 10 AS OF -5", "RANGE 10 AS OF -10", 3),
        ("ROWS 3", "ROWS 2", 2),
    ],
)
def test_texts_of_one_shape_go_by_their_own_constants(first: str, second: str, rows: int) -> None:
    """A minus belongs to the time: no constant that may be another is all of it."""
    kept = ["CREATE KEEP a AS SELECT count(*) FROM t [RANGE 90 SLIDE 5]"]
    kept.append("CREATE KEEP l AS SELECT * FROM t [ROWS 9]")
    stream = muntin.stream(QUERY, COLUMNS, lateness=90, keeps=kept)
    stream.feed(ROWS.set_column(0, "ts", pa.array([-20, -16, -11, 40])))
    sql = "SELECT count(*) AS n FROM t [{}]"
    stream.ask(sql.format(first))
    assert stream.ask(sql.format(second)).frame.to_pylist() == [{"n": rows}]


def test_extents_of_several_words_are_not_taken_for_each_other() -> None:
    keep = "CREATE KEEP a AS SELECT count(*) FROM t [RANGE '1 hour' SLIDE '1 second']"
    columns = {"ts": "timestamp[us]", "v": "int64"}
    query = "SELECT count(*) AS n FROM t [RANGE '9 s' SLIDE '4 s']"
    stream = muntin.stream(query, columns, keeps=keep)
    start = dt.datetime(2026, 1, 1)
    times = [start + dt.timedelta(seconds=number) for number in range(100)]
    stream.feed(pa.table({"ts": pa.array(times, pa.timestamp("us")), "v": range(100)}))
    for seconds in (5, 7, 60):
        for written in (f"INTERVAL '{seconds}' SECOND", f"{seconds} SECONDS"):
            found = stream.ask(f"SELECT count(*) AS n FROM t [RANGE {written} ALIGNED]")
            assert found.frame.to_pylist() == [{"n": seconds + 1}]


def test_a_constant_may_be_a_number_of_numpy(stream: Stream) -> None:
    ask = stream.prepare("SELECT k, max(v) AS m FROM t [RANGE ?] GROUP BY k HAVING max(v) > ?")
    found = ask(np.int32(14), np.float32(9.5)).frame.to_pylist()
    assert [row["m"] for row in found] == [50, 30]


def test_a_block_of_zeros_lies_beside_others() -> None:
    keep = "CREATE KEEP a AS SELECT k, sum(v), sum(x) FROM t [RANGE 60 SLIDE 5] GROUP BY k"
    stream = muntin.stream(QUERY, COLUMNS, lateness=60, keeps=keep)
    for scale in (0, 1, 0, 2**40, 0):
        values = pa.array([scale * each for each in (1, 2, 3, 4)])
        stream.feed(ROWS.set_column(2, "v", values).set_column(3, "x", values.cast("double")))
    total = 2**40 + 1
    grouped = "SELECT k, sum(v) AS v, sum(x) AS x FROM t [RANGE 15 ALIGNED] GROUP BY k"
    assert stream.ask(grouped).frame.to_pylist() == [
        {"k": None, "v": 4 * total, "x": 4 * total},
        {"k": "a", "v": 3 * total, "x": 3 * total},
        {"k": "b", "v": 3 * total, "x": 3 * total},
    ]
    single = "SELECT sum(v) AS v FROM t [RANGE 15 ALIGNED] WHERE k = 'a'"
    assert stream.ask(single).frame.to_pylist() == [{"v": 3 * total}]


def test_the_keep_of_a_refusal_has_the_slices_of_the_one_before(stream: Stream) -> None:
    stream.keep("CREATE KEEP other AS SELECT max(x) FROM t [RANGE 60 SLIDE 5 OFFSET 2]")
    stream.drop_keep("recent")
    assert "[RANGE 60 SLIDE 5 OFFSET 2]" in refusal(stream, "SELECT min(x) FROM t [RANGE 9]")


def test_names_of_keeps_are_text(stream: Stream) -> None:
    with pytest.raises(muntin.QueryError, match="None is not the name of a keep"):
        stream.drop_keep(None)  # type: ignore[arg-type]


def test_a_constant_may_be_as_long_as_it_is(stream: Stream) -> None:
    ask = stream.prepare("SELECT count(*) AS n FROM t [RANGE 9] WHERE v > ?")
    with pytest.raises(muntin.MuntinError):
        ask(-(10**400))


def test_times_have_64_bits() -> None:
    keep = "CREATE KEEP a AS SELECT count(*) FROM t [RANGE 60 SLIDE 1]"
    stream = muntin.stream(QUERY, COLUMNS, lateness=60, keeps=keep)
    stream.feed(ROWS)
    sql = "SELECT count(*) AS n FROM t [RANGE 9 AS OF {}]"
    for at in (-(2**63), -(2**63) + 4, 2**63 - 1):
        assert stream.ask(sql.format(at)).frame.to_pylist() == [{"n": 0}]
    for at in (-(2**63) - 1, 2**63):
        assert "is not a time of ts" in refusal(stream, sql.format(at))


@pytest.mark.parametrize("rows", ["2.5", "1e1", "0", "99999999999999999999999"])
def test_rows_are_a_whole_number_in_every_text_of_a_shape(rows: str) -> None:
    keep = "CREATE KEEP last AS SELECT * FROM t [ROWS 9]"
    stream = muntin.stream(QUERY, COLUMNS, keeps=keep)
    stream.feed(ROWS)
    assert stream.ask("SELECT count(*) AS n FROM t [ROWS 3]").frame.to_pylist() == [{"n": 3}]
    refusal(stream, f"SELECT count(*) AS n FROM t [ROWS {rows}]")


def test_lists_have_no_order() -> None:
    keep = "CREATE KEEP a AS SELECT k, collect_set(v) FROM t [RANGE 60 SLIDE 5] GROUP BY k"
    stream = muntin.stream(QUERY, COLUMNS, keeps=keep)
    stream.feed(ROWS)
    sql = "SELECT k, collect_set(v) AS c FROM t [RANGE 14] GROUP BY k ORDER BY c"
    assert "which has no order" in refusal(stream, sql)


def odd_numbers(kind: pa.DataType, values: list[Any], keeps: str) -> Stream:
    schema = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": kind})
    stream = muntin.stream(QUERY, schema, keeps=keeps)
    ticks = [1, 4, 7, 12]
    stream.feed(pa.table({"ts": ticks, "k": ["a", "b", "a", "a"], "x": values}, schema=schema))
    return stream


def test_a_width_is_judged_of_every_kind_of_number() -> None:
    keep = "CREATE KEEP a AS SELECT k, sum(x), min(x), max(x) FROM t [RANGE 60 SLIDE 5] GROUP BY k"
    decimals = odd_numbers(pa.decimal128(9, 2), [Decimal(1), None, Decimal(90), Decimal(9)], keep)
    sql = "SELECT k, {} AS s FROM t [RANGE 10 WITHIN {}%] GROUP BY k{}"
    rows = decimals.ask(sql.format("max(x)", 10, "")).frame.to_pylist()
    assert [(row["s"], row["s_low"], row["s_high"]) for row in rows] == [
        (Decimal(90), Decimal(90), Decimal(90)),
        (None, None, None),
    ]
    assert decimals.ask(sql.format("sum(x)", 2, " HAVING count(*) > 1"), max_rows=9).rows == 4
    text = refusal(decimals, sql.format("sum(x)", 0.5, " HAVING count(*) > 1"))
    assert "1 apart, and 0.5% of the answer is 0.5" in text
    floats = odd_numbers(pa.float64(), [math.nan, None, 1.0, 2.0], keep)
    assert "inf apart" in refusal(floats, sql.format("max(x)", 10, ""))
    floats = odd_numbers(pa.float64(), [1.0, None, math.nan, 2.0], keep)
    assert len(floats.ask(sql.format("max(x)", 10, "")).frame) == 2


def test_the_range_of_infinite_numbers_is_bounded() -> None:
    keep = "CREATE KEEP a AS SELECT value_range(x) FROM t [RANGE 60 SLIDE 5]"
    stream = odd_numbers(pa.float64(), [1.0, math.inf, math.inf, math.inf], keep)
    found = stream.ask("SELECT value_range(x) AS r FROM t [RANGE 10]").frame.to_pylist()
    (low, high) = found[0]["r_low"], found[0]["r_high"]
    # Of the rows from 3 on it is NaN, which is above all numbers.
    assert (low, math.isnan(high)) == (math.inf, True)


def test_a_refused_window_of_the_past_is_in_the_span_of_the_keep_that_would_do() -> None:
    stream = muntin.stream(QUERY, COLUMNS, keeps=KEEP.replace("RANGE 60", "RANGE 10"))
    ticks = [1, 40, 60, 79]
    rows = ROWS.set_column(0, "ts", pa.array(ticks))
    stream.feed(rows)
    sql = "SELECT k, count(*) AS n FROM t [RANGE 20 AS OF 50] GROUP BY k"
    text = refusal(stream, sql)
    again = muntin.stream(QUERY, COLUMNS, keeps=text[text.index("CREATE") :])
    again.feed(rows)
    assert again.ask(sql).frame.to_pylist() == [{"k": "a", "n": 1}]


def test_the_keep_of_a_refusal_fits_a_column_of_seconds() -> None:
    columns = {"ts": "timestamp[s]", "v": "int64"}
    keep = "CREATE KEEP a AS SELECT count(*) FROM t [RANGE '1 hour' SLIDE '5 seconds']"
    query = "SELECT count(*) AS n FROM t [RANGE '9 s' SLIDE '4 s']"
    times = pa.array([0, 4, 6, 12, 16], pa.timestamp("s"))
    rows = pa.table({"ts": times, "v": range(5)})
    asked = "SELECT count(*) AS n FROM t [RANGE '7 seconds' WITHIN 60%]"
    for kept in (None, keep):
        stream = muntin.stream(query, columns, keeps=kept)
        stream.feed(rows)
        sql = asked.replace("60", "10")
        text = refusal(stream, sql)
        would = text[text.index("CREATE") :].partition("; or ask")[0]
        again = muntin.stream(query, columns, keeps=would)
        again.feed(rows)
        assert again.ask(sql.replace("WITHIN 10%", "ALIGNED")).exact


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT median(v) FROM t [RANGE 9]", "median(v) FROM t [RANGE 60 SLIDE 5]"),
        ("SELECT max(v) FROM t [RANGE 90]", "[RANGE 90 SLIDE 5] GROUP BY k"),
        ("SELECT max(v) FROM t [RANGE 9] WHERE x > 1", "CUT (v > 10, x > 1)"),
        ("SELECT x, max(v) FROM t [RANGE 9] GROUP BY x", "GROUP BY k, x"),
        ("SELECT max(nope) FROM t [RANGE 9]", "no column nope"),
        ("SELECT max(v) FROM t [RANGE 9 SLIDE 3]", "a question has no SLIDE"),
        ("SELECT window_end AS e, max(v) FROM t [RANGE 9]", "has no column window_end"),
        ("SELECT max(v) FROM t", "Hint: write FROM stream [RANGE '7 minutes'], or [ROWS 10]"),
        ("SELECT max(v) FROM t [ROWS 9]", "none of its rows are kept"),
        ("SELECT max(v) FROM t [RANGE '9 minutes']", "plain integer"),
        ("SELECT max(v) FROM t [RANGE 0x10]", "cannot read duration '0x10'"),
        ("SELECT max(v) FROM t [RANGE 1 2]", "duration '1 2' has an unknown unit"),
        ("SELECT max(v) FROM t [RANGE 9 AS OF 'x']", "is not a time"),
        ("SELECT max(v) FROM t [RANGE 9 AS]", "expected OF after AS"),
        ("SELECT max(v) FROM t [RANGE 9 WITHIN 3]", "expected %"),
        ("DROP QUERY q", "question starts with SELECT"),
        ("", "there is no question"),
        ("SELECT max(v) FROM t [RANGE 9] WHERE k = 'a", "not closed"),
        ("SELECT " + "(" * 500 + "max(v)" + ")" * 500 + " FROM t [RANGE 9]", "levels of nesting"),
    ],
)
def test_refusals_say_what_would_do(stream: Stream, sql: str, said: str) -> None:
    assert said in refusal(stream, sql)


def test_the_keep_of_a_refusal_does_answer(stream: Stream) -> None:
    text = refusal(stream, "SELECT k, median(v) AS m FROM t [RANGE 9] WHERE x > 0 GROUP BY k")
    stream.keep(text[text.index("CREATE") :])
    question = "SELECT k, median(v) AS m FROM t [RANGE 5] WHERE x > 0 GROUP BY k"
    assert "has all rows from 15 on" in refusal(stream, question)
    stream.feed(pa.table({"ts": [20], "k": ["a"], "v": [6], "x": [1.0]}))
    assert stream.ask(question).frame.to_pylist() == [{"k": "a", "m": 6.0}]


def test_a_question_has_a_budget(stream: Stream) -> None:
    sql = "SELECT k, max(v) AS m FROM t [RANGE 14] GROUP BY k"
    assert "3 rows, but at most 2 are allowed" in refusal(stream, sql, max_rows=2)
    assert "longer than its" in refusal(stream, sql, timeout=1e-9)
    assert "isolation must be" in refusal(stream, sql, isolation="serial")
    assert "max_rows must be" in refusal(stream, sql, max_rows=0)


def test_what_takes_long_to_read_is_refused(stream: Stream) -> None:
    sql = "SELECT count(*) AS n FROM t [RANGE 14] WHERE "
    each = [f"k = '{number}'" for number in range(400)]
    assert "399 ANDs and ORs, but at most 256 are allowed" in refusal(
        stream, sql + " OR ".join(each)
    )
    assert "write k IN" in refusal(stream, sql + " AND ".join(f"NOT {one}" for one in each))
    listed = ", ".join(f"'{number}'" for number in range(5000))
    assert "words, but at most 10,000 are allowed" in refusal(stream, f"{sql} k IN ({listed})")
    found = stream.ask(sql + " OR ".join([*each[:255], "k = 'a'"]), timeout="1 minute")
    assert found.frame.to_pylist() == [{"n": 2}]


def test_what_took_too_long_is_not_asked_of_others(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = [], Asking._answer

    def counted(self: Asking, *given: Any) -> Any:
        asked.append(self)
        return answer(self, *given)

    monkeypatch.setattr(Asking, "_answer", counted)
    sql = "SELECT median(v) AS m FROM t [RANGE 14]"
    assert "does not keep median(v)" in refusal(stream, sql)
    assert len(asked) == 2
    refusal(stream, sql, timeout=1e-9)
    assert len(asked) == 3


def test_many_groups_are_limited(stream: Stream) -> None:
    many = 200_000
    keys = pa.array(range(many)).cast(pa.string())
    rows = pa.table({"ts": [3] * many, "k": keys, "v": range(many), "x": [0.0] * many})
    grouped = muntin.stream(QUERY, COLUMNS, keeps=KEEP)
    grouped.feed(rows)
    sql = "SELECT k, max(v) AS m FROM t [RANGE 5] GROUP BY k"
    assert "200,000 rows, but at most 100,000 are allowed" in refusal(grouped, sql)
    limited = grouped.ask(f"{sql} ORDER BY m DESC LIMIT 2", timeout="1 minute")
    assert limited.frame["m"].to_pylist() == [many - 1, many - 2]
    one = grouped.ask("SELECT max(v) AS m FROM t [RANGE 5] WHERE k = '77'", timeout="1 minute")
    assert one.frame.to_pylist() == [{"m": 77}]


def test_questions_of_one_shape_differ_in_constants(stream: Stream) -> None:
    ask = stream.prepare("SELECT max(v) AS m FROM t [RANGE ? AS OF ?] WHERE k = ? AND v > ?")
    assert ask(14, 14, "a", 10).frame.to_pylist() == [{"m": 30}]
    assert ask(14, 14, "b", 10).frame.to_pylist() == [{"m": None}]
    assert ask(60, 5, "a", 10).frame.to_pylist() == [{"m": None}]
    with pytest.raises(muntin.MuntinError, match="4 constants to fill in, not 1"):
        ask(14)
    with pytest.raises(muntin.MuntinError, match="cannot be a constant"):
        ask(14, 14, b"a", 10)


def test_a_number_and_a_string_in_one_place_are_different_questions(stream: Stream) -> None:
    sql = "SELECT count(*) AS n FROM t [RANGE {}]"
    assert "is a duration" in refusal(stream, sql.format("'12 minutes'"))
    assert stream.ask(sql.format("9")).frame.to_pylist() == [{"n": 3}]
    assert "?" in refusal(stream, sql.format("?"))


def test_times_are_written_as_in_sql() -> None:
    stream = muntin.stream(
        "SELECT count(*) AS n FROM t [RANGE '1 hour' SLIDE '1 hour']",
        {"ts": pa.timestamp("us", "UTC"), "v": "int64"},
        timezone="America/New_York",
        keeps=muntin.keep("k").from_("t").window("1 hour", "1 minute").agg("count(*)"),
    )
    noon = dt.datetime(2026, 1, 5, 17, tzinfo=dt.UTC)
    stream.feed(pa.table({"ts": [noon, noon + dt.timedelta(minutes=9)], "v": [1, 2]}))
    sql = "SELECT count(*) AS n FROM t [RANGE '1 minute' AS OF '{}']"
    assert stream.ask(sql.format("2026-01-05 12:01:00")).frame.to_pylist() == [{"n": 1}]
    answer = stream.prepare("SELECT count(*) AS n FROM t [RANGE ?]")(dt.timedelta(minutes=10))
    assert answer.frame.to_pylist() == [{"n": 2}]
    assert answer.covers.end == noon + dt.timedelta(minutes=10)


def test_keeps_come_and_go_by_name(stream: Stream) -> None:
    with pytest.raises(muntin.QueryError, match="already a keep named recent"):
        stream.keep(KEEP)
    stream.keep("CREATE KEEP other AS SELECT max(v) FROM t [RANGE 9 SLIDE 3]; DROP KEEP Recent")
    assert [keep.name for keep in stream.keeps()] == ["other"]
    assert "entries per row" in stream.explain_keeps()
    with pytest.raises(muntin.MuntinError, match="there is no keep named recent"):
        stream.drop_keep("recent")
    stream.drop_keep("other")
    assert "nothing is kept of t" in refusal(stream, "SELECT max(v) FROM t [RANGE 9]")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("CREATE KEEP k AS SELECT max(v) FROM t [RANGE 9]", "a RANGE and a SLIDE over time"),
        ("CREATE KEEP k AS SELECT v FROM t [RANGE 9]", "or the latest rows"),
        ("CREATE KEEP k AS SELECT max(v) + 1 FROM t [RANGE 9 SLIDE 3]", "not expressions"),
        ("CREATE KEEP k AS SELECT max(v) FROM t [RANGE 3 SLIDE 9]", "longer than its RANGE"),
        ("CREATE KEEP k AS SELECT max(v) FROM t [RANGE 9 SLIDE 3] CUT v > 1", "expected ("),
        ("CREATE KEEP k AS SELECT max(nope) FROM t [RANGE 9 SLIDE 3]", "no column nope"),
        ("CREATE QUERY k AS SELECT max(v) FROM t [RANGE 9 SLIDE 3]", "CREATE KEEP or DROP KEEP"),
    ],
)
def test_what_cannot_be_kept(stream: Stream, sql: str, said: str) -> None:
    with pytest.raises(muntin.MuntinError) as caught:
        stream.keep(sql)
    assert said in str(caught.value)
    assert [keep.name for keep in stream.keeps()] == ["recent"]


def test_a_keep_changes_no_query(stream: Stream) -> None:
    alone = muntin.stream(QUERY, COLUMNS)
    alone.feed(ROWS)
    later = pa.table({"ts": [130], "k": ["a"], "v": [1], "x": [0.0]})
    assert alone.feed(later)["q1"].equals(stream.feed(later)["q1"])


def test_a_keep_is_refused_where_nothing_can_be_asked(stream: Stream) -> None:
    with pytest.raises(muntin.QueryError, match="pass it as keeps="):
        muntin.aggregate(ROWS, KEEP, time="ts")
    with pytest.raises(muntin.QueryError, match="pass it as keeps="):
        stream.add(KEEP.replace("recent", "more"))
    with pytest.raises(muntin.QueryError, match="AS belongs to a question"):
        muntin.stream("SELECT max(v) FROM t [RANGE 9 AS OF LATEST]", COLUMNS)


def test_dead_groups_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muntin.synopses.keeps.replica._FEW_GROUPS", 8)
    stream = muntin.stream(
        QUERY,
        COLUMNS,
        keeps="CREATE KEEP r AS SELECT k, sum(v) FROM t [RANGE 20 SLIDE 1] GROUP BY k",
    )
    for tick in range(200):
        stream.feed(pa.table({"ts": [tick], "k": [f"k{tick}"], "v": [tick], "x": [0.0]}))
    version = stream._keeper.versions.by_name["r"]
    assert version.count < 80
    assert len(version.blocks) < 20
    answer = stream.ask("SELECT k, sum(v) AS s FROM t [RANGE 20] GROUP BY k")
    assert {row["s"] for row in answer.frame.to_pylist()} == set(range(180, 200))


@pytest.mark.parametrize(
    ("end", "group", "rows"), [(-4, -1.5, 1), (-9, -1.5, 0), (2, 0.0, 1), (2, -0.0, 1)]
)
def test_constants_of_prepared_questions_may_be_negative(end: int, group: float, rows: int) -> None:
    keep = "CREATE KEEP k AS SELECT g, count(*) FROM t [RANGE 100 SLIDE 1] GROUP BY g"
    stream = muntin.stream(QUERY, {"ts": "int64", "g": "double"}, keeps=keep)
    stream.feed(pa.table({"ts": [-9, -5, 1], "g": [-1.5, 1.5, -0.0]}))
    ask = stream.prepare(
        "SELECT count(*) AS n FROM t [RANGE 50 AS OF ?] WHERE g = ?", timeout="1 minute"
    )
    assert ask(end, group).frame.to_pylist() == [{"n": rows}]
