"""Joins that share a store of rows: each gives the rows that it would give alone."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import muntin
from muntin.operators import RowEngine
from muntin.operators.state import keys
from muntin.plan.operators import Join, RowFinal, RowPlan
from muntin.testing import row_oracle as oracle
from operators.random_plans import (
    STREAMS,
    TIME,
    batches,
    bound,
    leaf,
    run,
    stream,
    table,
)

WHERES = (None, None, "v > 0", "v > 1", "k = 1 OR s = 'a'", "10 div v > 4", "s IS NULL")


def joins(
    rng: random.Random, count: int, ranges: tuple[int | None, ...] = (None, 1, 3, 5, 12)
) -> list[RowFinal]:
    """Joins of a and b on k, or of a with itself, with windows and conditions of their own."""
    found = []
    for number in range(count):
        other = rng.choice("ba")
        sides = tuple(
            leaf(name, rng.choice(ranges), rng.choice(WHERES), rng.choice(values))
            for name, values in (("a", ("v", "v % 2")), (other, ("v", "v + 1")))
        )
        named = tuple(
            replace(
                each,
                columns=tuple(replace(own, name=f"{own.name}{i}") for own in each.columns),
            )
            for i, each in enumerate(sides)
        )
        join = Join(named, rng.choice([((0,), (0,)), ((1,), (1,)), ((0, 1), (0, 1))]))
        if rng.random() < 0.3:
            join = replace(join, residual=bound("v0 <= v1", join.schema))
        found.append(RowFinal(f"q{number}", join, TIME))
    return found


def bag(found: pa.Table) -> Counter[object]:
    return Counter(oracle.shown(found, 2))


def check(seed: int) -> None:
    rng = random.Random(seed)
    finals = joins(rng, 12)
    rows = {name: stream(rng, 20, 30) for name in STREAMS}
    tables = {name: table(each) for name, each in rows.items()}
    plan = RowPlan(STREAMS, tuple(finals))
    assert len(RowEngine(plan)._graph.stores) >= 2
    found = run(plan, batches(rng, rows, rng.choice([0, 4])), rng)
    for final in finals:
        alone = run(RowPlan(STREAMS, (final,)), iter([(tables, {})]))
        assert bag(found[final.name]) == bag(alone[final.name]), final.name
        oracle.check_lifetimes(oracle.answers(plan, final.root, tables), found[final.name])


@pytest.mark.parametrize("seed", range(6))
def test_each_gives_what_it_would_give_alone(seed: int) -> None:
    check(seed)


def test_keys_that_all_hash_together(monkeypatch: pytest.MonkeyPatch) -> None:
    real = keys.hash_columns

    def collide(columns: keys.Columns, count: int) -> tuple[keys.Ints, bool]:
        return real(columns, count)[0] * 0, False

    monkeypatch.setattr(keys, "hash_columns", collide)
    check(100)


@pytest.mark.parametrize("seed", range(4))
def test_those_that_stay_are_not_changed_by_those_that_join_and_leave(seed: int) -> None:
    rng = random.Random(seed)
    # A window without a length would never be whole for those that join.
    finals = joins(rng, 10, (1, 3, 5, 12))
    rows = {name: stream(rng, 30, 40) for name in STREAMS}
    tables = {name: table(each) for name, each in rows.items()}
    given = list(batches(rng, rows, 3))
    change = len(given) // 2
    engine = RowEngine(RowPlan(STREAMS, tuple(finals[:7])))
    found: dict[str, list[pa.Table]] = {}
    for number, (batch, watermarks) in enumerate(given):
        if number == change:
            # Two leave, three join: columns and bits of what is kept move.
            engine.adopt(RowPlan(STREAMS, tuple(finals[2:])))
            engine = RowEngine.restore(engine.plan, engine.snapshot())
        for name, each in engine.feed(batch, watermarks).items():
            found.setdefault(name, []).append(each)
    joined = {final.name: engine.since(final.name) for final in finals[7:]}
    for name, each in engine.close().items():
        found.setdefault(name, []).append(each)
    for final in finals[2:]:
        whole = run(RowPlan(STREAMS, (final,)), iter([(tables, {})]))[final.name]
        got = oracle.shown(pa.concat_tables(found[final.name]), 2)
        wanted = oracle.shown(whole, 2)
        since = joined.get(final.name)
        if since is not None:
            wanted = [
                ((max(begin, since), end), values)
                for (begin, end), values in wanted
                if end is None or end > since
            ]
        assert Counter(got) == Counter(wanted), (final.name, since)


def test_rows_are_kept_for_the_joins_that_stay() -> None:
    def joined(name: str, length: int, where: str | None) -> RowFinal:
        sides = tuple(leaf(stream, length, where) for stream in "ab")
        named = tuple(
            replace(
                each, columns=tuple(replace(own, name=f"{own.name}{i}") for own in each.columns)
            )
            for i, each in enumerate(sides)
        )
        return RowFinal(name, Join(named, ((0,), (0,))), TIME)

    stays, leaves = joined("stays", 10, "v > 0"), joined("leaves", 1000, None)
    engine = RowEngine(RowPlan(STREAMS, (stays, leaves)))
    assert engine._graph.stores
    rows = table([(time, 1.0, "x", time % 2) for time in range(400)])
    engine.feed({"a": rows}, {"a": 399, "b": 399})
    assert engine.statistics.kept["stays"] == 400
    engine.adopt(RowPlan(STREAMS, (stays,)))
    engine = RowEngine.restore(engine.plan, engine.snapshot())
    # Half of the rows were for the one that left, and of the others few live as long as ten ticks.
    assert engine.statistics.kept["stays"] == 200
    found = engine.feed({"b": table([(400, 1.0, "x", 1)])}, {})["stays"]
    assert sorted(oracle.shown(found, 2))[0][0] == (400, 401)
    assert found.num_rows == 5
    assert engine.statistics.kept["stays"] < 20


def test_failures_are_counted_for_the_query_whose_rows_they_are() -> None:
    rows = table([(1, 1.0, "a", 0), (2, 1.0, "a", 2), (3, 2.0, "b", 0)])
    failing = leaf("a", 9, "10 div v > 1")
    plain = leaf("b", 9)
    sides = [
        tuple(
            replace(
                each, columns=tuple(replace(own, name=f"{own.name}{i}") for own in each.columns)
            )
            for i, each in enumerate(pair)
        )
        for pair in ((failing, plain), (leaf("a", 5), plain))
    ]
    finals = [RowFinal(f"q{i}", Join(pair, ((0,), (0,))), TIME) for i, pair in enumerate(sides)]
    engine = RowEngine(RowPlan(STREAMS, tuple(finals)))
    assert engine._graph.stores
    engine.close({"a": rows, "b": rows})
    assert engine.statistics.errors == {"q0": 2, "q1": 0}
    assert engine.statistics.results["q1"] == 5


def test_a_replaced_join_leaves_the_others_theirs_after_a_restore() -> None:
    """A query that is replaced keeps its place in the plan; who restores the store goes by that."""
    types = {"ts": "int64", "k": "int64", "x": "int64", "y": "int64"}
    streams = {"a": types, "b": types}
    times = {"a": "ts", "b": "ts"}

    def query(how: str, name: str, column: str, least: int) -> str:
        return (
            f"{how} QUERY {name} AS SELECT a.{column} AS v, b.x AS w FROM a [RANGE 100] a "
            f"JOIN b [RANGE 100] b ON a.k = b.k WHERE a.x > {least};"
        )

    def rows(ts: int, x: int, y: int) -> pa.Table:
        return pa.table({"ts": [ts], "k": [1], "x": [x], "y": [y]})

    stays = query("CREATE", "stays", "x", 0)
    running = muntin.stream(query("CREATE", "first", "x", 5) + stays, streams, times)
    running.feed(rows(1, 7, 70), "a")
    running.add(query("CREATE OR REPLACE", "first", "y", 1000))
    running.feed(rows(2, 3, 30), "a")
    held = running.snapshot()
    resumed = muntin.stream(running.queries(), streams, times, snapshot=held)
    found = [each.feed(rows(3, 1, 1), "b")["stays"].to_pylist() for each in (running, resumed)]
    assert [row["v"] for row in found[0]] == [7, 3]
    assert found[1] == found[0]
