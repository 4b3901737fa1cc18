"""Windows of users' aggregates, in any order, and how often cells are combined for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.aggregates import Aggregate
from muntin.aggregates.algebra import USER, Part
from muntin.aggregates.columns.objects import ObjectColumn
from muntin.aggregates.registry import register, unregister


class Joined(Aggregate):
    """Texts one after the other: what is out of order, missing or there twice shows."""

    name = "joined_texts"
    identity = ""
    combined = 0

    def lift(self, value: Any) -> Any:
        return value

    def combine(self, a: Any, b: Any) -> Any:
        self.combined += 1
        return a + b

    def lower(self, partial: Any) -> Any:
        return partial

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        return pa.string()


@pytest.fixture
def joined() -> Any:
    aggregate = Joined()
    register(aggregate)
    yield aggregate
    unregister(aggregate.name)


def column(size: int) -> ObjectColumn:
    return ObjectColumn(Part(f"{USER}joined_texts", (pa.string(),)), [f"{i}." for i in range(size)])


@pytest.mark.parametrize("seed", range(20))
def test_windows_hold_their_cells_in_order(seed: int, joined: Joined) -> None:
    random = np.random.default_rng(seed)
    held = column(60)
    starts = random.integers(0, 60, 80)
    ends = np.minimum(starts + random.integers(0, 25, 80), 60)
    if seed % 2:
        starts, ends = np.sort(starts), np.sort(ends)
        ends = np.maximum(starts, ends)
    found = held.slide(starts, ends).partials
    assert found == ["".join(held.partials[a:b]) for a, b in zip(starts, ends, strict=True)]


def test_windows_that_move_on_combine_a_cell_three_times_at_most(joined: Joined) -> None:
    held = column(1000)
    ends = np.arange(1, 1001)
    # Two groups, one after the other: the second begins anew.
    starts = np.where(ends <= 500, np.maximum(ends - 200, 0), np.maximum(ends - 200, 500))
    joined.combined = 0
    held.slide(starts, ends)
    assert joined.combined <= 3 * 1000


class Fussy(Joined):
    """Raises what users' code raises."""

    name = "fussy"

    def lift(self, value: Any) -> Any:
        return {1: "one"}[value]

    def lower(self, partial: Any) -> Any:
        raise TypeError("no answer")


@pytest.mark.parametrize(
    ("values", "kind", "note"),
    [
        ([1, 2], KeyError, "the aggregate 'fussy' raised this while it took in 2"),
        ([1, 1], TypeError, "the aggregate 'fussy' raised this lowering 'oneone'"),
    ],
)
def test_an_aggregate_that_raises_is_named(values: list[int], kind: type, note: str) -> None:
    register(Fussy())
    try:
        rows = pa.table({"ts": [0, 1], "v": values})
        with pytest.raises(kind) as caught:
            muntin.aggregate(rows, "SELECT fussy(v) AS f FROM s [RANGE 5 SLIDE 5]", time="ts")
    finally:
        unregister("fussy")
    assert caught.value.__notes__ == [note]
