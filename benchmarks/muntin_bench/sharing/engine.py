"""A workload prepared for a strategy, run from Arrow in memory to all results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin.engine import LocalEngine, Progress, sample_rows
from muntin.plan import SharedPlan, Timeline
from muntin.plan.nodes import Strategy
from muntin.planner import Draft, plan_draft
from muntin.planner.steps.bind import bind
from muntin.planner.steps.cells import undecided
from muntin.planner.steps.weigh import weigh
from muntin.queries import queries
from muntin.windows.edges import Slicing
from muntin_bench.sharing.data import Market
from muntin_bench.sharing.rows import Columns, sums
from muntin_bench.sharing.workloads import Workload

STRATEGIES: tuple[Strategy, ...] = ("unshared", "slices", "fragments", "shards", "cells")


@dataclass(frozen=True)
class Prepared:
    """A plan for a workload over a market, and how long it took to make from SQL text."""

    market: Market
    plan: SharedPlan
    planning: float

    def run(self) -> tuple[dict[str, pa.Table], Progress]:
        """All results, and what was done for them."""
        engine = LocalEngine(self.plan, tables=self.market.tables)
        engine.feed(self.market.trades)
        # All results are there before what was done is asked for.
        results = engine.close()
        return results, engine.progress()


def prepare(
    market: Market,
    workload: Workload,
    strategy: Strategy = "cells",
    slicing: Slicing = "pairs",
    *,
    grouped: bool = False,
) -> Prepared:
    """Parse and plan the queries of a workload."""
    text = workload.sql(grouped=grouped)
    begin = time.perf_counter()
    plan = plan_text(market, text, market.trades.schema, strategy, slicing)
    return Prepared(market, plan, time.perf_counter() - begin)


def plan_text(
    market: Market,
    text: str,
    schema: pa.Schema,
    strategy: Strategy = "cells",
    slicing: Slicing = "pairs",
) -> SharedPlan:
    """The plan of queries over the trades of a market, some of which it looks at."""
    draft = bind(
        Draft(
            queries(text),
            schema,
            Timeline.of(schema, "ts"),
            tables=market.schemas,
            strategy=strategy,
            slicing=slicing,
        )
    )
    sample = sample_rows(market.trades, undecided(draft), market.tables)
    return plan_draft(replace(draft, sample=sample), since=weigh)


@compiled
def total_value(prices: npt.NDArray[np.float64], volumes: npt.NDArray[np.int64]) -> float:
    """The plain compiled pass that others are compared with."""
    total = 0.0
    for i in range(len(prices)):
        total += prices[i] * volumes[i]
    return total


def plain_pass(market: Market) -> float:
    """Sum up price × vol of all trades with :func:`total_value`."""
    prices, volumes = (market.trades.column(name).to_numpy() for name in ("price", "vol"))
    return float(total_value(prices, volumes))


def check_rows(results: Mapping[str, pa.Table], workload: Workload, columns: Columns) -> int:
    """Compare sums with exact ones of the rows themselves, for a few queries, to the last bit.

    Returns how many windows were compared; raises AssertionError at the first query that differs.
    """
    compared = 0
    for query in workload.queries[:: max(workload.size // 4, 1)]:
        starts, values = sums(query, columns)
        result = results[query.name]
        got = result.column("window_start").cast(pa.int64()).to_pylist()
        assert got == starts, f"{workload.name}, {query.name}: windows {got}, not {starts}"
        got = result.column("value").to_pylist()
        assert got == values, f"{workload.name}, {query.name}: sums {got}, not {values}"
        compared += len(starts)
    return compared


def check_equal(
    results: Mapping[str, pa.Table], others: Mapping[str, pa.Table], about: str
) -> None:
    """Refuse two strategies that differ by a bit."""
    assert results.keys() == others.keys(), about
    for name, table in results.items():
        assert table.equals(others[name]), f"{about}: {name} is {others[name]}, not {table}"
