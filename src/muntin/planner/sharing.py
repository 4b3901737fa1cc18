"""How sharing is decided: which queries of a plan share a tree, by what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from muntin.errors import MuntinError, did_you_mean
from muntin.plan.nodes import SharedPlan
from muntin.plan.timeline import Timeline
from muntin.planner.bound import BoundQuery
from muntin.planner.costs.formula import check_rate
from muntin.planner.moves import has_drifted
from muntin.planner.owners import Sharing, kept_owners
from muntin.planner.trees.grove import MOVING, Grove, OptimizerName

__all__ = ["OPTIMIZERS", "STEPS_PER_ROW", "Optimizer", "OptimizerName"]

OPTIMIZERS: tuple[OptimizerName, ...] = get_args(OptimizerName)

# A row that goes into one more tree takes as long as so many operations at an edge: it is put
# into its slice and its cell, where a step is one pass of a compiled loop over sorted slices.
# `muntin bench optimizer` measures it: from 1 (max, many rows per slice) to 16 (sum, one row per
# slice), and of all numbers for both, 10 to 20 give the fastest plans.
STEPS_PER_ROW = 10.0


@dataclass(frozen=True)
class Optimizer:
    """Decides who shares slices; what ``build_plan`` takes as its ``sharer``.

    A tree takes in every row, and steps over its slices for each query: C = mλ + Σ EᵢΩᵢ. More
    trees take in rows more often; fewer trees have more edges for each query to step over.
    A query that joins goes where it adds least. Queries that run already stay in the tree they
    are in; only ``auto`` and ``tri_weave`` move them, with what they have kept, where planning
    from scratch takes at least a tenth off the cost. They look when queries have joined and left,
    and when the rate of rows has become known or changed by a factor of two.

    Args:
        method: ``auto`` and ``weave_share`` weigh the costs; so does ``tri_weave``, which
            aggregates rows once and puts the slices of all trees together from that, where that
            is cheaper. ``all_share`` has one tree for all and ``no_share`` one for each. ``auto``
            and ``tri_weave`` move queries that run, the others do not.
        rate: Rows per tick: a microsecond, or one unit of a plain integer column. If not given,
            it is the one measured; where that is not known either, all share.
        steps_per_row: How many operations at an edge a row into one more tree is worth.

    >>> Optimizer("weaveshare").method
    Traceback (most recent call last):
    ...
    muntin.errors.MuntinError: there is no optimizer 'weaveshare'
    Hint: did you mean weave_share?
    """

    method: OptimizerName = "auto"
    rate: float | None = None
    steps_per_row: float = STEPS_PER_ROW

    def __post_init__(self) -> None:
        if self.method not in OPTIMIZERS:
            raise MuntinError(
                f"there is no optimizer {self.method!r}",
                hint=did_you_mean(str(self.method), OPTIMIZERS)
                or f"use one of {', '.join(OPTIMIZERS)}",
            )
        if self.rate is not None:
            check_rate(self.rate)

    def __call__(
        self, queries: Sequence[BoundQuery], previous: SharedPlan | None, rate: float | None = None
    ) -> Sharing:
        """An owner for each query, at a measured rate where none was given."""
        by_axis = _by_axis(queries)
        kept = kept_owners(queries, previous)
        if len(by_axis) == 1:
            ((measure, _),) = by_axis
            return self._grove(measure, queries, rate).share(kept, previous)
        owners = [""] * len(queries)
        reasons, combined = [], False
        for (measure, _), places in by_axis.items():
            members = [queries[place] for place in places]
            found = self._grove(measure, members, rate).share([kept[place] for place in places])
            reasons.append(found.why)
            combined = combined or found.combined
            for place, owner in zip(places, found.owners, strict=True):
                owners[place] = owner
        why = "; ".join(filter(None, reasons))
        return Sharing(tuple(owners), why, combined=combined)

    def weighs_rate(self, queries: Sequence[BoundQuery]) -> bool:
        """Whether a measured rate of rows matters for queries."""
        return self.rate is None and any(
            measure != "rows" and self._weighs([queries[place] for place in places])
            for (measure, _), places in _by_axis(queries).items()
        )

    def is_due(self, plan: SharedPlan, rate: float | None = None) -> bool:
        """Whether the rate of rows has become known, or another, since a plan was weighed."""
        several = len({final.window for final in plan.finals}) > 1
        if self.method not in MOVING or plan.strategy != "cells" or not several:
            return False
        rate = rate if self.rate is None else self.rate
        if rate is None or len({slicing.identity[:2] for slicing in plan.slicings}) > 1:
            return False
        return plan.weighed is None or has_drifted(plan.weighed, rate)

    def _grove(self, measure: str, queries: Sequence[BoundQuery], rate: float | None) -> Grove:
        if measure == "rows":
            rate = 1.0  # positions of rows are counted row by row
        elif self.rate is not None:
            rate = self.rate
        elif not self._weighs(queries):
            rate = None
        return Grove(self.method, queries, rate, self.steps_per_row)

    def _weighs(self, queries: Sequence[BoundQuery]) -> bool:
        """Whether there is anything to weigh among queries of one axis."""
        several = len({query.query.window for query in queries}) > 1
        return several and self.method in ("auto", "weave_share", "tri_weave")


def _by_axis(queries: Sequence[BoundQuery]) -> dict[tuple[str, Timeline], list[int]]:
    """The places of the queries over each axis."""
    found: dict[tuple[str, Timeline], list[int]] = {}
    for place, query in enumerate(queries):
        found.setdefault(query.axis[:2], []).append(place)
    return found
