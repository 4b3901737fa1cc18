"""The bounds of the window under names of the user's own; they lead in every spelling."""

from __future__ import annotations

import pyarrow as pa
import pytest

import muntin
from muntin.queries import queries

ROWS = pa.table({"ts": [0, 1, 2, 6, 7], "s": [None, "a", "b", None, "c"], "v": [1, 2, 3, 4, 5]})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n, window_start AS a, window_end AS `b c` FROM t [RANGE 5 SLIDE 5]",
        "SELECT window.start a, window.end `b c`, count(*) n FROM t GROUP BY window(ts, 5, 5)",
        (
            "SELECT window_start a, window_end `b c`, count(*) n FROM t [RANGE 5 SLIDE 5]"
            " GROUP BY a, `b c`"
        ),
        (
            "SELECT window_start, window_start AS a, window_end AS `b c`, count(*) AS n"
            " FROM TUMBLE(TABLE t, DESCRIPTOR(ts), 5) GROUP BY window_start, 2"
        ),
    ],
)
def test_every_spelling(text: str) -> None:
    results = muntin.aggregate(ROWS, text, time="ts")
    assert results["q1"].to_pydict() == {"a": [0, 5], "b c": [5, 10], "n": [3, 2]}
    assert "gives a, b c, n" in str(results.plan)
    [query] = queries(text)
    assert query.columns == ("a", "b c", "n")
    assert queries(query.sql()) == (query,)


def test_queries_that_differ_in_these_names_only() -> None:
    text = "CREATE QUERY {0} AS SELECT window_start AS {0}, count(*) AS n FROM t [RANGE 5 SLIDE 5];"
    results = muntin.aggregate(ROWS, text.format("x") + text.format("y"), time="ts")
    assert [results[name].column_names[0] for name in ("x", "y")] == ["x", "y"]
    assert queries(text.format("x"))[0] != queries(text.format("x").replace(" x,", " z,"))[0]


def test_a_group_may_have_the_name_of_a_bound() -> None:
    text = "SELECT window_start AS a, v AS window_start FROM t [RANGE 9 SLIDE 9] GROUP BY v"
    found = muntin.aggregate(ROWS, text, time="ts")["q1"]
    assert found.column_names == ["a", "window_end", "window_start"]
    assert found.column("window_start").to_pylist() == [1, 2, 3, 4, 5]


def test_the_builder_names_them() -> None:
    query = muntin.query("q").window(5, 5).group_by(since="window_start").agg(n="count(*)").build()
    assert query.columns == ("since", "window_end", "n")


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("first(s) IGNORE NULLS FILTER (WHERE v > 2)", ["b", "c"]),
        ("first(s) FILTER (WHERE v > 2) IGNORE NULLS", ["b", "c"]),
        ("first(s IGNORE NULLS) FILTER (WHERE v > 2)", ["b", "c"]),
        ("first(s, true) FILTER (WHERE v > 2)", ["b", "c"]),
        ("last(s) ignore nulls filter (where v < 5)", ["b", None]),
        ("first(s) RESPECT NULLS FILTER (WHERE v <> 2)", [None, None]),
        ("last(s) RESPECT NULLS FILTER (WHERE v < 5)", ["b", None]),
    ],
)
def test_nulls_beside_a_filter(call: str, values: list[str | None]) -> None:
    found = muntin.aggregate(ROWS, f"SELECT {call} AS x FROM t [RANGE 5 SLIDE 5]", time="ts")
    assert found["q1"].column("x").to_pylist() == values
