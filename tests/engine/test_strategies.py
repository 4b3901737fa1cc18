"""All strategies and slicings give the oracle's answers, bit for bit, whatever the predicates."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from engine.rich_queries import SCHEMA, condition, rich_queries, rich_stream
from muntin.aggregates import Aggregate, register, unregister
from muntin.engine import LocalEngine, in_time_order
from muntin.engine.answers import rollup
from muntin.engine.answers.rollup import list_ranges
from muntin.errors import MuntinError
from muntin.plan import STRATEGIES, SharedPlan
from muntin.planner import build_plan
from muntin.planner.owners import Sharing, share_all
from muntin.queries import queries
from muntin.testing import assert_same_rows, oracle, rows_of
from muntin.windows.edges import SLICINGS

Lines = dict[str, list[str]]


def run(plan: SharedPlan, table: pa.Table, batch: int) -> tuple[dict[str, pa.Table], Counter[str]]:
    engine = LocalEngine(plan)
    if plan.ordered:
        table = in_time_order(table, plan.timeline.column)
    for each in table.to_batches(max_chunksize=batch) or [table]:
        engine.feed(each)
    return engine.close(), +engine.statistics.errors


def lines(results: dict[str, pa.Table] | muntin.Results) -> Lines:
    return {name: list(map(repr, rows_of(results[name]))) for name in results}


@pytest.mark.parametrize("seed", range(10))
def test_strategies_and_slicings_equal_the_oracle_and_each_other(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(8000 + seed)
    scale = rng.choice([1, 1, 10**12])
    table = rich_stream(rng, most=90, scale=scale)
    asked = rich_queries(rng, most=9, scale=scale)
    parsed = queries(";\n".join(query.sql for query in asked))
    if seed % 2:
        monkeypatch.setattr(rollup, "_FEW", 0)
    first: tuple[Lines, Counter[str]] | None = None
    # Over three seeds every strategy meets every slicing.
    for number, strategy in enumerate(STRATEGIES):
        slicing = sorted(SLICINGS)[(seed + number) % 3]
        sample = table if rng.random() < 0.5 else None
        owners = tuple(rng.choice(("", "one", "two")) for _ in parsed)
        several = Sharing(owners, combined=rng.random() < 0.5)
        plan = build_plan(
            parsed,
            table.schema,
            "t",
            strategy=strategy,
            slicing=slicing,
            sample=sample,
            sharer=rng.choice((share_all, lambda *_, chosen=several: chosen)),
        )
        results, errors = run(plan, table, rng.choice([1, 13, 1000]))
        if first is None:
            first = lines(results), errors
            for query in asked:
                expected = oracle.answer(plan, query.name, table)
                assert_same_rows(results[query.name], expected, close=query.close)
        assert (lines(results), errors) == first, (strategy, slicing)


@pytest.mark.parametrize("seed", range(8))
def test_ranges_of_ranks_give_what_runs_of_cells_give(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(8100 + seed)
    size = 500
    table = pa.table(
        {
            "t": sorted(rng.randrange(20) for _ in range(size)),
            "v": [rng.choice([None, *range(40)]) for _ in range(size)],
            "p": [rng.choice([0.5, 1.0, float("nan"), -2.0, None]) for _ in range(size)],
            "s": [rng.choice("abc") for _ in range(size)],
        }
    )
    other = ["p > 0", "p <= 0.5", "s = 'a'", "s IN ('b', 'c')", "p IS NULL", "1 = 1"]
    parsed = queries(
        ";".join(
            f"CREATE QUERY q{i} AS SELECT {group}min(v) AS a, sum(p) AS b, max_by(p, v) AS c,"
            f" count(*) FILTER (WHERE v < {rng.randrange(40)}) AS d, var_pop(v) AS e, last(p) AS f"
            f" FROM s [RANGE {rng.choice([6, 10, 25])} SLIDE {rng.choice([5, 10])}]"
            f" WHERE {_threshold(rng)} AND {rng.choice(other)}"
            f"{' GROUP BY s' if group else ''}"
            for i, group in enumerate(["", "", "", "s, "] * 8)
        )
    )
    sample = table if seed % 2 else None
    plan = build_plan(parsed, table.schema, "t", sample=sample)
    by_runs, _ = run(plan, table, 100)
    used = []

    def listed(*args: Any) -> Any:
        used.append(args)
        return list_ranges(*args)

    monkeypatch.setattr(rollup, "_FEW", 0)
    monkeypatch.setattr(rollup, "list_ranges", listed)
    by_ranges, _ = run(plan, table, 100)
    assert used
    assert lines(by_ranges) == lines(by_runs)
    for name in rng.sample(sorted(by_ranges), 6):
        assert_same_rows(by_ranges[name], oracle.answer(plan, name, table))


def _threshold(rng: random.Random) -> str:
    low, high = sorted(rng.sample(range(40), 2))
    return rng.choice(
        [
            *(f"v > {low}", f"{high} >= v", f"v BETWEEN {low} AND {high}", f"NOT v < {low}"),
            *(f"(v < {low} OR v > {high})", f"v IN ({low}, {high})", f"v <> {low}"),
        ]
    )


def _agree(sql: str, table: pa.Table, some: int = 5) -> None:
    """All strategies agree, and with the oracle on some of the queries."""
    first: Lines | None = None
    for strategy in STRATEGIES:
        results = muntin.aggregate(table, sql, time="t", strategy=strategy)
        first = first or lines(results)
        assert lines(results) == first, strategy
    for name in list(results)[:some]:
        assert_same_rows(results[name], oracle.answer(results.plan, name, table))


def test_hundreds_of_strings_are_ranks_of_one_expression() -> None:
    rng = np.random.default_rng(1)
    names = [f"symbol{number}" for number in rng.integers(0, 400, 800)]
    table = pa.table({"t": np.sort(rng.integers(0, 60, 800)), "s": names})
    sql = ";".join(
        f"CREATE QUERY q{i} AS SELECT count(*) AS n FROM s [RANGE {10 + i % 3} SLIDE 10]"
        f" WHERE s = 'symbol{i}'"
        for i in range(300)
    )
    results = muntin.aggregate(table, sql, time="t")
    assert len(results.plan.partials) == 1
    unshared = muntin.aggregate(table, sql, time="t", strategy="slices")
    assert lines(results) == lines(unshared)
    for i in (0, 150, 299):
        expected = oracle.answer(results.plan, f"q{i}", table)
        assert_same_rows(results[f"q{i}"], expected)


@pytest.mark.parametrize("grouped", [False, True])
def test_more_conditions_than_64_bits_can_number(grouped: bool) -> None:
    rng = np.random.default_rng(2)
    flags = {
        f"b{i}": pa.array(rng.random(300) < 0.9, mask=rng.random(300) < 0.1) for i in range(70)
    }
    table = pa.table(
        {"t": np.sort(rng.integers(0, 40, 300)), "v": rng.integers(0, 9, 300), **flags}
    )
    every = " AND ".join(f"(b{i} OR v = {i % 9})" for i in range(70))
    mixed = " OR ".join(f"(b{i} AND NOT b{i + 1})" for i in range(0, 70, 2))
    group, by = ("v, ", " GROUP BY v") if grouped else ("", "")
    _agree(
        f"CREATE QUERY a AS SELECT {group}count(*) AS n FROM s [RANGE 9 SLIDE 4] WHERE {every}{by};"
        f"CREATE QUERY b AS SELECT {group}count(*) FILTER (WHERE {mixed}) AS n"
        f" FROM s [RANGE 9 SLIDE 4]{by};"
        f"CREATE QUERY c AS SELECT {group}sum(v) AS n FROM s [RANGE 7 SLIDE 5] WHERE b3{by}",
        table,
    )


class Joined(Aggregate):
    """Values as text, one after the other."""

    name = "joined"
    commutative = False
    identity = ""

    def lift(self, *values: object) -> str:
        return str(values[0])

    def combine(self, a: str, b: str) -> str:
        return a + b

    def lower(self, partial: str) -> str | None:
        return partial or None

    def result_type(self, types: Any) -> pa.DataType:
        return pa.string()


def test_aggregates_whose_order_matters_get_their_rows_in_order() -> None:
    register(Joined())
    try:
        table = rich_stream(random.Random(8), rows=160)
        sql = ";".join(
            f"CREATE QUERY q{i} AS SELECT {group}joined(v) AS a, sum(v) AS b,"
            f" joined(s) FILTER (WHERE v > 4) AS c FROM s [RANGE {9 + i} SLIDE {5 + i % 2}]"
            f" WHERE v > {i}{' GROUP BY f' if group else ''}"
            for i, group in enumerate(["", "f, ", "", "f, "])
        )
        _agree_in_order(sql, table)
    finally:
        unregister("joined")


def _agree_in_order(sql: str, table: pa.Table) -> None:
    ordered = in_time_order(table, "t")
    for strategy in STRATEGIES:
        results = muntin.aggregate(table, sql, time="t", strategy=strategy)
        for name in results:
            assert_same_rows(results[name], oracle.answer(results.plan, name, ordered))


@pytest.mark.parametrize("text", ["1 = 0", "v > 3 AND v < 3", "NOT (v = v OR v IS NULL)"])
def test_what_no_row_satisfies_takes_no_updates(text: str) -> None:
    table = rich_stream(random.Random(9), rows=160)
    (query,) = queries(f"SELECT count(*) AS n FROM s [RANGE 5 SLIDE 5] WHERE {text}")
    engine = LocalEngine(build_plan([query], SCHEMA, "t"))
    engine.feed(table)
    assert engine.progress().cells == 0
    assert engine.close()["q1"].num_rows == 0


def test_conditions_are_found_whatever_their_depth() -> None:
    rng = random.Random(10)
    table = rich_stream(rng, rows=160)
    numbers = [("v", ["3", "5", "8"]), ("abs(p - q)", ["0.5", "1"])]
    _agree(
        ";".join(
            f"CREATE QUERY q{i} AS SELECT count(*) AS n FROM s [RANGE 30 SLIDE 15]"
            f" WHERE {condition(rng, numbers, 4)}"
            for i in range(6)
        ),
        table,
        some=6,
    )


@pytest.mark.parametrize("option", ["strategy", "slicing"])
def test_unknown_names_are_refused_with_those_there_are(option: str) -> None:
    table = pa.table({"t": [1]})
    with pytest.raises(MuntinError, match="'cell'") as caught:
        muntin.aggregate(
            table, "SELECT count(*) FROM s [RANGE 1 SLIDE 1]", time="t", **{option: "cell"}
        )
    assert {"strategy": "cells", "slicing": "pairs"}[option] in str(caught.value.hint)
