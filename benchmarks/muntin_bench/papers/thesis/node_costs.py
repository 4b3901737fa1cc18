"""Costs of the nodes of a four-node system by placement: Figure 41.

Section 6.6.2.2 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from muntin.planner.placement.optimizers import METHODS, place
from muntin.testing.workload import generate
from muntin_bench.papers.claims import Claim, Part, near
from muntin_bench.report import Section

NODES = 4
QUERIES, MAX_SLIDE, RATE, SKEW, OVERLAP = 250, 25, 100, 1, 100
# As low as the lowest, or balanced, within the first; not balanced beyond the second.
_NEAR, _UNEVEN = 1.1, 1.25
_LOW_TOTAL, _BALANCED = ("W_TN", "WG_TN"), ("W_I", "WG_I")


@dataclass(frozen=True)
class Costs:
    """What the nodes cost under one method, the most expensive first."""

    nodes: tuple[float, ...]

    @property
    def total(self) -> float:
        """All nodes together."""
        return sum(self.nodes)

    @property
    def imbalance(self) -> float:
        """The most expensive node over the average one: 1 is balanced."""
        return max(self.nodes) / fmean(self.nodes)


def figure_41(seeds: Sequence[int], methods: Sequence[str] = METHODS) -> Part:
    """Node costs of all methods for the first seed, and what holds on average over all of them.

    Queries with the same edges are woven first, a step that the thesis leaves open; and not.
    """
    sections, claims = [], []
    for merge, how in ((True, "queries of equal slides woven first"), (False, "one by one")):
        every = [{method: costs(method, seed, merge) for method in methods} for seed in seeds]
        rows = tuple(
            (
                method,
                *(f"{cost:,.0f}" for cost in found.nodes),
                f"{found.total:,.0f}",
                f"{found.imbalance:.2f}",
            )
            for method, found in every[0].items()
        )
        nodes = (f"node {number}" for number in range(1, NODES + 1))
        title = f"Figure 41: costs of {NODES} nodes, {QUERIES} queries, {how}, seed {seeds[0]}"
        sections.append(Section(title, ("method", *nodes, "total", "highest / average"), rows))
        claims += _claims(every, how)
    return Part(tuple(sections), tuple(claims))


def costs(method: str, seed: int, merge: bool) -> Costs:
    """One method on the thesis's parameters."""
    load = generate(QUERIES, MAX_SLIDE, RATE, SKEW, OVERLAP, seed=seed)
    placed = place(load.queries, NODES, load.rate, "panes", method, seed=seed, merge=merge)
    return Costs(tuple(sorted(placed.node_costs.values(), reverse=True)))


def _claims(every: Sequence[Mapping[str, Costs]], how: str) -> list[Claim]:
    def mean(method: str, what: str) -> float:
        return fmean(getattr(found[method], what) for found in every)

    lowest = min(mean(method, "total") for method in every[0])
    where = f"Figure 41, {how}"
    totals = [
        near(where, f"{each}: total over the lowest", 1, mean(each, "total") / lowest, _NEAR)
        for each in (*_LOW_TOTAL, "WG_I")
    ]
    balanced = [
        near(where, f"{each}: highest node over average", 1, mean(each, "imbalance"), _NEAR)
        for each in _BALANCED
    ]
    uneven = [
        Claim(
            where,
            f"{each}: highest node over average",
            "far above 1",
            f"{mean(each, 'imbalance'):.2f}",
            mean(each, "imbalance") > _UNEVEN,
        )
        for each in _LOW_TOTAL
    ]
    return [*totals, *balanced, *uneven]
