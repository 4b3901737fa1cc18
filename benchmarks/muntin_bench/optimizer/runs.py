"""Workloads in the local engine by plans that share all, nothing, or what the optimizer says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import exp

import numpy as np
import pyarrow as pa

from muntin.engine import LocalEngine
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.planner.costs.formula import WindowQuery, tree_classes
from muntin.planner.edges.estimate import estimate_edge_rate
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.queries import queries
from muntin_bench.optimizer.fit import processor_seconds

SIDES: tuple[OptimizerName, ...] = ("auto", "all_share", "no_share")
# Plans with a row worth more or fewer steps than the optimizer takes.
TRIALS = (1, 2, 5, 10, 20, 50, 100)
# The engine looks windows up by halves where slices outnumber them by so much.
_HALVES = 16
# Loads with more windows than this for every row are run over fewer rows.
_WINDOWS = 8
# Kinds of work that explain what a plan takes.
WORK = ("plan", "tree", "row into a tree", "slice that holds rows", "step over a slice", "window")


@dataclass(frozen=True)
class EngineLoad:
    """Queries `(range, slide)` of one aggregate over so many rows per tick."""

    name: str
    aggregate: str
    windows: tuple[tuple[int, int], ...]
    rate: float

    @property
    def sql(self) -> str:
        """The queries as statements."""
        return "; ".join(
            f"SELECT {self.aggregate}(v) AS a FROM s [RANGE {range_} SLIDE {slide}]"
            for range_, slide in self.windows
        )


@dataclass(frozen=True)
class Run:
    """A plan that ran: its trees, the work it has by `WORK`, and the seconds it took."""

    load: EngineLoad
    side: str
    trees: int
    work: tuple[float, ...]
    seconds: float


def engine_loads() -> list[EngineLoad]:
    """Windows that share few edges, and some where one fine slide cuts many coarse windows."""
    random = np.random.default_rng(5)
    slides = random.integers(10, 200, 24).tolist()
    overlaps = random.integers(1, 10, 24).tolist()
    sets = {
        "2 primes": tuple((10 * slide, slide) for slide in (7, 11)),
        "8 primes": tuple((5 * slide, slide) for slide in (7, 11, 13, 17, 19, 23, 29, 31)),
        "24 at random": tuple((a * b, a) for a, b in zip(slides, overlaps, strict=True)),
        "97, one fine": (
            (2, 1),
            *((8 * overlap, 8) for overlap in range(2, 50)),
            *((16 * overlap, 16) for overlap in range(2, 50)),
        ),
    }
    return [
        EngineLoad(name, aggregate, windows, rate)
        for aggregate, (name, windows), rate in product(
            ("sum", "max"), sets.items(), (20, 2, 0.2, 0.02)
        )
    ]


def stream(rows: int, rate: float) -> pa.Table:
    """Rows at times drawn evenly, in order."""
    random = np.random.default_rng(1)
    times = np.sort(random.integers(0, round(rows / rate), rows))
    return pa.table({"ts": times, "v": random.random(rows)})


def run_loads(loads: Iterable[EngineLoad], rows: int, repeats: int) -> list[dict[str, Run]]:
    """Every load by every plan; sides whose plans are equal ran together."""
    found = []
    for load in loads:
        per_row = sum(1 / slide for _, slide in load.windows) / load.rate
        table = stream(round(rows * min(1, _WINDOWS / per_row)), load.rate)
        plans = _plans(load, table.schema)
        first = {
            side: next(other for other in plans if plans[other] == plan)
            for side, plan in plans.items()
        }
        taken = processor_seconds(
            {side: partial(_answer, plans[side], table) for side in dict.fromkeys(first.values())},
            repeats,
        )
        found.append(
            {
                side: Run(
                    load,
                    side,
                    len(plan.slicings),
                    work(plan, load, table.num_rows),
                    taken[first[side]],
                )
                for side, plan in plans.items()
            }
        )
    return found


def _plans(load: EngineLoad, schema: pa.Schema) -> dict[str, SharedPlan]:
    parsed = queries(load.sql)
    sharers: dict[str, Optimizer] = {side: Optimizer(side, load.rate) for side in SIDES}
    for steps in TRIALS:
        # The optimizer multiplies the rate by its steps per row: another rate stands for others.
        sharers[str(steps)] = Optimizer("auto", load.rate, steps)
    return {
        side: replace(build_plan(parsed, schema, "ts", sharer=sharer), why="")
        for side, sharer in sharers.items()
    }


def _answer(plan: SharedPlan, table: pa.Table) -> object:
    engine = LocalEngine(plan)
    engine.feed(table)
    return engine.close()


def work(plan: SharedPlan, load: EngineLoad, rows: int) -> tuple[float, ...]:
    """What a plan has to do, by `WORK`; estimated, as an optimizer has to.

    Rows come at random, so that a stretch of length l holds one with a chance of
    1 - exp(-rate · l). A query steps over the slices of its tree that hold rows.
    """
    span = rows / load.rate
    slices, steps, windows = 0.0, 0.0, 0.0
    for place in range(len(plan.slicings)):
        tree = [
            WindowQuery(final.window.range, final.window.period, final.window.phase)
            for final in plan.finals
            if plan.partials[final.partials].slicing == place
        ]
        edges = estimate_edge_rate(tree_classes(tree)).rate
        held = span * edges * (1 - exp(-load.rate / edges))
        slices += held
        for each in tree:
            answered = span / each.slide * (1 - exp(-load.rate * each.range))
            steps += min(held, _HALVES * answered)
            windows += answered
    trees = len(plan.slicings)
    return 1.0, float(trees), float(rows * trees), slices, steps, windows
