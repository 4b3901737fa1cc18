"""What may be written around aggregates of all values: NULL, orders, and functions of lists."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import muntin

TABLE = pa.table(
    {
        "ts": [1, 2, 3, 4, 6, 7, 8],
        "s": ["b", "a", None, "b", "c", "c", None],
        "n": [4, 3, 2, 1, 5, 5, 6],
    }
)


def answers(call: str, having: str = "") -> list[Any]:
    sql = f"SELECT {call} AS r FROM t [RANGE 5 SLIDE 5] {having}"
    return muntin.aggregate(TABLE, sql, time="ts")["q1"]["r"].to_pylist()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("size(collect_set(s))", [2, 1]),
        ("cardinality(collect_list(s)) * 10", [30, 20]),
        ("array_size(top_k(n, 3)) - size(collect_list(n))", [-1, -1]),
        ("size(collect_list(s) RESPECT NULLS)", [4, 3]),
        ("cardinality(collect_list(s) RESPECT NULLS)", [4, 3]),
        ("get(collect_list(s) FILTER (WHERE n < 3 OR n > 5) RESPECT NULLS, 0)", [None, None]),
        ("get(collect_list(s) FILTER (WHERE n < 3 OR n > 5), 0)", ["b", None]),
    ],
)
def test_functions_of_lists(call: str, expected: list[Any]) -> None:
    assert answers(call) == expected


def test_groups_are_kept_by_the_size_of_a_list() -> None:
    assert answers("min(n)", "HAVING size(collect_set(s)) > 1") == [1]
    assert answers("min(n)", "HAVING top_k(s, 1)[0].count = size(collect_list(s))") == [5]


@pytest.mark.parametrize("call", ["mode(n)", "mode(n, true)", "mode(n, false)"])
def test_the_least_of_equally_frequent_values(call: str) -> None:
    assert answers(call) == [1, 5]


@pytest.mark.parametrize("call", ["list(s)", "list(s IGNORE NULLS)", "array_agg(s) IGNORE NULLS"])
def test_lists_leave_null_out(call: str) -> None:
    assert answers(call) == [["b", "a", "b"], ["c", "c"]]


@pytest.mark.parametrize("call", ["list(s RESPECT NULLS)", "array_agg(s) RESPECT NULLS"])
def test_lists_hold_null_where_it_is_said(call: str) -> None:
    assert answers(call) == [["b", "a", None, "b"], ["c", "c", None]]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("percentile(n, 0.5D)", [2.5, 5.0]),
        ("percentile(n, array(0.0D, 1))", [[1.0, 4.0], [5.0, 6.0]]),
        ("percentile(n, 0.0, true)", [4.0, 6.0]),
        ("approx_percentile(n, 0.99, 10000L)", [4, 6]),
        ("max(n, 2L)", [[4, 3], [6, 5]]),
        ("any_value(s, true)", ["a", "c"]),
        ("any_value(n, false)", [1, 5]),
    ],
)
def test_constants_as_spark_spells_them(call: str, expected: list[Any]) -> None:
    assert answers(call) == expected


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("percentile(n, true)", r"write percentile\(x, 0.95\)"),
        ("percentile(n, 0.5, 2)", r"write percentile\(x, 0.95, true\)"),
        ("approx_percentile(n, 0.5, true)", "an accuracy as in Spark, such as 1000"),
        ("approx_top_k(s, 0)", r"write approx_top_k\(x, 10\)"),
        ("max_by(s, n, 0)", r"write max_by\(x, y, 10\)"),
        ("max_by(s, n, 1, 2)", r"write max_by_k\(x, y, 2\)"),
        ("top_k(s, 3L, 1)", r"write top_k\(x, 2\)"),
        ("top_k(s, n)", "write a number"),
        ("percentile(n, CAST(n AS DOUBLE))", "write a number"),
    ],
)
def test_hints_are_calls_that_work(call: str, hint: str) -> None:
    with pytest.raises(muntin.QueryError, match=hint):
        answers(call)


def test_errors_of_expressions_name_aggregates_as_they_are_written() -> None:
    with pytest.raises(muntin.QueryError, match=r"(?i)element_at\(top_k\(s, 2\), 1\)\.value"):
        answers("element_at(top_k(s, 2), 1)")
    with pytest.raises(muntin.QueryError, match=r"top_k\(s, 2\)\[0\] has no field nothing"):
        answers("min(n)", "HAVING top_k(s, 2)[0].nothing = 'a'")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("collect_set(s) RESPECT NULLS", "collect_set takes no RESPECT NULLS"),
        ("array_agg(DISTINCT s) RESPECT NULLS", "collect_set takes no RESPECT NULLS"),
        ("listagg(s RESPECT NULLS, ',')", "string_agg takes no RESPECT NULLS"),
        ("mode() WITHIN GROUP (ORDER BY n DESC)", "mode takes the least"),
        ("array_agg(s ORDER BY n)", "lists are in order of time by themselves"),
    ],
)
def test_what_would_be_another_answer_is_refused(call: str, message: str) -> None:
    with pytest.raises(muntin.QueryError, match=message):
        answers(call)
