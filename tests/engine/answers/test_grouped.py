"""Grouped answers written in their final order equal those that are walked and sorted."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.engine.answers import front, grouped
from muntin.engine.answers import windows as asking
from muntin.engine.answers.group_keys import take_once
from muntin.engine.slices.radix_sort import sort_entries
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing import assert_same_rows, oracle

AGGREGATES = [
    *("count(*)", "count(p)", "sum(p)", "sum(v)", "sum(m)", "avg(p)", "avg(v)", "count_if(f)"),
    "sum(p * v)",
]
# What is written at once only where all sums fit 128 bits, or not at all.
OTHERS = ["max(p)", "avg(m)", "var_pop(v)", "sum(p) FILTER (WHERE v > 3)"]
KEYS: dict[str, list[str | None]] = {
    "short": ["", "a", "ab", "key1", "seven77", "é"],
    "long": ["muntins", "a sash bar", "b", ""],
    "nulls": ["a", None, "b"],
}


def stream(rng: random.Random, rows: int) -> pa.Table:
    """Numbers of a narrow range; with NULL, -0.0 and extreme ones now and then."""
    nulls = rng.choice([0.0, 0.0, 0.2])
    doubles = [0.0, -0.0, 0.1, 1.25, -7.3, 1e9 + 0.7, -1e-3]
    doubles += rng.choice([[], [], [float("nan")], [float("inf"), 2.0], [1e-320], [1e300]])
    integers = [*range(-5, 20), *rng.choice([[], [], [2**63 - 1, -(2**63)]])]
    pools: dict[str, list[Any]] = {
        "p": doubles,
        "v": integers,
        "m": [Decimal(n) / 4 for n in range(-9, 9)],
        "f": [True, False],
        "w": list(range(9)),
    }
    columns = {
        name: [None if rng.random() < nulls else rng.choice(pool) for _ in range(rows)]
        for name, pool in pools.items()
    }
    keys: list[str | None] = rng.choice(list(KEYS.values()))
    span = rng.choice([30, 300])
    types = {"p": pa.float64(), "v": pa.int64(), "m": pa.decimal128(9, 2)}
    return pa.table(
        {
            "t": sorted(rng.randrange(span) - 20 for _ in range(rows)),
            "s": pa.array([rng.choice(keys) for _ in range(rows)], pa.string()),
            **{name: pa.array(column, types.get(name)) for name, column in columns.items()},
        }
    )


def asked(rng: random.Random) -> str:
    group = rng.choice(["s", "w", "s, w"])
    pool = AGGREGATES if rng.random() < 0.8 else [*AGGREGATES, *OTHERS]
    aggregates = rng.sample(pool, rng.choice([0, 1, 3]))
    shown = ", ".join([group, *(f"{text} AS a{i}" for i, text in enumerate(aggregates))])
    windows = [(rng.choice([3, 8, 25]), rng.choice([2, 5, 7])) for _ in range(3)]
    having = rng.choice(["", "", " HAVING count(*) > 1"])
    return ";".join(
        f"CREATE QUERY q{i} AS SELECT {shown} FROM s"
        f" [RANGE {range_} SLIDE {slide} OFFSET {rng.choice([0, 1])}]"
        f" WHERE {rng.choice(['w > 3', 'w < 7', 'w > 3 AND w < 8', '1 = 1', 'f', 'w > 10'])}"
        f" GROUP BY {group}{having}"
        for i, (range_, slide) in enumerate(windows * 3)
    )


def answers(
    plan: Any, table: pa.Table, batch: int, lateness: int | None
) -> tuple[list[dict[str, pa.Table]], Counter[str]]:
    engine = LocalEngine(plan, lateness)
    found = [engine.feed(each) for each in table.to_batches(max_chunksize=batch) or [table]]
    return [*found, engine.close()], +engine.statistics.errors


@pytest.mark.parametrize("seed", range(30))
def test_placed_answers_equal_walked_ones_and_the_oracle(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(8300 + seed)
    table = stream(rng, rng.choice([1, 40, 400]))
    plan = build_plan(queries(asked(rng)), table.schema, "t")
    batch, lateness = rng.choice([17, 1000]), rng.choice([None, None, 5])
    monkeypatch.setattr(grouped, "_BLOCK", rng.choice([1, 100, 1 << 15]))
    monkeypatch.setattr(front, "_LONG", rng.choice([0, 2, 64]))
    placed, errors = answers(plan, table, batch, lateness)
    monkeypatch.setattr(grouped.Placer, "place", lambda *_: None)
    walked, expected = answers(plan, table, batch, lateness)
    assert errors == expected
    for got, wanted in zip(placed, walked, strict=True):
        assert got.keys() == wanted.keys()
        for name, result in got.items():
            result.validate(full=True)
            assert_same_bits(result, wanted[name])
    if lateness is None:
        for name, result in placed[-1].items():
            assert_same_rows(result, oracle.answer(plan, name, table))


def assert_same_bits(got: pa.Table, wanted: pa.Table) -> None:
    assert got.schema == wanted.schema
    # Rows as text tell -0.0 from 0.0, and NaN from nothing.
    assert list(map(repr, got.to_pylist())) == list(map(repr, wanted.to_pylist()))


@pytest.mark.parametrize(
    ("module", "limit"),
    [
        (grouped, "_MOST_QUESTIONS"),
        (grouped, "_MOST_WINDOWS"),
        (asking, "_MOST_RUNS"),
    ],
)
def test_beyond_a_limit_windows_are_walked(
    module: Any, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(8400)
    table = stream(rng, 200)
    sql = "SELECT w, sum(v) AS a FROM s [RANGE 9 SLIDE 4] WHERE v < 15 GROUP BY w"
    plan = build_plan(queries(sql), table.schema, "t")
    found = []
    place = grouped.Placer.place

    def spied(*args: Any) -> Any:
        found.append(place(*args))
        return found[-1]

    monkeypatch.setattr(grouped.Placer, "place", spied)
    placed, _ = answers(plan, table, 50, None)
    monkeypatch.setattr(module, limit, 0)
    walked, _ = answers(plan, table, 50, None)
    assert [each is None for each in found] == [False, True]
    assert placed == walked


def test_sums_that_do_not_fit_fail_as_walked_ones_do() -> None:
    table = pa.table({"t": [1, 1, 2, 9], "s": ["a", "a", "b", "a"], "v": [2**62, 2**62, 5, 1]})
    sql = "CREATE QUERY q AS SELECT s, sum(v) AS a FROM s [RANGE 5 SLIDE 5] GROUP BY s"
    results, errors = answers(build_plan(queries(sql), table.schema, "t"), table, 9, None)
    assert results[-1]["q"].column("a").to_pylist() == [None, 5, 1]
    assert errors == {"q": 1}


@pytest.mark.parametrize("keys", [*KEYS.values(), [1, 2, None], ["x"]])
def test_keys_are_taken_in_any_order(keys: list[Any]) -> None:
    rng = random.Random(8500)
    array = pa.array([None, *keys])[1:]
    for size in (0, 1, 7, 500):
        indices = [rng.randrange(len(keys)) for _ in range(size)]
        taken = take_once(array, np.array([*indices, 0], np.int32))
        taken.validate(full=True)
        assert taken.type == array.type
        assert taken.to_pylist() == [keys[index] for index in indices]


@pytest.mark.parametrize("size", [0, 1, 50, 20_000])
@pytest.mark.parametrize("spread", [10, 10**6, 2**40])
def test_entries_are_sorted_and_numbered(size: int, spread: int) -> None:
    rng = np.random.default_rng(size)
    groups, codes = rng.integers(0, 300, size), rng.integers(0, spread, size)
    starts = rng.integers(-50, 50, size) * 10**6
    for known in (codes, np.empty(0, np.int64)):
        columns = [groups, starts, known] if known.size else [groups, starts]
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        distinct = sorted(set(rows))
        numbers, kept = sort_entries(groups, starts, known)
        assert [rows[place] for place in kept] == distinct
        assert [distinct[number] for number in numbers] == rows
