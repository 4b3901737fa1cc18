"""Batches as stage A sees them, made by hand: a plan, the values of rows, and their slices."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.engine.rows.columns import Reader
from muntin.engine.rows.entries import Cut
from muntin.engine.rows.selection import Scope
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.queries import queries

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64(), "w": pa.int64()})


def planned(*selects: str, **options: Any) -> SharedPlan:
    """A plan of queries, each given from SELECT on with `{window}` for its window."""
    window = "FROM s [RANGE 10 SLIDE 5]"
    text = ";".join(select.format(window=window) for select in selects)
    return build_plan(queries(text), SCHEMA, "t", **options)


def table(seed: int, rows: int, *, in_order: bool = True) -> pa.Table:
    """Random rows, some of them NULL."""
    rng = random.Random(seed)
    ticks = [rng.randrange(40) for _ in range(rows)]
    columns = {
        "t": sorted(ticks) if in_order else ticks,
        "k": [rng.choice(["a", "b", None]) for _ in range(rows)],
        "v": [rng.choice([None, *range(8)]) for _ in range(rows)],
        "w": [rng.choice([None, *range(8)]) for _ in range(rows)],
    }
    return pa.table(columns, SCHEMA)


def scope_of(plan: SharedPlan, rows: pa.Table) -> Scope:
    """The values that the plan reads of some rows."""
    return Reader(plan, 0, {})(rows).scope


def cut_of(rows: pa.Table) -> Cut:
    """Slices of five ticks."""
    ticks = rows["t"].to_numpy()
    starts, slices = np.unique(ticks // 5 * 5, return_inverse=True)
    return Cut(slices.astype(np.int64), starts, ticks)
