"""What operators keep takes as much room as its rows, however large a batch was before."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.operators import RowEngine
from muntin.operators.rows import Changes, Rows
from muntin.operators.state.pending import Pending
from muntin.operators.state.row_log import RowLog
from muntin.plan.operators import Difference, Distinct, Node, RowFinal, RowPlan
from operators.random_plans import STREAMS, TIME, leaf
from operators.test_lifetimes import absent, pair

ROWS = 20_000
A, B = leaf("a", 5), leaf("b", 5)
ROOTS: dict[str, Node] = {
    "join": pair(A, B),
    "absent": absent(A, B),
    "distinct": Distinct(A),
    "except": Difference(A, B, "except"),
    "except all": Difference(A, B, "all"),
    "join of absent": pair(absent(A, leaf("b", 3)), B),
}
SHOWN: dict[str, dict[str, Any]] = {
    "changes": {"output": "changes"},
    "final": {"output": "final"},
    "ends": {"slide": 7, "range": 5},
    "entering": {"slide": 7, "range": 5, "show": "istream"},
}


def rows(begin: int, end: int, keys: int) -> pa.Table:
    times = np.sort(np.random.default_rng(begin).integers(begin, end, ROWS))
    numbers = np.arange(ROWS)
    columns = {"ts": times, "k": numbers % keys * 1.0, "s": ["x"] * ROWS, "v": numbers % keys}
    return pa.table(columns)


def size(value: Any) -> int:
    """The bytes of memory that what is kept holds, those around a view among them."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        return int(value.nbytes)
    if isinstance(value, pa.Array):
        return int(value.get_total_buffer_size())
    if isinstance(value, dict):
        return sum(map(size, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size, value))
    if hasattr(value, "STATE"):
        return sum(size(getattr(value, name)) for name in value.STATE)
    if dataclasses.is_dataclass(value):
        return sum(size(getattr(value, each.name)) for each in dataclasses.fields(value))
    return 0


@pytest.mark.parametrize("how", SHOWN)
@pytest.mark.parametrize("kind", ROOTS)
def test_a_large_batch_leaves_nothing_behind(kind: str, how: str) -> None:
    engine = RowEngine(RowPlan(STREAMS, (RowFinal("q", ROOTS[kind], TIME, **SHOWN[how]),)))
    # Most of these rows have ended when their batch has.
    batches = {"a": rows(0, 4000, 3000), "b": rows(1, 4000, 2000)}
    shown = engine.feed(batches, {"a": 4000, "b": 4000})["q"].num_rows
    last = pa.table({"ts": [4001], "k": [1.0], "s": ["x"], "v": [1]})
    few = {"a": last, "b": last.slice(0, 0)}
    shown += engine.feed(few, {"a": 4020, "b": 4020})["q"].num_rows
    assert shown > 50
    assert engine.statistics.kept["q"] < 10
    assert len(engine.snapshot()) < 120_000
    operators = [step.operator for step in engine._graph.steps]
    assert size([operators, list(engine._outputs.values())]) < 120_000


def test_a_small_part_of_a_batch_does_not_hold_it() -> None:
    batch = rows(0, 4000, 3000).combine_chunks()
    columns = tuple(each.chunk(0) for each in batch.columns)
    times = batch["ts"].to_numpy()
    pending, log = Pending(), RowLog(batch.schema.types)
    pending.release(Changes.births(Rows(columns, times, times, times + 5)), 3990)
    log.append(tuple(each.slice(100, 10) for each in columns), 10)
    assert 0 < len(pending) < 100
    assert size(pending) + size(log) < 20_000
