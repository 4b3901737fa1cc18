"""Rows by ranges of their key, where groups are many: the same answers in the same order."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.engine.answers import parts
from muntin.engine.rows import batches
from muntin.engine.rows.key_ranges import KeyRanges
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing import assert_same_rows, oracle, rows_of

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "s": pa.string(), "v": pa.int64()})
SQL = """
  CREATE QUERY a AS SELECT k, sum(v) AS a, count(*) AS n, avg(v) AS b
    FROM s [RANGE 40 SLIDE 20] GROUP BY k;
  CREATE QUERY b AS SELECT k, sum(v) AS a, count(*) AS n, avg(v) AS b
    FROM s [RANGE 33 SLIDE 30] WHERE v > 3 GROUP BY k;
  CREATE QUERY c AS SELECT k, s, max(v) AS a, last(v) AS l
    FROM s [RANGE 50 SLIDE 50] GROUP BY k, s HAVING max(v) > 2;
  CREATE QUERY d AS SELECT k, 10 / min(v) AS a, stddev_pop(v) AS b
    FROM s [RANGE 60 SLIDE 30] GROUP BY k"""


def rows(rng: random.Random, size: int, low: int, high: int) -> pa.Table:
    columns = {
        "t": [rng.randrange(-50, 100) for _ in range(size)],
        "k": [rng.randrange(low, high) for _ in range(size)],
        "s": [rng.choice(["x", "y", None]) for _ in range(size)],
        "v": [rng.choice([None, *range(9)]) for _ in range(size)],
    }
    return pa.table(columns, SCHEMA)


def planned(sql: str = SQL, **options: Any) -> SharedPlan:
    return build_plan(queries(sql), SCHEMA, "t", **options)


def answered(plan: SharedPlan, tables: list[pa.Table], threads: int) -> tuple[LocalEngine, Any]:
    engine = LocalEngine(plan, threads=threads)
    for table in tables:
        engine.feed(table)
    return engine, engine.close()


@pytest.mark.parametrize("seed", range(6))
def test_ranges_of_keys_change_no_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(9700 + seed)
    low, high = rng.choice([(0, 900), (-(2**62), 2**62), (-400, 500)])
    # Later batches are split by the ranges of the first, also where their keys lie elsewhere.
    tables = [rows(rng, 400, low, high)]
    tables += [rows(rng, rng.choice([30, 400]), low // 2, high) for _ in range(rng.choice([0, 6]))]
    plan = planned(slicing=rng.choice(["pairs", "cutty"]), strategy=rng.choice(["cells", "slices"]))
    engine, expected = answered(plan, tables, threads=1)
    monkeypatch.setattr(batches, "BLOCK", 64)
    monkeypatch.setattr(parts, "_LONG", 0)
    if seed % 2:
        monkeypatch.setattr("muntin.engine.slices.store._PENDING", 5)
    used = []
    monkeypatch.setattr(batches, "_by_range", _noted(batches._by_range, used))
    for threads, short in ((1, 0), (3, 0), (3, 1 << 30)):
        # Pieces as chunks, and gathered row by row.
        monkeypatch.setattr(parts, "_SHORT", short)
        split, found = answered(plan, tables, threads)
        assert used
        assert split.statistics.errors == engine.statistics.errors
        assert split.statistics.rows == engine.statistics.rows
        for name, table in expected.items():
            # In the same order of rows.
            assert rows_of(found[name]) == rows_of(table)
    whole = pa.concat_tables(tables)
    for name, table in expected.items():
        assert_same_rows(table, oracle.answer(plan, name, whole))


def _noted(work: Any, used: list[object]) -> Any:
    def noted(*args: Any) -> Any:
        used.append(args)
        return work(*args)

    return noted


def test_parts_hold_ranges_of_about_as_many_rows() -> None:
    table = rows(random.Random(1), 1000, 0, 10_000)
    found = KeyRanges(planned()).rows(table, 100)
    assert found is not None
    assert [100 > len(part) - 100 > -100 for part in found] == [True] * 10
    keys = [[table["k"][place].as_py() for place in part.tolist()] for part in found]
    assert all(max(one) < min(other) for one, other in pairwise(keys))
    # Rows of a part stay in the order that they came in.
    assert all((part[1:] > part[:-1]).all() for part in found)


@pytest.mark.parametrize(
    "reason",
    ["few groups", "few rows", "a missing key", "a computed key", "no groups", "other groups"],
)
def test_rows_stay_together_where_ranges_do_not_pay(reason: str) -> None:
    table = rows(random.Random(1), 1000, 0, 10_000)
    sql = SQL
    if reason == "few groups":
        table = rows(random.Random(1), 1000, 0, 40)
    if reason == "few rows":
        table = table.slice(0, 199)
    if reason == "a missing key":
        table = pa.concat_tables([table, pa.table({"k": pa.array([None], pa.int64())})],
                                 promote_options="default")  # fmt: skip
    if reason == "a computed key":
        sql = "SELECT k + 1 AS k, sum(v) FROM s [RANGE 4 SLIDE 2] GROUP BY k + 1"
    if reason == "no groups":
        sql += "; SELECT sum(v) FROM s [RANGE 4 SLIDE 2]"
    if reason == "other groups":
        sql += "; SELECT s, sum(v) FROM s [RANGE 4 SLIDE 2] GROUP BY s"
    assert KeyRanges(planned(sql)).rows(table, 100) is None
