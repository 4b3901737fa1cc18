"""Throughput that the machine's costs estimate, against what is measured, by technique.

Loads are our own; `papers/thesis/estimated_rates.py` has the thesis's Figures 47 and 48. A plan's
trees run one after another in compiled loops: rows go into slices, slices through the technique.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from muntin.aggregates import Part, ResolvedAggregate, resolve
from muntin.aggregates.columns.by_part import empty
from muntin.planner.costs.formula import TECHNIQUES, Technique, WindowQuery
from muntin.planner.costs.machine import PARTIALS, MachineCosts, costs_of, trials, warm_seconds
from muntin.planner.trees.weave_share import weave_share
from muntin.planner.trees.weaving import Weaving
from muntin_bench.optimizer.fit import deviation
from muntin_bench.papers.thesis.estimated_rates import window_of
from muntin_bench.report import Check, Section

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


# The name of a load and the technique that answers it.
Case: TypeAlias = tuple[str, Technique]


def estimate_sections(ticks: int, repeats: int) -> tuple[list[Section], list[Check]]:
    """Every load by every technique, beside what the machine's costs say.

    Trials of the calibration and plans take turns in the same rounds, so that whatever slows the
    machine down slows both. No trial has the ranges of a load.
    """
    plans = _plans()
    calibration = trials()
    works: dict[Hashable, Callable[[], object]] = {
        case: partial(_run, _prepared(plan, LOADS[case[0]][1], ticks))
        for case, plan in plans.items()
    }
    works.update(calibration.items())
    # In a process that has not run them before all take longer, some more than others.
    warm_seconds(works, 1)
    seconds = warm_seconds(works, repeats)
    costs = costs_of({trial: seconds[trial] for trial in calibration})
    pairs = {case: (costs.seconds(plan) * ticks, seconds[case]) for case, plan in plans.items()}
    rows = [
        (
            *case,
            str(len(plans[case].trees)),
            *(f"{ticks / each / 1e6:.3g}" for each in (estimated, measured)),
            f"{measured / estimated - 1:+.0%}",
        )
        for case, (estimated, measured) in pairs.items()
    ]
    columns = ("queries", "technique", "trees", "estimated", "measured", "estimate is off by")
    sections = [
        Section(
            "estimated against measured throughput, million ticks per second", columns, tuple(rows)
        ),
        _by_technique(pairs),
        _constants(costs),
    ]
    promise = "estimated against measured throughput, techniques, deviation"
    off = deviation(*zip(*pairs.values(), strict=True))
    return sections, [Check(promise, 22, 100 * off, "%")]


def _plans() -> dict[Case, Weaving]:
    plans = {
        (name, technique): weave_share(queries, rate, technique)
        for name, (rate, queries) in LOADS.items()
        for technique in TECHNIQUES
    }
    return {case: plan for case, plan in plans.items() if _at_every_edge(plan, LOADS[case[0]][1])}


def _by_technique(pairs: Mapping[Case, tuple[float, float]]) -> Section:
    rows = []
    for technique in dict.fromkeys(technique for _, technique in pairs):
        own = [pair for (_, each), pair in pairs.items() if each == technique]
        bias = fmean(measured / estimated - 1 for estimated, measured in own)
        rows.append((technique, f"{deviation(*zip(*own, strict=True)):.0%}", f"{bias:+.0%}"))
    columns = ("technique", "estimate is off by", "with its sign")
    return Section("by technique, on average over loads", columns, tuple(rows))


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
    """For each tree and batch: rows into slices, and these through the technique.

    Batches are about as large as a trial, so that calls and caches weigh as much in both.
    """
    random = np.random.default_rng(3)
    works: list[Callable[[], object]] = []
    for tree, cost in zip(plan.trees, plan.costs, strict=True):
        batches = max(1, round(ticks * cost.edges / PARTIALS))
        slices = round(ticks * cost.edges / batches)
        rows = pa.array(random.random(round(ticks * plan.rate / batches)))
        cells = np.arange(len(rows)) * slices // len(rows)
        column = empty(Part("sum", (pa.float64(),)), slices)
        own = [queries[each] for each in tree]
        window = window_of(plan.technique, own, cost.edges, _aggregate(plan.technique))
        batch: list[Callable[[], object]] = [
            partial(column.update, cells, (rows,)),
            partial(window.run, random.random(slices)),
        ]
        works += batches * batch
    return works


def _aggregate(technique: Technique) -> ResolvedAggregate:
    name = "max" if technique == "slickdeque_noninv" else "sum"
    return resolve(name, [pa.float64()])


def _run(works: Sequence[Callable[[], object]]) -> None:
    for work in works:
        work()
