"""How sharing is decided: which queries of a plan share a tree, by what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, TypeAlias, get_args

from muntin.errors import MuntinError, did_you_mean
from muntin.optimizer.costs import (
    Technique,
    WindowQuery,
    check_rate,
    tree_classes,
    tree_cost,
)
from muntin.optimizer.edge_estimate import estimate_edge_rate
from muntin.optimizer.weave_share import weave_share
from muntin.optimizer.weaving import Weaving, all_share, no_share
from muntin.plan.bind import BoundQuery
from muntin.plan.nodes import SharedPlan
from muntin.plan.owners import Sharing, join_all, kept_owners
from muntin.plan.timeline import Timeline

OptimizerName: TypeAlias = Literal["auto", "weave_share", "all_share", "no_share"]
OPTIMIZERS: tuple[OptimizerName, ...] = get_args(OptimizerName)

# A row that goes into one more tree takes as long as so many operations at an edge: it is put
# into its slice and its cell, where a step is one pass of a compiled loop over sorted slices.
# `muntin bench optimizer` measures it: from 1 (max, many rows a slice) to 16 (sum, one row a
# slice), and of all numbers for both, 10 to 20 give the fastest plans.
STEPS_PER_ROW = 10.0

_Weave: TypeAlias = Callable[[Sequence[WindowQuery], float, Technique], Weaving]
_METHODS: dict[str, _Weave] = {
    "auto": weave_share,
    "weave_share": weave_share,
    "all_share": all_share,
    "no_share": no_share,
}


@dataclass(frozen=True)
class Optimizer:
    """Decides who shares slices; what ``build_plan`` takes as its ``sharer``.

    A tree takes in every row, and steps over its slices for each query: C = mλ + Σ EᵢΩᵢ. More
    trees take in rows more often; fewer trees have more edges for each query to step over.
    Queries that run already stay in the tree they are in, with what it has kept. One that joins
    goes where it adds least.

    Args:
        method: ``auto`` and ``weave_share`` weigh the costs, ``all_share`` has one tree for all
            and ``no_share`` one for each.
        rate: Rows per tick: a microsecond, or one unit of a plain integer column; or how to
            find out, which is asked where it matters. Where it is not known, all share.
        steps_per_row: How many operations at an edge a row into one more tree is worth.

    >>> Optimizer("weave").method
    Traceback (most recent call last):
    ...
    muntin.errors.MuntinError: there is no optimizer 'weave'
    Hint: did you mean weave_share?
    """

    method: OptimizerName = "auto"
    rate: float | Callable[[], float | None] | None = None
    steps_per_row: float = STEPS_PER_ROW

    def __post_init__(self) -> None:
        if self.method not in OPTIMIZERS:
            raise MuntinError(
                f"there is no optimizer {self.method!r}",
                hint=did_you_mean(str(self.method), OPTIMIZERS)
                or f"use one of {', '.join(OPTIMIZERS)}",
            )
        if isinstance(self.rate, (int, float)):
            check_rate(self.rate)

    def __call__(self, queries: Sequence[BoundQuery], previous: SharedPlan | None) -> Sharing:
        """An owner for each query."""
        kept = kept_owners(queries, previous)
        owners = [""] * len(queries)
        reasons = []
        by_axis: dict[tuple[str, Timeline], list[int]] = {}
        for place, query in enumerate(queries):
            by_axis.setdefault(query.axis[:2], []).append(place)
        for (measure, _), places in by_axis.items():
            members = [queries[place] for place in places]
            rate = self._rate(measure, members)
            grove = _Grove(self.method, rate, members, self.steps_per_row)
            found, why = grove.owners([kept[place] for place in places])
            reasons.append(why)
            for place, owner in zip(places, found, strict=True):
                owners[place] = owner
        return Sharing(tuple(owners), "; ".join(filter(None, reasons)))

    def _rate(self, measure: str, queries: Sequence[BoundQuery]) -> float | None:
        if measure == "rows":
            return 1.0  # positions of rows are counted row by row
        if callable(self.rate):
            several = len({query.query.window for query in queries}) > 1
            weighed = several and self.method in ("auto", "weave_share")
            return self.rate() if weighed else None
        return self.rate


class _Grove:
    """The trees over one axis."""

    def __init__(
        self,
        method: OptimizerName,
        rate: float | None,
        queries: Sequence[BoundQuery],
        steps_per_row: float,
    ) -> None:
        self._method = method
        self._windows = [_window(query) for query in queries]
        self._rate = None if rate is None else _rows(rate, self._windows) * steps_per_row
        self._technique = _technique(queries)

    def owners(self, kept: Sequence[str | None]) -> tuple[list[str], str]:
        """The owner of each query, where some have one already; and why."""
        if self._method == "all_share" or (self._rate is None and self._method != "no_share"):
            return join_all(kept), ""
        if any(owner is not None for owner in kept):
            return self._insert(kept), ""
        weaving = _METHODS[self._method](self._windows, self._rate or 0.0, self._technique)
        if len(weaving.trees) == 1:
            return [""] * len(kept), self._reason(weaving)
        owners = [""] * len(kept)
        for number, tree in enumerate(weaving.trees, 1):
            for query in tree:
                owners[query] = _name(number)
        return owners, self._reason(weaving)

    def _insert(self, kept: Sequence[str | None]) -> list[str]:
        """Those that have no tree yet, each where it adds least, or in one of its own."""
        trees: dict[str, list[WindowQuery]] = {}
        for owner, window in zip(kept, self._windows, strict=True):
            if owner is not None:
                trees.setdefault(owner, []).append(window)
        owners = []
        for owner, window in zip(kept, self._windows, strict=True):
            chosen = owner
            if chosen is None:
                fresh = next(name for name in map(_name, count(1)) if name not in trees)
                chosen = fresh if self._method == "no_share" else self._best(trees, window, fresh)
                trees.setdefault(chosen, []).append(window)
            owners.append(chosen)
        return owners

    def _best(self, trees: dict[str, list[WindowQuery]], window: WindowQuery, fresh: str) -> str:
        added = {fresh: self._cost([window])}
        for owner, members in trees.items():
            if window in members:
                return owner
            added[owner] = self._cost([*members, window]) - self._cost(members)
        return min(added, key=lambda owner: added[owner])

    def _cost(self, members: list[WindowQuery]) -> float:
        return tree_cost(members, self._rate or 0.0, self._technique).total

    def _reason(self, weaving: Weaving) -> str:
        if len(self._windows) < 2 or self._method == "no_share":
            return ""
        one = all_share(self._windows, weaving.rate, self._technique).total
        trees = len(weaving.trees)
        fewer = f"{weaving.unshared / weaving.total:,.3g}× fewer operations than one for each query"
        if trees == 1:
            return f"one tree for all takes {fewer}"
        return f"{trees:,} trees take {fewer}, and {one / weaving.total:,.3g}× fewer than one tree"


def _rows(rate: float, windows: Sequence[WindowQuery]) -> float:
    """Rows per tick, or as many as there are edges if those outnumber rows.

    A slice without rows is not kept, so no query steps over it: where edges outnumber rows, a
    tree has as many slices as rows, and the two costs keep their proportion.
    """
    most = sum(len(window.classes) / window.slide for window in windows)
    if rate >= most:
        return rate
    return max(rate, estimate_edge_rate(tree_classes(windows)).rate)


def _window(query: BoundQuery) -> WindowQuery:
    window = query.query.window
    return WindowQuery(window.range, window.period, window.phase, name=query.query.name)


def _technique(queries: Sequence[BoundQuery]) -> Technique:
    """The technique whose cost is most like what the engine does for these aggregates."""
    parts = [each.part for query in queries for each in query.accumulators()]
    return "slickdeque_inv" if all(part.invertible for part in parts) else "slickdeque_noninv"


def _name(number: int) -> str:
    return f"tree {number}"
