"""Estimated against measured throughput of whole plans: Figures 47 and 48.

Section 7.3.4 of "Algorithms and Optimizations for Incremental Window-Based Aggregations", with the
parameters of its Table 13: 100 queries, slides that divide 1,000, ranges up to 10,000 slides. The
estimate is the inverse of a plan's cost; both are scaled so that their largest are equal. A plan's
trees run in compiled loops, for about as long each as they are given, and what a time unit takes is
worked out from that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import numpy as np
import pyarrow as pa

from muntin.aggregates import Part as Partial
from muntin.aggregates import ResolvedAggregate, resolve
from muntin.aggregates.columns.by_part import empty
from muntin.aggregators import Aggregator, create
from muntin.planner.costs.formula import TECHNIQUES, Technique, WindowQuery
from muntin.planner.costs.omega import whole
from muntin.planner.trees.tri_weave import tri_weave
from muntin.planner.trees.weave_share import weave_share
from muntin.planner.trees.weaving import Weaving
from muntin.testing.workload import generate
from muntin_bench.papers.claims import Claim, Part, at_most
from muntin_bench.report import Section

QUERIES, MAX_SLIDE, OVERLAP, RATE = 100, 1000, 10_000, 1.0
OPTIMIZERS: Mapping[str, tuple[int, float, Callable[..., Weaving]]] = {
    "WeaveShare": (47, 0.31, weave_share),
    "TriWeave": (48, 0.14, tri_weave),
}
_ROWS = 1 << 16
# Estimates may be off by so many times what the thesis's are.
_SLACK = 1.5


def figures_47_48(budget: float, overlap: int = OVERLAP, seed: int = 0) -> Part:
    """Every technique under both optimizers."""
    load = generate(QUERIES, MAX_SLIDE, RATE, 0.0, overlap, "factors", seed=seed)
    row = row_seconds()
    sections, claims = [], []
    for name, (figure, thesis, optimize) in OPTIMIZERS.items():
        plans = {each: optimize(load.queries, load.rate, each) for each in TECHNIQUES}
        measured = {
            technique: 1 / plan_seconds(plan, load.queries, row, budget)
            for technique, plan in plans.items()
        }
        estimated = {technique: 1 / plan.total for technique, plan in plans.items()}
        rows = tuple(
            (
                technique,
                str(len(plans[technique].trees)),
                f"{estimated[technique] / max(estimated.values()):.3g}",
                f"{measured[technique] / max(measured.values()):.3g}",
                f"{measured[technique]:,.0f}",
            )
            for technique in TECHNIQUES
        )
        columns = ("technique", "trees", "estimated, scaled", "measured, scaled", "units/s")
        sections.append(Section(f"Figure {figure}: throughput of {name}'s plans", columns, rows))
        claims += _claims(name, figure, thesis, estimated, measured)
    return Part(tuple(sections), tuple(claims))


def deviation(estimated: Mapping[Technique, float], measured: Mapping[Technique, float]) -> float:
    """How far apart the two are where their largest are made equal, on average.

    >>> deviation({"panes": 1.0, "flatfit": 4.0}, {"panes": 15.0, "flatfit": 40.0})
    0.25
    """
    scale = max(measured.values()) / max(estimated.values())
    return fmean(abs(measured[each] / (scale * estimated[each]) - 1) for each in estimated)


def distance(estimated: Mapping[Technique, float], measured: Mapping[Technique, float]) -> float:
    """The same, as a share of the largest: how far apart bars of a figure are.

    >>> distance({"panes": 1.0, "flatfit": 4.0}, {"panes": 20.0, "flatfit": 40.0})
    0.125
    """
    most, largest = max(estimated.values()), max(measured.values())
    return fmean(abs(measured[each] / largest - estimated[each] / most) for each in estimated)


def _claims(
    name: str,
    figure: int,
    thesis: float,
    estimated: Mapping[Technique, float],
    measured: Mapping[Technique, float],
) -> list[Claim]:
    """The thesis does not say what its percentages are of, so both readings are compared."""
    where = f"Figure {figure}"
    orders = [sorted(each, key=lambda one: each[one]) for each in (estimated, measured)]
    return [
        Claim(
            where,
            f"{name}: techniques in order of throughput as estimated",
            " < ".join(orders[0]),
            " < ".join(orders[1]),
            orders[0] == orders[1],
        ),
        at_most(
            where,
            f"{name}: estimated and measured differ by, of the largest",
            thesis,
            distance(estimated, measured),
            ".0%",
            _SLACK,
        ),
        at_most(
            where,
            f"{name}: estimated and measured differ by, of the estimate",
            thesis,
            deviation(estimated, measured),
            ".0%",
            _SLACK,
        ),
    ]


def plan_seconds(plan: Weaving, queries: Sequence[WindowQuery], row: float, budget: float) -> float:
    """Seconds that a time unit takes: rows into slices, and slices through the technique."""
    total = plan.combined * row
    for tree, cost in zip(plan.trees, plan.costs, strict=True):
        # What makes a tree's partials: rows, or combines of partials made in common.
        total += cost.partial * row
        own = [queries[each] for each in tree]
        share = budget / len(plan.trees)
        if plan.technique == "panes":
            # A query reads its partials only when its window ends.
            total += sum(
                _slide_seconds(_window("panes", [each], cost.edges), share / len(own)) / each.slide
                for each in own
            )
        else:
            total += cost.edges * _slide_seconds(_window(plan.technique, own, cost.edges), share)
    return total


def row_seconds() -> float:
    """Seconds that a row takes into its slice."""
    column = empty(Partial("sum", (pa.float64(),)), _ROWS // 16)
    rows, cells = pa.array(np.ones(_ROWS)), np.arange(_ROWS) // 16
    column.update(cells, (rows,))
    begin = time.process_time()
    for _ in range(5):
        column.update(cells, (rows,))
    return (time.process_time() - begin) / (5 * _ROWS)


def _window(technique: Technique, queries: Sequence[WindowQuery], edges: float) -> Aggregator:
    name = "sum" if technique == "slickdeque_inv" else "max"
    return window_of(technique, queries, edges, resolve(name, [pa.int64()]))


def window_of(
    technique: Technique,
    queries: Sequence[WindowQuery],
    edges: float,
    aggregate: ResolvedAggregate,
) -> Aggregator:
    """The structure that answers queries of a tree with so many edges per time unit."""
    ranges = whole([edges * each.range for each in queries]).astype(np.int64)
    return create(technique, aggregate, ranges=sorted(set(ranges.tolist())))


def _slide_seconds(window: Aggregator, budget: float) -> float:
    """Seconds a slide, by doubling until they add up to half of what is given."""
    random = np.random.default_rng(0)
    # A deque has its usual length once some values have gone through.
    window.run(random.integers(-(10**6), 10**6, 64))
    steps = 1
    while True:
        values = random.integers(-(10**6), 10**6, steps)
        begin = time.process_time()
        window.run(values)
        taken = time.process_time() - begin
        if taken > budget / 2 or steps >= _ROWS:
            return taken / steps
        steps *= 4
