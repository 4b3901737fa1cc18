"""A technique of one's own: a state class and one line of registration, and all else follows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import muntin
from aggregators.concat import Concat
from engine.live import live, shaken, streamed
from muntin._typing import Ints
from muntin.aggregates import resolve
from muntin.aggregators import cards, create, info, legal, names, register, registry
from muntin.aggregators.card import Card
from muntin.aggregators.choice import operations
from muntin.aggregators.contract import OPERATIONS, SIZE
from muntin.aggregators.operators import Store, combine, load
from muntin.aggregators.rings import append, drop_oldest, end_of, new_head, wrapped
from muntin.errors import AggregateError
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing import conformance


class Backwards(NamedTuple):
    """Panes, from the newest partial to the oldest."""

    partials: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> Backwards:
        return Backwards(op.empty(capacity), new_head(capacity if full else 0))

    @staticmethod
    def insert(op: Any, state: Backwards, partial: Any) -> None:
        append(op, state.partials, state.head, partial)

    @staticmethod
    def evict(op: Any, state: Backwards) -> None:
        drop_oldest(state.head, len(state.partials))

    @staticmethod
    def query(op: Any, state: Backwards, size: int) -> Any:
        capacity = len(state.partials)
        at = end_of(state.head, capacity) - 1 + capacity
        answer = load(op, state.partials, wrapped(at, capacity))
        for before in range(1, size):
            answer = combine(op, load(op, state.partials, wrapped(at - before, capacity)), answer)
        state.head[OPERATIONS] += size - 1
        return answer


def counted(ranges: Sequence[int]) -> float:
    return float(sum(size - 1 for size in ranges))


CARD = Card(
    name="backwards",
    needs="any",
    amortised="n - 1",
    worst="n - 1",
    multi="n (n - 1) / 2",
    space="n",
    several_ranges=True,
    counted=counted,
    paper="none",
)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(CARD, Backwards)
    yield
    del registry._BY_NAME["backwards"]


def test_it_is_known_by_its_name_everywhere() -> None:
    assert names()[-1] == "backwards"
    assert info("backwards") is CARD
    assert "backwards" in legal(resolve("max", [pa.int64()]))
    assert operations("backwards", [3, 5]) == 6
    assert "## backwards" in cards.page()
    with pytest.raises(AggregateError, match="there is a technique backwards already"):
        register(CARD, Backwards)


@pytest.mark.parametrize("aggregate", [Concat(), resolve("sum", [pa.int64()]).algebra])
def test_the_checks_that_all_techniques_pass(aggregate: Any) -> None:
    rng = random.Random(3)
    rows = "abcdefghijkl" if aggregate.name == "concat" else [rng.randrange(99) for _ in range(12)]
    conformance.check_slides("backwards", aggregate, rows, [5, 2])
    conformance.check_positions("backwards", aggregate, rows, 4)
    conformance.check_snapshots("backwards", aggregate, rows, 3)


def test_kernels_run_it() -> None:
    sums = create("backwards", "sum(int64)", [3])
    assert sums.run(np.arange(6)).ravel().tolist() == [0, 1, 3, 6, 9, 12]
    assert sums.window.encoding is not None
    assert sums.operations == 12
    assert int(sums.state.head[SIZE]) == 3


def test_the_engine_runs_it_and_explain_shows_it() -> None:
    head = "CREATE QUERY top WITH (technique = 'backwards') AS"
    sql = f"{head} SELECT max(v) AS m FROM s [RANGE 3 SLIDE 1]"
    rows = pa.table({"t": [1, 2, 3, 4, 5, 6], "v": [4, 2, 1, 3, 0, 1]})
    found = muntin.aggregate(rows, sql, "t")
    assert found["top"]["m"].to_pylist() == [4, 4, 4, 3, 3, 3, 1, 1]
    assert "by backwards over its own slices for max(v) (asked for)" in found.plan.explain()
    rng = random.Random(8)
    pool, table = streamed(rng, 6), shaken(rng, 80, 8)
    live(
        rng,
        pool,
        table,
        len(pool),
        lateness=4,
        batch=9,
        asked=lambda query: replace(query, technique="backwards"),
    )


def test_a_plan_may_name_it_for_all_queries() -> None:
    asked = queries("SELECT sum(p), max(p) FROM s [RANGE 9 SLIDE 2]")
    schema = pa.schema({"t": pa.int64(), "p": pa.float64()})
    plan = build_plan(asked, schema, "t", technique="backwards")
    assert {each.name for _, _, each in plan.finals[0].reads} == {"backwards"}
