"""Answers over all values have the same bits whatever the slicing, cuts, order and technique."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.aggregators import names
from muntin.errors import MuntinError

CALLS = {
    "approx_count_distinct": "approx_count_distinct(v)",
    "coarse": "approx_count_distinct(v, 0.1)",
    "approx_percentile": "approx_percentile(p, array(0.01, 0.5, 0.99))",
    "approx_top_k": "approx_top_k(s, 3, 6)",
    "approx_frequent": "approx_frequent(s, 0.05, 6)",
    "count_distinct": "count(DISTINCT v)",
    "sum_distinct": "sum(DISTINCT p)",
    "percentile": "percentile(p, array(0.01, 0.5, 0.99))",
    "top_k": "top_k(s, 3)",
}
# Windows that hold more values than are told apart exactly, and windows that hold fewer.
WINDOWS = ("[RANGE 400 SLIDE 50]", "[RANGE 130 SLIDE 30] WHERE p > 0", "[RANGE 6 SLIDE 3]")
ROWS = 1500


def draw() -> pa.Table:
    """Values of which windows have hundreds, and texts by Zipf's law."""
    rng = np.random.default_rng(20)
    prices = rng.normal(0, 3, ROWS).round(2)
    prices[rng.random(ROWS) < 0.02] = np.nan
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, 1000, ROWS)),
            "v": rng.integers(0, 5000, ROWS),
            "p": prices,
            "s": [f"a{k}" for k in rng.zipf(1.3, ROWS) % 60],
        }
    )


def queries(call: str) -> str:
    return ";".join(
        f"CREATE QUERY q{number} AS SELECT {call} AS a FROM t {window}"
        for number, window in enumerate(WINDOWS)
    )


def shown(tables: dict[str, pa.Table]) -> dict[str, list[str]]:
    """Rows as texts, by which NaN equals itself."""
    return {name: [repr(row) for row in table.to_pylist()] for name, table in tables.items()}


def answered(call: str, table: pa.Table, **options: object) -> dict[str, list[str]]:
    found = muntin.aggregate(table, queries(call), time="ts", **options)  # type: ignore[arg-type]
    return shown({name: found.table(name) for name in found})


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return draw()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_slicings_orders_and_other_queries(call: str, table: pa.Table) -> None:
    wanted = answered(call, table)
    for slicing in ("panes", "cutty"):
        assert answered(call, table, slicing=slicing) == wanted, slicing
    rng = np.random.default_rng(1)
    assert answered(call, table.take(pa.array(rng.permutation(ROWS)))) == wanted
    for number, window in enumerate(WINDOWS):
        alone = muntin.aggregate(table, f"SELECT {call} AS a FROM t {window}", time="ts")
        assert shown({f"q{number}": alone.table("q1")})[f"q{number}"] == wanted[f"q{number}"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_every_technique_that_takes_it(call: str, table: pa.Table) -> None:
    wanted = answered(call, table)
    taken = 0
    for technique in names():
        try:
            found = answered(call, table, technique=technique)
        except MuntinError:
            continue
        taken += 1
        assert found == wanted, technique
        assert streamed(call, table, 0, technique=technique) == wanted, technique
    assert taken


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_batches_disorder_and_restarts(call: str, seed: int, table: pa.Table) -> None:
    assert streamed(call, table, seed) == answered(call, table)


def streamed(call: str, table: pa.Table, seed: int, **options: object) -> dict[str, list[str]]:
    """A stream in batches of any size, some of its rows late, with restarts between them."""
    rng = np.random.default_rng(seed)
    delays = 6 * rng.random(ROWS) if seed else np.zeros(ROWS)
    rows = table.take(pa.array(np.argsort(np.array(table["ts"]) + delays, kind="stable")))
    given = {"time": "ts", "lateness": 7, **options}
    stream = muntin.stream(queries(call), rows.schema, **given)  # type: ignore[arg-type]
    found: dict[str, list[pa.Table]] = {}
    at = 0
    while at < ROWS:
        size = int(rng.integers(1, 400))
        for name, answers in stream.feed(rows.slice(at, size)).items():
            found.setdefault(name, []).append(answers)
        at += size
        if seed and rng.random() < 0.3:
            given["snapshot"] = stream.snapshot()
            stream = muntin.stream(queries(call), rows.schema, **given)  # type: ignore[arg-type]
    for name, answers in stream.close().items():
        found.setdefault(name, []).append(answers)
    return shown({name: pa.concat_tables(found[name]) for name in sorted(found)})
