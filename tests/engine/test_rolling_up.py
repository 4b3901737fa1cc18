"""Coarser groups read off finer ones."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import muntin
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.streams import LiveEngine
from muntin.testing import assert_same_rows, oracle, trades

TABLE = trades(5_000, seed=5)
SQL = """
CREATE QUERY fine AS SELECT symbol, vol % 2 AS odd, sum(price) AS s
  FROM t [RANGE '3 h' SLIDE '1 h'] WHERE vol > 200 GROUP BY symbol, vol % 2;
CREATE QUERY coarse AS SELECT symbol, min(price) AS low, count(*) FILTER (WHERE vol > 900) AS n
  FROM t [RANGE '2 h' SLIDE '1 h'] WHERE vol > 500 GROUP BY symbol;
CREATE QUERY whole AS SELECT sum(price * vol) AS s, last(price) AS l
  FROM t [RANGE '1 h' SLIDE '90 min'];
"""


def test_coarser_groups_are_rolled_up_from_finer_ones() -> None:
    results = muntin.aggregate(TABLE, SQL, time="ts")
    nodes = [results.plan.partials[final.partials] for final in results.plan.finals]
    assert [node.finer is None for node in nodes] == [True, False, False]
    assert "rolled up from partials 1" in repr(results.plan)
    for name in results:
        assert_same_rows(results[name], oracle.answer(results.plan, name, TABLE))


def test_many_groups_are_not_rolled_up() -> None:
    sql = """
    CREATE QUERY fine AS SELECT ts AS at, count(*) AS n FROM t [RANGE '1 h' SLIDE '1 h']
      GROUP BY ts;
    CREATE QUERY whole AS SELECT count(*) AS n FROM t [RANGE '1 h' SLIDE '1 h'];
    """
    results = muntin.aggregate(TABLE, sql, time="ts")
    assert all(node.finer is None for node in results.plan.partials)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_rolled_up_survives_queries_that_come_and_go(seed: int) -> None:
    rng = random.Random(seed)
    asked = list(queries(SQL))
    plan = build_plan(asked, TABLE.schema, "ts", sample=TABLE)
    engine = LiveEngine(plan, 0)
    answered: dict[str, list[pa.Table]] = {query.name: [] for query in asked}
    leaving = rng.choice(["fine", "coarse", "whole"])
    for number, batch in enumerate(TABLE.to_batches(max_chunksize=500)):
        if number == 4:
            engine.remove(leaving)
        if number == 6:
            engine.add(
                queries(
                    "CREATE QUERY late AS SELECT symbol, max(vol) AS m"
                    " FROM t [RANGE '2 h' SLIDE '1 h'] WHERE vol > 300 GROUP BY symbol"
                )[0]
            )
        if rng.random() < 0.3:
            engine = LiveEngine.restore(engine.plan, engine.snapshot())
        for name, table in engine.feed(batch).items():
            answered.setdefault(name, []).append(table)
    for name, table in engine.close().items():
        answered.setdefault(name, []).append(table)
    for query in asked:
        if query.name != leaving:
            expected = oracle.answer(plan, query.name, TABLE)
            assert_same_rows(pa.concat_tables(answered[query.name]), expected)
