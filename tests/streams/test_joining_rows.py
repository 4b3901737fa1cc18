"""A row query that joins a running stream is right from its first whole instant on.

Whatever runs there already changes no answer, but may have kept the rows that make it whole sooner.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError
from muntin.testing import row_oracle as oracle

PAIRS = "SELECT a.k, a.v AS x, b.v AS y FROM a [RANGE 10{0}] {1} b [RANGE 10{0}] ON a.k = b.k"
SLIDE = " SLIDE 5"
QUERIES = {
    "join": PAIRS.format("", "JOIN"),
    "join, sliding": PAIRS.format(SLIDE, "JOIN"),
    "join, filtered": PAIRS.format(SLIDE, "JOIN") + " WHERE a.v < b.v",
    "outer join": PAIRS.format(SLIDE, "LEFT JOIN"),
    "distinct": "SELECT DISTINCT k FROM a [RANGE 10]",
    "distinct, sliding": "SELECT DISTINCT k FROM a [RANGE 10 SLIDE 5]",
    "distinct pairs": "SELECT DISTINCT a.k FROM a [RANGE 10] JOIN b [RANGE 10] ON a.k = b.k",
    "presence": "SELECT v FROM a [RANGE 10] WHERE k IN (SELECT k FROM b [RANGE 4])",
    "absence": "SELECT v FROM a [RANGE 10] WHERE NOT EXISTS"
    " (SELECT 1 FROM b [RANGE 2] WHERE a.k = b.k)",
    "difference": "SELECT k FROM a [RANGE 10] EXCEPT ALL SELECT k FROM b [RANGE 7]",
    "arrivals": "SELECT Istream(*) FROM a [RANGE 10]",
}
OTHERS = (
    "CREATE QUERY n AS SELECT count(*) AS n FROM a [RANGE 5 SLIDE 5];"
    "CREATE QUERY m AS SELECT count(*) AS n FROM b [RANGE 5 SLIDE 5]"
)


def rows(first: int, last: int) -> pa.Table:
    times = list(range(first, last))
    return pa.table({"ts": times, "k": [time % 3 for time in times], "v": times})


def joined_late(running: str, late: str) -> tuple[dict[str, pa.Table], int]:
    """The answers of all queries, one of which joins in the middle, and since when it is whole."""
    schemas = {name: rows(0, 1).schema for name in "ab"}
    stream = muntin.stream(running, schemas, time="ts")
    found: dict[str, list[pa.Table]] = {}
    since = None
    for first in range(0, 40, 4):
        if first == 16:
            stream.add(late)
            since = stream.progress().since["late"]
        for name in "ab":
            for query, table in stream.feed(rows(first, first + 4), name).items():
                found.setdefault(query, []).append(table)
    for query, table in stream.close().items():
        found.setdefault(query, []).append(table)
    assert since is not None
    return {query: pa.concat_tables(tables) for query, tables in found.items()}, since


def shown(table: pa.Table, since: int) -> Counter[Any]:
    """What a result says of all instants, or window ends, after one."""
    if "op" in table.column_names:
        table = oracle.replayed(table)
    if "valid_from" in table.column_names:
        return Counter(
            (instant, values)
            for (begin, end), values in oracle.shown(table, 2)
            for instant in range(max(begin, since), end)
        )
    leads = 2 if "window_end" in table.column_names else 1
    told = ((times[-1], values) for times, values in oracle.shown(table, leads))
    return Counter((time, values) for time, values in told if time > since)


CHANGES = " WITH (output = 'changes')"
# Changes are of rows alone.
CASES = [(name, "") for name in QUERIES] + [
    (name, CHANGES) for name, sql in QUERIES.items() if not ("SLIDE" in sql or "Istream" in sql)
]


@pytest.mark.parametrize(("name", "output"), CASES)
def test_an_equal_query_that_runs_changes_nothing(name: str, output: str) -> None:
    query = QUERIES[name]
    late = f"CREATE QUERY late{output} AS {query}"
    alone, usual = joined_late(OTHERS, late)
    beside, since = joined_late(f"CREATE QUERY first{output} AS {query}", late)
    assert usual == 15 + 10
    assert since <= usual
    assert shown(alone["late"], usual)
    assert shown(beside["late"], usual) == shown(alone["late"], usual)
    # The other has seen all rows.
    assert shown(beside["late"], since) == shown(beside["first"], since)


@pytest.mark.parametrize("name", ["join", "join, sliding", "join, filtered", "distinct pairs"])
def test_a_query_is_whole_at_once_where_its_rows_are_kept(name: str) -> None:
    late = f"CREATE QUERY late AS {QUERIES[name]}"
    _, since = joined_late(f"CREATE QUERY first AS {QUERIES['join']}", late)
    assert since == 15


def feeding(running: str, **options: Any) -> muntin.Stream:
    """A stream with some queries that has seen a few rows of one key."""
    stream = muntin.stream(running, dict.fromkeys("ab", rows(0, 1).schema), time="ts", **options)
    stream.feed(given((1, 1, 5), (10, 1, 7)), "a")
    stream.feed(given((2, 2, 1), (10, 1, 3)), "b")
    return stream


def given(*found: tuple[int, int, int]) -> pa.Table:
    """Rows with the columns ts, k and v."""
    return pa.table(dict(zip(("ts", "k", "v"), map(list, zip(*found, strict=True)), strict=True)))


def join(name: str, length: int, condition: str = "TRUE", shown: str = "a.v AS x") -> str:
    """A query over pairs with equal keys."""
    return (
        f"CREATE OR REPLACE QUERY {name} AS SELECT {shown}, b.v AS y FROM a [RANGE {length}] "
        f"JOIN b [RANGE {length}] ON a.k = b.k WHERE {condition}"
    )


def told(answers: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in answers[name].to_pylist())


def test_a_join_has_its_rows_in_the_store_that_it_took_them_from() -> None:
    # One store has a bit for each of so many conditions, and then there is another.
    running = [join("base", 20), *(join(f"q{i}", 20, f"a.v > {i}") for i in range(70))]
    stream = feeding(";".join(running))
    stream.add(join("late", 10, "a.v < 1000"))
    assert stream.progress().since["late"] == 0
    shown = stream.feed(given((12, 1, 9)), "b")
    assert told(shown, "late") == [(10, 11, 5, 3), (10, 20, 7, 3), (12, 20, 7, 9)]


def test_what_a_query_has_kept_is_there_for_the_one_that_replaces_it() -> None:
    stream = feeding(";".join((join("long", 20), join("short", 5, "a.v > 5"))))
    stream.add(join("long", 15))
    assert stream.progress().since["long"] == 5
    shown = stream.feed(given((12, 1, 9)), "b")
    assert told(shown, "long") == [
        *((10, 16, 5, 3), (10, 25, 7, 3)),
        *((12, 16, 5, 9), (12, 25, 7, 9)),
    ]


def test_a_query_is_whole_no_sooner_than_a_join_that_it_shares() -> None:
    stream = feeding(join("first", 20))
    # Rows without a key matter to the absence, and nobody keeps them: neither takes rows.
    absent = (
        "CREATE QUERY absent AS SELECT a.k, a.v FROM a [RANGE 10] WHERE NOT EXISTS "
        "(SELECT 1 FROM b [RANGE 10] WHERE a.k = b.k)"
    )
    second = join("second", 10, shown="a.k, a.v")
    stream.add(f"{second};{absent}")
    assert stream.progress().since["second"] == 20
    stream.add(join("third", 10, shown="a.k, a.v"))
    since = stream.progress().since["third"]
    assert since is not None
    answers = [stream.feed(given((12, 1, 9)), "b"), stream.feed(given((13, 1, 2)), "a")]
    lives = [(10, 11, 5, 3), (10, 20, 7, 3), (12, 20, 7, 9), (13, 20, 2, 3), (13, 22, 2, 9)]
    assert sorted(row for each in answers for row in told(each, "third")) == [
        (max(begin, since), end, 1, x, y) for begin, end, x, y in lives if end > since
    ]


def test_what_a_relation_held_before_is_not_made_up() -> None:
    stream = feeding(join("first", 20), relations={"r": pa.table({"k": [1]})})
    stream.add(
        "CREATE QUERY late WITH (output = 'changes') AS SELECT a.v FROM a [RANGE 10] "
        "LEFT JOIN r ON r.k = a.k"
    )
    assert stream.progress().since["late"] == 20
    found = [stream.feed(given((12, 1, 5), (13, 2, 5)), "a"), stream.close()]
    lives = oracle.replayed(pa.concat_tables([each["late"] for each in found]))
    assert sorted(oracle.shown(lives, 2)) == [((20, 22), (5,)), ((20, 23), (5,))]


@pytest.mark.parametrize("resumes", [False, True])
def test_values_of_the_past_that_fail_are_counted(resumes: bool) -> None:
    stream = feeding(join("first", 20))
    stream.add(join("leaf", 20, shown="10 DIV (a.v - 5) AS x"))
    stream.add(join("pair", 20, shown="10 DIV (a.v - b.v - 2) AS x"))
    if resumes:
        stream = muntin.Stream.restore(stream.snapshot())
    errors = stream.feed(given((12, 9, 9)), "b").errors
    assert errors == {"leaf": 1, "pair": 1}
    assert stream.feed(given((13, 9, 9)), "b").errors == {}


def test_values_of_the_past_that_fail_end_a_stream_that_was_told_to() -> None:
    stream = feeding(join("first", 20), on_error="fail")
    stream.add(join("late", 20, shown="10 DIV (a.v - b.v - 2) AS x"))
    with pytest.raises(DataError, match="1 value failed"):
        stream.feed(given((12, 9, 9)), "b")


def test_a_join_has_no_home_in_a_store_that_lacks_rows_of_one_side() -> None:
    # The two joins share a store, which keeps rows of b for a short time; the third has a longer.
    pairs = "SELECT a.k, a.v, b.v AS w FROM a [RANGE {}] JOIN b [RANGE {}] ON a.k = b.k"
    three = "SELECT x.v AS x, b.k, b.v FROM a [RANGE 2] x JOIN b [RANGE 20] ON x.k = b.k "
    stream = feeding(
        f"CREATE QUERY one AS {pairs.format(20, 2)}; CREATE QUERY two AS {pairs.format(20, 1)};"
        f"CREATE QUERY three AS {three} JOIN a [RANGE 1] y ON y.k = b.k"
    )
    stream.feed(given((14, 1, 4)), "a")
    stream.add(f"CREATE QUERY late AS {pairs.format(15, 15)}")
    assert stream.progress().since["late"] == 9
    shown = stream.feed(given((15, 1, 6)), "a")
    assert told(shown, "late") == [
        *((10, 16, 1, 5, 3), (10, 25, 1, 7, 3)),
        *((14, 25, 1, 4, 3), (15, 25, 1, 6, 3)),
    ]


def test_times_are_taken_in_the_unit_of_expressions() -> None:
    schema = pa.schema([("ts", pa.timestamp("s")), ("k", pa.int64()), ("v", pa.uint8())])
    pairs = "SELECT a.k{} FROM a [RANGE '9 seconds'] JOIN b [RANGE '9 seconds'] ON a.k = b.k"
    stream = muntin.stream(f"CREATE QUERY first AS {pairs.format(', a.v')}",
                           dict.fromkeys("ab", schema), time="ts")  # fmt: skip

    def feed(name: str, second: int) -> Any:
        rows = {
            "ts": pa.array([second], pa.timestamp("s")),
            "k": [1],
            "v": pa.array([2], pa.uint8()),
        }
        return stream.feed(pa.table(rows), name)

    feed("a", 1)
    stream.add(f"CREATE QUERY late AS {pairs.format(', a.ts AS born, a.v + 1 AS next')}")
    feed("a", 2)
    found = feed("b", 3)["late"]
    assert found["born"].to_pylist() == [datetime(1970, 1, 1, 0, 0, each) for each in (1, 2)]
    assert found["next"].to_pylist() == [3, 3]


def test_rows_without_a_partner_wait_for_partners_from_before() -> None:
    """The partner at 3 came before the query joined, and lives until 13."""
    schemas = {name: rows(0, 1).schema for name in "ab"}
    stream = muntin.stream(OTHERS, schemas, time="ts")
    early, later = ({"ts": [time], "k": [1], "v": [time]} for time in (3, 12))
    stream.feed(pa.table(early), "b")
    stream.feed(pa.table({"ts": [5], "k": [2], "v": [5]}), "a")
    pairs = PAIRS.format("", "LEFT JOIN")
    stream.add(f"CREATE QUERY late AS {pairs} EMIT UNMATCHED")
    # A row that is alive now, and a partner that it may have had, are both over by then.
    assert stream.progress().since["late"] >= 5 + 10 + 10
    found = [stream.feed(pa.table(later), "a"), stream.close()]
    assert sum(each["late"].num_rows for each in found if "late" in each) == 0
