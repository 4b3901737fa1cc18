"""What the distributed optimizers cost on workloads by the parameters of the thesis's Table 8.

Section 6.6 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Literal, TypeAlias

from muntin.planner.placement.optimizers import METHODS, place
from muntin.testing.workload import Slides, Workload, generate

Measure: TypeAlias = Literal["total", "maximum"]

# Ours, beside the thirteen: local improvement after the two that win.
IMPROVED = {"WG_TN, improved": "WG_TN", "WG_I, improved": "WG_I"}
# Best within so much: sums in another order differ in the last digits.
_EQUAL = 1 + 1e-9


@dataclass(frozen=True)
class Combination:
    """One row of parameters of Table 8."""

    queries: int
    nodes: int
    rate: float
    max_slide: int
    skew: float
    overlap: int
    slides: Slides


@dataclass(frozen=True)
class Outcome:
    """What one method made of one combination: costs, and seconds to get there."""

    total: float
    maximum: float
    seconds: float


Outcomes = Sequence[dict[str, Outcome]]


def table_8() -> list[Combination]:
    """All 256 combinations."""
    slides: tuple[Slides, ...] = ("normal", "prime")
    return [
        Combination(*each)
        for each in product(
            (250, 500), (4, 8, 16, 32), (10, 100), (25, 50), (0, 1), (10, 100), slides
        )
    ]


def load_of(each: Combination, seed: int) -> Workload:
    """A workload by the parameters of a combination."""
    return generate(
        each.queries,
        each.max_slide,
        each.rate,
        each.skew,
        each.overlap,
        each.slides,
        seed=seed,
    )


def outcomes(
    combinations: Iterable[Combination],
    seed: int = 0,
    methods: Sequence[str] = (*METHODS, *IMPROVED),
    *,
    merge: bool = False,
) -> list[dict[str, Outcome]]:
    """Every method on a workload made for each combination; none sees what another worked out."""
    found = []
    for number, each in enumerate(combinations):
        load = load_of(each, seed + number)
        found.append({name: _outcome(name, load, each.nodes, seed, merge) for name in methods})
    return found


def _outcome(name: str, load: Workload, nodes: int, seed: int, merge: bool) -> Outcome:
    begin = time.perf_counter()
    placed = place(
        load.queries,
        nodes,
        load.rate,
        "panes",
        IMPROVED.get(name, name),
        seed=seed,
        merge=merge,
        improve=name in IMPROVED,
    )
    return Outcome(placed.total_cost, placed.max_cost, time.perf_counter() - begin)


def wins(found: Outcomes, measure: Measure) -> dict[str, float]:
    """In what share of combinations each method is best, alone or with others."""
    return {name: fmean(gap == 0 for gap in own) for name, own in gaps(found, measure).items()}


def gaps(found: Outcomes, measure: Measure) -> dict[str, list[float]]:
    """How far each method is behind the best, relatively, for each combination."""
    behind: dict[str, list[float]] = {name: [] for name in found[0]}
    for each in found:
        costs = {name: getattr(outcome, measure) for name, outcome in each.items()}
        best = min(costs.values())
        for name, cost in costs.items():
            behind[name].append(0.0 if cost <= best * _EQUAL else cost / best - 1)
    return behind
