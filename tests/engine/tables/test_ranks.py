"""Rows of a table are ranked once: answers, counts and failures stay those of every row."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.engine.rows.columns import Reader
from muntin.plan import SharedPlan
from muntin.plan.nodes import Strategy
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing import rows_of

SYMBOLS = [f"s{number}" for number in range(12)]
INDEX = pa.table(
    {
        "symbol": [*SYMBOLS[:9], "s3"],
        "member": [True, False, None, False, True, False, False, False, False, True],
        "weight": [0, 1, 2, 3, None, 0, 1, 2, 3, 4],
    }
)
# Few rows are of symbols that a predicate asks about; weights of zero make some of them fail.
PREDICATES = [
    "member",
    "member AND vol > 3",
    "member AND 12 div weight > 3",
    "weight IS NULL AND vol < 9",
    "weight > 2 AND 12 div vol > 2",
    "member AND vol < 8 AND weight < 3",
    "12 div weight > 5 AND vol > 4",
]


def trades(rng: random.Random, rows: int) -> pa.Table:
    return pa.table(
        {
            "ts": [place // 3 for place in range(rows)],
            "symbol": [rng.choice([None, *SYMBOLS]) for _ in range(rows)],
            "vol": [rng.choice([None, *range(10)]) for _ in range(rows)],
        }
    )


def planned(texts: list[str], stream: pa.Table, join: str, strategy: Strategy) -> SharedPlan:
    sql = ";".join(
        f"CREATE QUERY q{number} AS SELECT sum(vol) AS a, min(x.weight) AS w"
        f" FROM trades [RANGE 7 SLIDE 3] {join} index x ON trades.symbol = x.symbol WHERE {text}"
        for number, text in enumerate(texts)
    )
    tables = {"index": INDEX.schema}
    return build_plan(queries(sql), stream.schema, "ts", strategy=strategy, tables=tables)


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("seed", range(8))
def test_answers_and_failures_are_those_of_every_row(seed: int, join: str) -> None:
    rng = random.Random(seed)
    stream = trades(rng, 90)
    texts = rng.sample(PREDICATES, 1 + seed % 4)
    found = {}
    for strategy in ("cells", "unshared"):
        engine = LocalEngine(planned(texts, stream, join, strategy), tables={"index": INDEX})
        for low in range(0, 90, 30):
            engine.feed(stream.slice(low, 30))
        answers = {name: sorted(map(repr, rows_of(t))) for name, t in engine.close().items()}
        found[strategy] = answers, engine.progress().errors
    assert found["cells"] == found["unshared"]
    assert any(found["cells"][0].values())


def test_only_rows_that_are_asked_about_are_read() -> None:
    stream = trades(random.Random(1), 400)
    read = Reader(planned(["member AND vol > 3"], stream, "JOIN", "cells"), 0, {"index": INDEX})
    scope = read(stream).scope
    expected = [symbol for symbol in stream["symbol"].to_pylist() if symbol in ("s0", "s3", "s4")]
    # `s3` is in the table twice, and once a member.
    assert scope.rows == len(expected)
    assert {bound.key for bound in scope.values} == {"vol", "`index.weight`"}


@pytest.mark.parametrize("text", ["vol > 3", "member OR vol > 3", "weight IS NOT NULL"])
def test_nothing_is_dropped_where_most_rows_may_count(text: str) -> None:
    stream = trades(random.Random(2), 400)
    plan = planned([text], stream, "LEFT JOIN", "cells")
    read = Reader(plan, 0, {"index": INDEX})(stream)
    matches = {symbol: 1 + (symbol == "s3") for symbol in SYMBOLS}
    rows = sum(matches.get(symbol, 1) for symbol in stream["symbol"].to_pylist())
    assert read.scope.rows == rows


def test_no_row_is_asked_about() -> None:
    stream = trades(random.Random(3), 40)
    strange = pa.table({"symbol": SYMBOLS, "member": [False] * 12, "weight": [1] * 12})
    engine = LocalEngine(planned(["member"], stream, "JOIN", "cells"), tables={"index": strange})
    engine.feed(stream)
    assert engine.close()["q0"].num_rows == 0
    assert engine.progress().partial_aggregations == 0
