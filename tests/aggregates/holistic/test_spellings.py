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
