"""The trees over one axis: who shares which, by what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from math import gcd
from typing import Literal, TypeAlias

from muntin.plan.nodes import SharedPlan, Weighed
from muntin.planner.bound import BoundQuery
from muntin.planner.costs.formula import Technique, WindowQuery, tree_classes, tree_cost
from muntin.planner.edges.estimate import estimate_edge_rate
from muntin.planner.moves import MARGIN, is_stale, match_owners, reason, tree_name
from muntin.planner.owners import Sharing, join_all
from muntin.planner.trees.tri_weave import tri_weave
from muntin.planner.trees.weave_share import weave_share
from muntin.planner.trees.weaving import Weaving, all_share, no_share
from muntin.queries import Query
from muntin.windows.edges import EdgeClass

OptimizerName: TypeAlias = Literal["auto", "weave_share", "tri_weave", "all_share", "no_share"]

# Those that move queries which run already.
MOVING: tuple[OptimizerName, ...] = ("auto", "tri_weave")

_Weave: TypeAlias = Callable[[Sequence[WindowQuery], float, Technique], Weaving]
_METHODS: dict[str, _Weave] = {
    "auto": weave_share,
    "weave_share": weave_share,
    "tri_weave": tri_weave,
    "all_share": all_share,
    "no_share": no_share,
}


class Grove:
    """The trees over one axis.

    Args:
        method: Who decides.
        queries: The queries over the axis.
        rate: Rows per tick; None where it is not known, and all share.
        steps_per_row: How many operations at an edge a row into one more tree is worth.
    """

    def __init__(
        self,
        method: OptimizerName,
        queries: Sequence[BoundQuery],
        rate: float | None,
        steps_per_row: float,
    ) -> None:
        self._method = method
        self._windows = [_window(query.query) for query in queries]
        self._measured = rate
        self._rate = None if rate is None else _rows(rate, self._windows) * steps_per_row
        self._technique = _technique(queries)

    def share(self, kept: Sequence[str | None], previous: SharedPlan | None = None) -> Sharing:
        """The owner of each query, where some have one already; and why."""
        if self._method == "all_share" or (self._rate is None and self._method != "no_share"):
            return Sharing(tuple(join_all(kept)))
        if any(owner is not None for owner in kept):
            return self._grown(kept, previous)
        weaving = _METHODS[self._method](self._windows, self._rate or 0.0, self._technique)
        owners = [""] * len(kept)
        if len(weaving.trees) > 1:
            owners = match_owners(weaving.trees, kept)
        combined = weaving.combined > 0 and len(weaving.trees) > 1
        reason, weighed = self._reason(weaving), self._weighed(weaving.total)
        return Sharing(tuple(owners), reason, weighed, combined=combined)

    def _grown(self, kept: Sequence[str | None], previous: SharedPlan | None) -> Sharing:
        """Newcomers where they add least; all as if planned from scratch, where that pays."""
        owners, added = self._insert(kept)
        combined = self._combines(owners)
        if self._method not in MOVING or self._measured is None or previous is None:
            return Sharing(tuple(owners), combined=combined)
        weighed = previous.weighed
        if weighed is not None:
            weighed = replace(weighed, changed=weighed.changed + added)
            saving = self._saving(owners, previous)
            if not is_stale(weighed, self._measured, saving):
                return Sharing(tuple(owners), weighed=weighed, combined=combined)
        return self._replanned(kept, owners, weighed)

    def _saving(self, owners: Sequence[str], previous: SharedPlan) -> float:
        """What merging a tree that queries have left with another takes off the cost, at most."""
        stay = {window.name for window in self._windows}
        left = {
            previous.slicings[previous.partials[final.partials].slicing].owner
            for final in previous.finals
            if final.name not in stay
        }
        trees = self._trees(owners)
        if not left or len(trees) < 2:
            return 0.0
        costs = {owner: self._cost(members) for owner, members in trees.items()}
        savings = [
            costs[owner] + costs[other] - self._cost([*trees[owner], *trees[other]])
            for owner in left & trees.keys()
            for other in trees
            if other != owner
        ]
        return max(savings, default=0.0)

    def _trees(self, owners: Sequence[str]) -> dict[str, list[WindowQuery]]:
        trees: dict[str, list[WindowQuery]] = {}
        for owner, window in zip(owners, self._windows, strict=True):
            trees.setdefault(owner, []).append(window)
        return trees

    def _replanned(
        self, kept: Sequence[str | None], stay: Sequence[str], weighed: Weighed | None
    ) -> Sharing:
        running = self._running(stay)
        weaving = _METHODS[self._method](self._windows, self._rate or 0.0, self._technique)
        if weaving.total > (1 - MARGIN) * running:
            combined = self._combines(stay)
            return Sharing(tuple(stay), weighed=self._weighed(running), combined=combined)
        owners = tuple(match_owners(weaving.trees, kept))
        combined = weaving.combined > 0 and len(weaving.trees) > 1
        assert self._measured is not None
        why = f"{reason(weighed, self._measured)}, {self._reason(weaving)}"
        weighed = self._weighed(weaving.total)
        return Sharing(owners, why, weighed, stay=tuple(stay), combined=combined)

    def _combines(self, owners: Sequence[str]) -> bool:
        """Whether trees are fed from combined slices."""
        return self._method == "tri_weave" and len(set(owners)) > 1

    def _running(self, owners: Sequence[str]) -> float:
        """What the trees of some owners cost."""
        trees = self._trees(owners).values()
        if not self._combines(owners):
            return sum(self._cost(members) for members in trees)
        common = estimate_edge_rate(tree_classes(self._windows)).rate
        costs = [tree_cost(members, 0.0, self._technique) for members in trees]
        fed = sum(max(0.0, common - cost.edges) for cost in costs)
        return (self._rate or 0.0) + fed + sum(cost.total for cost in costs)

    def _weighed(self, cost: float) -> Weighed | None:
        return None if self._measured is None else Weighed(self._measured, cost)

    def _insert(self, kept: Sequence[str | None]) -> tuple[list[str], float]:
        """Those that have no tree yet, each where it adds least, or alone; and what they add."""
        trees: dict[str, list[WindowQuery]] = {}
        for owner, window in zip(kept, self._windows, strict=True):
            if owner is not None:
                trees.setdefault(owner, []).append(window)
        owners, total = [], 0.0
        for owner, window in zip(kept, self._windows, strict=True):
            chosen = owner
            if chosen is None:
                chosen = next(name for name in map(tree_name, count(1)) if name not in trees)
                if self._method != "no_share":
                    chosen, added = self._best(trees, window, chosen)
                    total += added
                trees.setdefault(chosen, []).append(window)
            owners.append(chosen)
        return owners, total

    def _best(
        self, trees: dict[str, list[WindowQuery]], window: WindowQuery, fresh: str
    ) -> tuple[str, float]:
        added = {fresh: self._cost([window])}
        for owner, members in trees.items():
            if window in members:
                return owner, 0.0
            added[owner] = self._cost([*members, window]) - self._cost(members)
        best = min(added, key=lambda owner: added[owner])
        return best, added[best]

    def _cost(self, members: list[WindowQuery]) -> float:
        return tree_cost(members, self._rate or 0.0, self._technique).total

    def _reason(self, weaving: Weaving) -> str:
        if len(self._windows) < 2 or self._method == "no_share":
            return ""
        one = weaving.total if weaving.shared is None else weaving.shared
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
    classes = tree_classes(windows)
    if rate * _unit(classes) >= 1:
        return rate
    return max(rate, estimate_edge_rate(classes).rate)


def _unit(classes: Iterable[EdgeClass]) -> int:
    """The least that edges can be apart: all are multiples of it, but for an offset.

    >>> _unit([(60, 5), (90, 35), (12, 5)])
    6
    """
    listed = list(classes)
    offset = listed[0][1]
    return gcd(*(number for slide, shift in listed for number in (slide, shift - offset)))


def _window(query: Query) -> WindowQuery:
    window = query.window
    return WindowQuery(window.range, window.period, window.phase, name=query.name)


def _technique(queries: Sequence[BoundQuery]) -> Technique:
    """The technique whose cost is most like what the engine does for these aggregates."""
    parts = [each.part for query in queries for each in query.accumulators()]
    return "slickdeque_inv" if all(part.invertible for part in parts) else "slickdeque_noninv"
