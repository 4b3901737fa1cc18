"""What a shared plan costs: C = mλ + Σ EᵢΩᵢ operations per time unit.

λ is the rate of rows, m the number of trees, Eᵢ the edges per time unit of tree i and Ωᵢ its
final operations per edge. Equation 7.1 of "Algorithms and Optimizations for Incremental
Window-Based Aggregations".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from muntin.errors import WindowError
from muntin.planner.costs.omega import TECHNIQUES, Technique, check_technique, omega
from muntin.planner.edges.estimate import estimate_edge_rate
from muntin.windows.edges import TIME_LIMIT, EdgeClass, Slicing, edge_classes, reduce_classes

__all__ = [
    "TECHNIQUES",
    "Technique",
    "TreeCost",
    "WindowQuery",
    "check_rate",
    "omega",
    "plan_cost",
    "tree_classes",
    "tree_cost",
    "unique_queries",
]


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """What the optimizer knows of a query: its window, and how that is sliced.

    Range, slide and phase are whole time units; windows end where (t - phase) mod slide = 0.
    The name does not count when queries are compared: queries with equal windows share all.

    >>> WindowQuery(7, 5).classes, WindowQuery(10, 5, phase=6).phase
    (((5, 0), (5, 3)), 1)
    """

    range: int
    slide: int
    phase: int = 0
    slicing: Slicing = "pairs"
    name: str = ""

    def __post_init__(self) -> None:
        for what, value in (("range", self.range), ("slide", self.slide)):
            if not 0 < value < TIME_LIMIT:
                raise WindowError(
                    f"{what} {value} of query {self.name!r} is out of bounds",
                    hint=f"give a {what} above zero and below 2**62",
                )
        object.__setattr__(self, "phase", self.phase % self.slide)

    @property
    def classes(self) -> tuple[EdgeClass, ...]:
        """The edges that the query cuts, in order."""
        return tuple(sorted(edge_classes(self.range, self.slide, self.phase, self.slicing)))

    @property
    def window(self) -> tuple[int, int, int, Slicing]:
        """What makes two queries the same to a tree."""
        return self.range, self.slide, self.phase, self.slicing

    @property
    def overlap(self) -> float:
        """How many of its windows cover a point in time, on average."""
        return self.range / self.slide


@dataclass(frozen=True, slots=True)
class TreeCost:
    """Operations per time unit of one tree: `partial` to fill slices, edges x omega to answer."""

    partial: float
    edges: float
    omega: float

    @property
    def final(self) -> float:
        """Operations that turn partials into answers."""
        return self.edges * self.omega

    @property
    def total(self) -> float:
        """All operations."""
        return self.partial + self.final


def tree_classes(queries: Iterable[WindowQuery]) -> tuple[EdgeClass, ...]:
    """The edges that a tree of queries cuts, without classes that others hold.

    >>> tree_classes([WindowQuery(6, 2), WindowQuery(8, 4)])
    ((2, 0),)
    """
    return reduce_classes({each for query in queries for each in query.classes})


def unique_queries(queries: Iterable[WindowQuery]) -> list[WindowQuery]:
    """One query per window, the first of each: a tree answers a window once for all who ask."""
    return list({query.window: query for query in reversed(list(queries))}.values())[::-1]


def tree_cost(
    queries: Sequence[WindowQuery],
    rate: float,
    technique: Technique,
    edges: float | None = None,
) -> TreeCost:
    """The cost of one tree that answers all these queries.

    Args:
        queries: The tree's queries; equal windows count once.
        rate: λ, rows per time unit.
        technique: What computes the final answers.
        edges: Edges per time unit, where the caller knows them; counted otherwise, or
            estimated where counting takes too long.

    >>> cost = tree_cost([WindowQuery(6, 2), WindowQuery(8, 4)], rate=10, technique="panes")
    >>> cost, cost.total
    (TreeCost(partial=10.0, edges=0.5, omega=5.0), 12.5)
    """
    check_rate(rate)
    check_technique(technique)
    if edges is None:
        edges = estimate_edge_rate(tree_classes(queries)).rate
    unique = unique_queries(queries)
    partials = edges * np.array([query.range for query in unique], dtype=np.float64)
    return TreeCost(
        float(rate), edges, omega(technique, partials, [query.overlap for query in unique])
    )


def plan_cost(trees: Iterable[Sequence[WindowQuery]], rate: float, technique: Technique) -> float:
    """The cost of a plan of trees that each aggregate the stream: the sum of theirs.

    >>> plan_cost([[WindowQuery(6, 2)], [WindowQuery(8, 4)]], rate=10, technique="panes")
    22.0
    """
    return float(sum(tree_cost(tree, rate, technique).total for tree in trees))


def check_rate(rate: float) -> None:
    """Refuses a rate that no stream has."""
    if not (isfinite(rate) and rate >= 0):
        raise WindowError(f"rate must be 0 or more, not {rate}", hint="give rows per time unit")
