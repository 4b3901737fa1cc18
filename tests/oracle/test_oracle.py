"""The engine against recomputation from scratch, on random queries over random streams."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import muntin
from muntin.plan import STRATEGIES
from muntin.testing import assert_same_rows, oracle, rows_of
from muntin.windows.edges import SLICINGS
from oracle.random_queries import queries
from oracle.random_streams import stream

# Logarithms carry these; their bits are those of the nearest double or its neighbour.
CLOSE = {"product": 1e-15, "geo_mean": 1e-12}


@pytest.mark.parametrize("seed", range(150))
def test_engine_equals_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    table = stream(rng)
    asked = queries(rng)
    # The default most often, every other strategy and slicing often enough.
    strategy = rng.choice(["cells", "cells", *STRATEGIES])
    slicing = rng.choice(["pairs", *SLICINGS])
    sql = ";\n".join(q.sql for q in asked)
    results = muntin.aggregate(table, sql, time="ts", strategy=strategy, slicing=slicing)
    for query in asked:
        expected = oracle.answer(results.plan, query.name, table)
        close = {
            name: CLOSE[function]
            for name, text in query.outputs.items()
            for function in CLOSE
            if text.startswith(function)
        }
        assert_same_rows(results[query.name], expected, close=close)


@pytest.mark.parametrize("seed", range(40))
def test_answers_do_not_depend_on_order_or_batches(seed: int) -> None:
    rng = random.Random(1000 + seed)
    table = stream(rng)
    sql = ";\n".join(query.sql for query in queries(rng))
    whole = muntin.aggregate(table, sql, time="ts")
    order = list(range(table.num_rows))
    rng.shuffle(order)
    shuffled = table.take(pa.array(order, pa.int64()))
    batches = shuffled.to_batches(max_chunksize=rng.choice([1, 7, 50]))
    apart = muntin.aggregate(batches or table, sql, time="ts")
    for name in whole:
        # To the last bit, and in the same order of rows.
        assert_same_rows(apart[name], whole[name])
        assert list(map(repr, rows_of(apart[name]))) == list(map(repr, rows_of(whole[name])))
