"""A row query that joins a running stream answers the same, whatever runs there already."""

from __future__ import annotations

import pyarrow as pa
import pytest

import muntin

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


def joined_late(running: str, late: str) -> list[str]:
    """What a query answers that joins in the middle."""
    schemas = {name: rows(0, 1).schema for name in "ab"}
    stream = muntin.stream(running, schemas, time="ts")
    found = []
    for first in range(0, 40, 4):
        if first == 16:
            stream.add(late)
        found += [stream.feed(rows(first, first + 4), name) for name in "ab"]
    found.append(stream.close())
    shown = [each["late"] for each in found if "late" in each]
    return sorted(repr(row) for each in shown for row in each.to_pylist())


CHANGES = " WITH (output = 'changes')"
# Changes are of rows alone.
CASES = [(name, "") for name in QUERIES] + [
    (name, CHANGES) for name, sql in QUERIES.items() if not ("SLIDE" in sql or "Istream" in sql)
]


@pytest.mark.parametrize(("name", "output"), CASES)
def test_an_equal_query_that_runs_changes_nothing(name: str, output: str) -> None:
    query = QUERIES[name]
    late = f"CREATE QUERY late{output} AS {query}"
    alone = joined_late(OTHERS, late)
    assert alone
    assert joined_late(f"CREATE QUERY first{output} AS {query}", late) == alone
