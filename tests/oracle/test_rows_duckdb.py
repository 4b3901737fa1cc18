"""Row queries against DuckDB: at every instant, the same SQL over the rows alive then."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import muntin

RANGES = {"o": ("orders", 9), "p": ("payments", 5), "s": ("sent", 7), "q": ("payments", 3)}

# Streams stand in braces: windows here, the rows alive at an instant there.
QUERIES = {
    "select": "SELECT o.id, o.v + 1 AS w FROM {o} o WHERE o.v > 2",
    "join": "SELECT o.id, p.v FROM {o} o JOIN {p} p ON o.id = p.id",
    "residual": "SELECT o.id, p.v FROM {o} o JOIN {p} p ON o.id = p.id AND p.v < o.v WHERE p.v > 0",
    "comma": "SELECT o.id, p.v FROM {o} o, {p} p WHERE o.id = p.id AND o.name = p.name",
    "using": "SELECT id, o.v AS a, p.v AS b FROM {o} o JOIN {p} p USING (id)",
    "computed": "SELECT o.id FROM {o} o JOIN {p} p ON o.id % 2 = p.id % 2 AND o.id <> p.id",
    "three": (
        "SELECT o.id, p.v, s.name FROM {o} o JOIN {p} p ON o.id = p.id JOIN {s} s ON s.id = p.id"
    ),
    "two_keys": (
        "SELECT o.id FROM {o} o JOIN {p} p ON o.id = p.id AND o.name = p.name"
        " JOIN {s} s ON s.id = o.id AND s.v <= o.v"
    ),
    "self": "SELECT p.id, q.v FROM {p} p JOIN {q} q ON p.id = q.id AND p.v < q.v",
    "left": "SELECT o.id, p.v FROM {o} o LEFT JOIN {p} p ON o.id = p.id AND p.v > 1 AND o.v > 1",
    "left_where": (
        "SELECT o.id, p.v FROM {o} o LEFT JOIN {p} p ON o.id = p.id"
        " WHERE coalesce(p.v, 0) < 3 AND o.v > 1"
    ),
    "right": "SELECT o.v, p.id FROM {o} o RIGHT JOIN {p} p ON o.id = p.id AND o.v > 1 AND p.v > 1",
    "full": "SELECT o.id AS a, p.id AS b FROM {o} o FULL JOIN {p} p ON o.id = p.id AND o.v > p.v",
    "left_left": (
        "SELECT o.id, p.v AS a, s.v AS b FROM {o} o LEFT JOIN {p} p ON o.id = p.id"
        " LEFT JOIN {s} s ON s.id = o.id"
    ),
    "left_inner": (
        "SELECT o.id, p.v AS a, s.v AS b FROM {o} o LEFT JOIN {p} p ON o.id = p.id"
        " JOIN {s} s ON s.id = o.id AND s.v > 0"
    ),
    "full_left": (
        "SELECT o.id, p.id AS b, s.v FROM {o} o FULL JOIN {p} p ON o.id = p.id"
        " LEFT JOIN {s} s ON s.id = p.id"
    ),
    "exists": (
        "SELECT o.id, o.v FROM {o} o WHERE o.v > 1 AND EXISTS"
        " (SELECT 1 FROM {p} p WHERE p.id = o.id AND p.v >= o.v)"
    ),
    "not_exists": (
        "SELECT o.id FROM {o} o WHERE NOT EXISTS"
        " (SELECT 1 FROM {p} p WHERE p.id = o.id AND p.v > 1 AND p.name = o.name)"
    ),
    "uncorrelated": "SELECT o.id FROM {o} o WHERE NOT EXISTS (SELECT 1 FROM {q} q WHERE q.v > 3)",
    "exists_join": (
        "SELECT o.id FROM {o} o WHERE EXISTS"
        " (SELECT 1 FROM {p} p JOIN {s} s ON p.id = s.id WHERE p.id = o.id AND s.v < o.v)"
    ),
    "two_exists": (
        "SELECT o.id FROM {o} o WHERE EXISTS (SELECT 1 FROM {p} p WHERE p.id = o.id)"
        " AND NOT EXISTS (SELECT 1 FROM {s} s WHERE s.id = o.id)"
    ),
    "nested": (
        "SELECT o.id FROM {o} o WHERE NOT EXISTS (SELECT 1 FROM {p} p WHERE p.id = o.id"
        " AND NOT EXISTS (SELECT 1 FROM {s} s WHERE s.id = p.id))"
    ),
    "join_exists": (
        "SELECT o.id, p.v FROM {o} o JOIN {p} p ON o.id = p.id"
        " WHERE NOT EXISTS (SELECT 1 FROM {s} s WHERE s.id = o.id AND s.v > p.v)"
    ),
    "in": "SELECT o.id, o.v FROM {o} o WHERE o.id IN (SELECT id FROM {p} p WHERE p.v > 1)",
    "not_in": "SELECT o.id, o.v FROM {o} o WHERE o.id NOT IN (SELECT id FROM {q} q WHERE q.v > 1)",
    "anti": "SELECT o.id FROM {o} o ANTI JOIN {p} p ON o.id = p.id AND p.v > o.v",
    "distinct": "SELECT DISTINCT o.id, o.name FROM {o} o",
    "distinct_join": "SELECT DISTINCT o.name FROM {o} o JOIN {p} p ON o.id = p.id",
    "union": "SELECT id FROM {o} o UNION SELECT id FROM {p} p",
    "union_all": "SELECT id, v FROM {o} o UNION ALL SELECT id, v FROM {p} p",
    "except": "SELECT id, name FROM {o} o EXCEPT SELECT id, name FROM {p} p",
    "except_all": "SELECT id FROM {o} o EXCEPT ALL SELECT id FROM {p} p",
    "intersect": "SELECT id FROM {o} o INTERSECT SELECT id FROM {p} p",
    "sets": (
        "SELECT id FROM {o} o UNION SELECT id FROM {p} p INTERSECT SELECT id FROM {s} s"
        " EXCEPT SELECT id FROM {q} q"
    ),
}


def streams(seed: int, rows: int = 14) -> dict[str, pa.Table]:
    """Few keys and many equal times, with NULLs among keys and values."""
    random = np.random.default_rng(seed)
    found = {}
    for name in ("orders", "payments", "sent"):
        ids = [None if random.random() < 0.1 else int(random.integers(4)) for _ in range(rows)]
        values = [None if random.random() < 0.1 else int(random.integers(5)) for _ in range(rows)]
        found[name] = pa.table(
            {
                "ts": pa.array(random.integers(0, 30, rows), pa.int64()),
                # Keys of different widths are compared as the wider.
                "id": pa.array(ids, pa.int32() if name == "payments" else pa.int64()),
                "v": pa.array(values, pa.int64()),
                "name": pa.array([("a", "b", None)[random.integers(3)] for _ in range(rows)]),
            }
        )
    return found


def alive(database: Any, sql: str, instant: int) -> Counter[tuple[Any, ...]]:
    tables = {
        label: f"(SELECT * FROM {stream} WHERE ts <= {instant} AND {instant} < ts + {length})"
        for label, (stream, length) in RANGES.items()
    }
    return Counter(database.execute(sql.format(**tables)).fetchall())


def shown(table: pa.Table, instant: int) -> Counter[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return Counter(row[2:] for row in rows if row[0] <= instant < row[1])


@pytest.fixture(scope="module")
def answers() -> list[tuple[dict[str, pa.Table], Any]]:
    windows = {label: f"{stream} [RANGE {length}]" for label, (stream, length) in RANGES.items()}
    sql = [f"CREATE QUERY {name} AS {text.format(**windows)}" for name, text in QUERIES.items()]
    found = []
    for seed in range(2):
        data = streams(seed)
        found.append((data, muntin.aggregate(data, sql, "ts")))
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_every_instant_is_the_relational_query(
    name: str, answers: list[tuple[dict[str, pa.Table], Any]]
) -> None:
    for data, results in answers:
        database = duckdb.connect()
        for stream, table in data.items():
            database.register(stream, table)
        for instant in range(-1, 42):
            assert shown(results.table(name), instant) == alive(database, QUERIES[name], instant)
        database.close()
