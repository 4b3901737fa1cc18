"""Caps and bounds: options wherever they are said, and the columns that tell of answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError, MuntinError, QueryError
from muntin.queries import all_queries, queries, query

RNG = np.random.default_rng(3)
TABLE = pa.table(
    {
        "ts": np.arange(2000),
        "x": RNG.lognormal(3, 2, 2000) * RNG.choice([-1, 1], 2000),
        "n": RNG.integers(-(10**12), 10**12, 2000),
        "d": pa.array(RNG.integers(0, 10**6, 2000)).cast(pa.decimal128(19, 0)),
        "s": pa.array([f"k{v}" for v in RNG.integers(0, 900, 2000)]),
    }
)
WINDOW = "FROM t [RANGE 1000 SLIDE 500]"


@pytest.mark.parametrize("column", ["x", "n", "d"])
def test_bounds_of_percentiles_hold(column):
    given = ", ".join(f"{p}" for p in (0.0, 0.1, 0.5, 0.99, 1.0))
    sql = (
        f"CREATE QUERY q WITH (bounds = true) AS SELECT approx_percentile({column}, array({given}),"
        f" 0.05) AS p, percentile_disc({column}, array({given})) AS e, min({column}) AS m {WINDOW}"
    )
    table = muntin.aggregate(TABLE, sql, time="ts").table("q")
    assert table.column_names[2:5] == ["p", "p_low", "p_high"]
    assert table["p_low"].type == table["p"].type
    for row in table.to_pylist():
        for low, value, high, exact in zip(
            row["p_low"], row["p"], row["p_high"], row["e"], strict=True
        ):
            assert low <= value <= high
            assert float(low) <= exact <= float(high)
            assert float(high) - float(low) <= 0.11 * max(abs(exact), 1)
        assert row["p_low"][0] == row["p_high"][0] == row["m"]


def test_bounds_of_estimates_are_three_standard_errors():
    sql = f"SELECT approx_count_distinct(s) AS a, count(DISTINCT s) AS e {WINDOW}"
    rows = muntin.aggregate(TABLE, sql, time="ts", bounds=True)["q1"].to_pylist()
    for row in rows:
        assert row["a_low"] <= row["e"] <= row["a_high"]
        assert 0.09 < (row["a_high"] - row["a_low"]) / row["a"] < 0.13
    few = muntin.aggregate(TABLE.slice(0, 50), sql, time="ts", bounds=True)["q1"].to_pylist()
    assert all(row["a_low"] == row["e"] == row["a_high"] for row in few)


def test_no_bounds_where_nobody_asks():
    sql = f"SELECT approx_count_distinct(s) AS a, approx_count_distinct(s) + 1 AS b {WINDOW}"
    assert muntin.aggregate(TABLE, sql, time="ts")["q1"].column_names[2:] == ["a", "b"]
    shown = muntin.aggregate(TABLE, sql, time="ts", bounds=True)["q1"].column_names[2:]
    assert shown == ["a", "a_low", "a_high", "b"]


EXACT = (
    f"SELECT count(DISTINCT s) AS a, median(x) AS m, percentile(x, array(0.2, 0.9)) AS p {WINDOW}"
)


def test_windows_over_the_cap_are_null_and_counted():
    results = muntin.aggregate(TABLE, EXACT, time="ts", cap_values=700)
    rows = results["q1"].to_pylist()
    assert [row["m"] is None for row in rows] == [False, True, True, True, False]
    assert results.errors["q1"] == 6
    whole = muntin.aggregate(TABLE, EXACT, time="ts")["q1"].to_pylist()
    assert rows[0] == whole[0]
    # Bytes are a window's own, too.
    few = muntin.aggregate(TABLE, EXACT, time="ts", cap_bytes=2000)
    assert [row["a"] is None for row in few["q1"].to_pylist()] == [False] + 3 * [True] + [False]


def test_a_run_may_fail_instead():
    with pytest.raises(DataError, match=r"a window has \d+ values of .* for count_distinct"):
        muntin.aggregate(TABLE, EXACT, time="ts", cap_values=600, on_cap="fail")


@pytest.mark.parametrize("stream", [False, True])
def test_approximate_forms_stand_in(stream):
    options = {"cap_values": 620, "on_cap": "approximate"}
    if stream:
        live = muntin.stream(EXACT, TABLE.schema, time="ts", **options)
        parts = [live.feed(TABLE.slice(at, 250)).get("q1") for at in range(0, 2000, 250)]
        parts.append(live.close()["q1"])
        found = pa.concat_tables([each for each in parts if each is not None])
    else:
        results = muntin.aggregate(TABLE, EXACT, time="ts", **options)
        assert not results.errors
        found = results.table("q1")
    names = ["a", "a_exact", "m", "m_exact", "p", "p_exact"]
    assert found.column_names[2:] == names
    whole = muntin.aggregate(TABLE, EXACT, time="ts")["q1"].to_pylist()
    assert found["m_exact"].to_pylist() == [True, False, False, False, True]
    for row, exact in zip(found.to_pylist(), whole, strict=True):
        assert abs(row["a"] - exact["a"]) <= 0.1 * exact["a"]
        assert abs(row["m"] - exact["m"]) <= 0.05 * max(abs(exact["m"]), 1)
        assert len(row["p"]) == 2
        if row["m_exact"]:
            assert row["m"] == exact["m"]


def test_expressions_over_approximate_forms_say_so_too():
    sql = f"""CREATE QUERY q WITH (cap_values = 620, on_cap = 'approximate') AS SELECT
        count(DISTINCT n) - 1 AS a, median(x) / count(DISTINCT s) AS b, max(x) + 1 AS c,
        count(DISTINCT n) AS n, median(x) AS m, count(DISTINCT s) AS s {WINDOW}"""
    found = muntin.aggregate(TABLE, sql, time="ts").table("q")
    names = ["a", "a_exact", "b", "b_exact", "c", "n", "n_exact", "m", "m_exact", "s", "s_exact"]
    assert found.column_names[2:] == names
    for row in found.to_pylist():
        assert row["a_exact"] == row["n_exact"]
        assert row["b_exact"] == (row["m_exact"] and row["s_exact"])
    assert found["b_exact"].to_pylist() == [True, False, False, False, True]


JOINED = {
    "o": pa.table({"ts": [1, 2, 5, 9, 14], "id": [1, 2, 1, 3, 2], "s": ["a", "b", "a", "c", None]}),
    "p": pa.table({"ts": [2, 3, 6, 10, 15], "id": [1, 2, 1, 3, 2], "w": [65, 70, 66, 99, None]}),
}
CALLS = """count(DISTINCT o.s) AS n, approx_top_k(o.s, 1, 2) AS t, approx_frequent(p.w, 0.5) AS f,
  approx_percentile(p.w, 0.5) AS p, approx_count_distinct(p.w) - 1 AS c"""
PAIRS = "FROM o [RANGE 10 SLIDE 5] JOIN p [RANGE 10 SLIDE 5] ON o.id = p.id"


def joined(sql, **options):
    found = muntin.aggregate(JOINED, sql, time="ts", **options)
    stream = muntin.stream(sql, {name: t.schema for name, t in JOINED.items()}, "ts", **options)
    parts = [stream.feed(table, name)["q1"] for name, table in JOINED.items()]
    assert pa.concat_tables([*parts, stream.close()["q1"]]) == found.table("q1")
    return found


def test_aggregates_over_joins_have_companions_too():
    found = joined(f"SELECT {CALLS} {PAIRS}", bounds=True).table("q1")
    beside = ["n", "t", "t_complete", "f", "f_complete", "p", "p_low", "p_high", "c"]
    assert found.column_names[2:] == beside
    row = found.to_pylist()[1]
    assert row["window_end"] == 10
    assert row["t"] == [{"value": "a", "low": 4, "high": 4, "certain": True}]
    assert row["t_complete"]
    assert row["f_complete"]
    assert (row["p_low"], row["p"], row["p_high"]) == (66, 66, 67)


def test_aggregates_over_joins_have_caps_too():
    sql = f"SELECT count(DISTINCT o.s) AS n, median(p.w) AS m {PAIRS}"
    free = joined(sql)
    assert free["q1"]["n"].to_pylist() == [2, 2, 2, 0]
    assert not free.errors
    capped = joined(sql, cap_values=1)
    assert capped["q1"]["n"].to_pylist() == [None, None, None, 0]
    assert capped.errors == {"q1": 6}
    told = joined(sql, cap_values=1, on_cap="approximate")["q1"]
    assert told["n_exact"].to_pylist() == [False, False, False, True]
    with pytest.raises(DataError, match="may have 1 of"):
        joined(sql, cap_values=1, on_cap="fail")
    own = f"CREATE QUERY q1 WITH (cap_values = 2, on_cap = 'fail') AS {sql}"
    (read,) = all_queries(own)
    assert all_queries(read.sql()) == (read,)
    assert read.guarantees.given == {"on_cap": "fail", "cap_values": 2}
    with pytest.raises(DataError, match="may have 2 of"):
        joined(own, cap_values=9)


def test_a_query_says_it_in_sql_and_in_the_builder():
    text = "CREATE QUERY q WITH (on_cap = 'fail', cap_values = 5, bounds = false) AS SELECT mode(s) AS m FROM t [RANGE 9 SLIDE 3]"  # noqa: E501
    (read,) = queries(text)
    assert queries(read.sql())[0] == read
    assert read.guarantees.given == {"on_cap": "fail", "cap_values": 5, "bounds": False}
    built = query("q").from_("t").window(9, 3).agg(m="mode(s)")
    assert built.guarantee(on_cap="fail", cap_values=5, bounds=False).build() == read
    # What a query says goes before what the call says.
    own = f"CREATE QUERY q WITH (cap_values = 2000) AS {EXACT}"
    assert not muntin.aggregate(TABLE, own, time="ts", cap_values=10).errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_cap": "stop"}, "on_cap cannot be 'stop'"),
        ({"cap_values": 0}, "cap_values must be a whole number from 1 on, not 0"),
        ({"cap_bytes": 1.5}, "cap_bytes must be a whole number from 1 on, not 1.5"),
        ({"bounds": "yes"}, "bounds must be true or false, not 'yes'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(MuntinError, match=message):
        muntin.aggregate(TABLE, EXACT, time="ts", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("on_cap = 'stop'", "on_cap cannot be 'stop'"),
        ("cap_values = -1", "expected a whole number"),
        ("cap_values = 0", "cap_values must be a whole number from 1 on, not 0"),
        ("bounds = 'true'", "expected true or false"),
        ("cap = 5", "expected technique, prefer"),
    ],
)
def test_so_they_are_in_sql(options, message):
    with pytest.raises(QueryError, match=message):
        queries(f"CREATE QUERY q WITH ({options}) AS SELECT mode(s) FROM t [RANGE 9 SLIDE 3]")


def test_names_that_tell_of_others_are_refused_where_they_are_taken():
    sql = f"SELECT approx_count_distinct(s) AS a, count(*) AS a_low {WINDOW}"
    with pytest.raises(QueryError, match="a_low is the name of a column, and tells of a"):
        muntin.aggregate(TABLE, sql, time="ts", bounds=True)
    with pytest.raises(QueryError, match="mode has no approximate form"):
        muntin.aggregate(TABLE, f"SELECT mode(s) {WINDOW}", time="ts", on_cap="approximate")
