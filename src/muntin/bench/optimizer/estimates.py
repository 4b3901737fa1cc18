"""Estimated against measured throughput, by technique: the thesis's Figures 47 and 48.

Section 7.3.4 of "Algorithms and Optimizations for Incremental Window-Based Aggregations". A plan's
trees run one after another in compiled loops: rows go into slices, slices through the technique.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from muntin.aggregates import Part, resolve
from muntin.aggregates.columns import empty
from muntin.aggregators import Aggregator, create
from muntin.bench.optimizer.fit import deviation, processor_seconds
from muntin.bench.report import Check, Section
from muntin.optimizer.costs import TECHNIQUES, Technique, WindowQuery
from muntin.optimizer.costs_machine import MachineCosts, calibrate
from muntin.optimizer.costs_omega import whole
from muntin.optimizer.weave_share import weave_share
from muntin.optimizer.weaving import Weaving

# Queries of one slide answer at every edge of their tree, which is what a technique's loop does;
# slides that share no edges end in trees of their own where rows are few.
LOADS: dict[str, tuple[float, tuple[WindowQuery, ...]]] = {
    f"{len(slides)} slides, {len(overlaps)} ranges up to {max(overlaps)}": (
        rate,
        tuple(WindowQuery(slide * overlap, slide) for slide in slides for overlap in overlaps),
    )
    for rate, slides, overlaps in (
        (4.0, (8,), (12,)),
        (2.0, (10,), (5, 20, 60)),
        (0.5, (16,), tuple(range(2, 26, 2))),
        (0.1, (7, 11), (3, 40)),
        (0.1, (13, 17, 19), (4, 10, 30, 100)),
        (0.2, (10, 20, 40), (400,)),
    )
}


def estimate_sections(ticks: int, repeats: int) -> tuple[list[Section], list[Check]]:
    """Every load by every technique, beside what the machine's costs say."""
    costs = calibrate()
    rows, every = [], []
    for name, (rate, queries) in LOADS.items():
        for technique in TECHNIQUES:
            plan = weave_share(queries, rate, technique)
            if not _at_every_edge(plan, queries):
                continue
            work = partial(_run, _prepared(plan, queries, ticks))
            measured = processor_seconds({"plan": work}, repeats)["plan"]
            estimated = costs.seconds(plan) * ticks
            every.append((estimated, measured))
            shown = (f"{ticks / each / 1e6:.3g}" for each in (estimated, measured))
            rows.append(
                (name, technique, str(len(plan.trees)), *shown, f"{measured / estimated - 1:+.0%}")
            )
    off = deviation(*zip(*every, strict=True))
    columns = ("queries", "technique", "trees", "estimated", "measured", "estimate is off by")
    sections = [
        Section(
            "estimated against measured throughput, million ticks a second", columns, tuple(rows)
        ),
        _constants(costs),
    ]
    promise = "estimated against measured throughput, techniques, deviation"
    return sections, [Check(promise, 22, 100 * off, "%")]


def _constants(costs: MachineCosts) -> Section:
    rows = [
        (technique, *(f"{1e9 * each:.2f}" for each in (found.edge, found.operation, found.answer)))
        for technique, found in costs.techniques.items()
    ]
    title = (
        f"what a technique takes, in nanoseconds; a row into a slice takes {1e9 * costs.row:.2f}"
    )
    return Section(title, ("technique", "an edge", "an operation", "an answer"), tuple(rows))


def _at_every_edge(plan: Weaving, queries: Sequence[WindowQuery]) -> bool:
    """Whether panes would answer at every edge as the loop does; others keep up with all anyway."""
    alike = all(len({queries[each].slide for each in tree}) == 1 for tree in plan.trees)
    return plan.technique != "panes" or alike


def _prepared(
    plan: Weaving, queries: Sequence[WindowQuery], ticks: int
) -> list[Callable[[], object]]:
    """For each tree: its rows into slices, and its slices through the technique."""
    random = np.random.default_rng(3)
    works: list[Callable[[], object]] = []
    for tree, cost in zip(plan.trees, plan.costs, strict=True):
        slices = round(ticks * cost.edges)
        rows = pa.array(random.random(round(ticks * plan.rate)))
        cells = np.arange(len(rows)) * slices // len(rows)
        column = empty(Part("sum", (pa.float64(),)), slices)
        works.append(partial(column.update, cells, (rows,)))
        works.append(
            partial(_window(plan.technique, tree, queries, cost.edges).run, random.random(slices))
        )
    return works


def _window(
    technique: Technique, tree: Sequence[int], queries: Sequence[WindowQuery], edges: float
) -> Aggregator:
    ranges = whole([edges * queries[each].range for each in tree]).astype(np.int64)
    name = "max" if technique == "slickdeque_noninv" else "sum"
    return create(technique, resolve(name, [pa.float64()]), ranges=sorted(set(ranges.tolist())))


def _run(works: Sequence[Callable[[], object]]) -> None:
    for work in works:
        work()
