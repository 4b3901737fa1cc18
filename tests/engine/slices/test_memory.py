"""Slices that finals move on by take little more memory than slices that are merged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.planner import build_plan
from muntin.queries import queries

GROUPS = 1000
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.float64())])
AGGREGATES = (
    "count(*) AS a",
    "sum(v) AS a",
    "max(v) AS a",
    "avg(v) AS a, stddev_pop(v) AS b, min(v) AS c",
    "first(v) AS a",
    "max_by(k, v) AS a",
)


def state_bytes(select: str, slices: int, where: str, *, moves: bool) -> list[int]:
    """The bytes of the state after each of some slides, from a full window on."""
    text = ";".join(
        f"CREATE QUERY q{i} AS SELECT k, {select} FROM s [RANGE {slices} SLIDE 1]{each} GROUP BY k"
        for i, each in enumerate(where.split(";"))
    )
    engine = LocalEngine(build_plan(queries(text), SCHEMA, "t"), 0)
    engine._state.moves = moves
    random = np.random.default_rng(slices)
    keys = pa.array([f"{number:06}" for number in range(GROUPS)])
    found = []
    for tick in range(2 * slices):
        values = pa.array(random.random(GROUPS) * 100)
        times = pa.array(np.full(GROUPS, tick))
        engine.feed(pa.table([times, keys, values], schema=SCHEMA))
        if tick > slices:
            found.append(engine.progress().state_bytes)
    (store,) = engine._state.stores
    assert (store.moving is not None) == moves
    return found


@pytest.mark.parametrize("select", AGGREGATES)
@pytest.mark.parametrize("slices", [10, 30])
def test_a_group_and_slice_takes_at_most_1_3_times_as_much(select: str, slices: int) -> None:
    merged = state_bytes(select, slices, "", moves=False)
    moving = state_bytes(select, slices, "", moves=True)
    ratios = [a / b for a, b in zip(moving, merged, strict=True)]
    assert max(ratios) < 1.3


def test_so_does_a_group_whose_rows_fall_into_several_cells() -> None:
    where = " WHERE v > 30; WHERE v > 60"
    merged = state_bytes("sum(v) AS a", 30, where, moves=False)
    moving = state_bytes("sum(v) AS a", 30, where, moves=True)
    assert max(a / b for a, b in zip(moving, merged, strict=True)) < 1.3
