"""The bucket that each tree without groups has its home in: grouped ones are spread by key.

Trees are placed by a distributed optimizer of Table 7 of "Algorithms and Optimizations for
Incremental Window-Based Aggregations", chapter 6, over those that the plan has: on a bucket they
stand side by side (G), as one (W), or as either is cheaper (WG).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.selection import Cells
from muntin.planner.build import plan_draft
from muntin.planner.costs.formula import Technique, WindowQuery, tree_classes
from muntin.planner.costs.omega import omega_alone
from muntin.planner.draft import Draft
from muntin.planner.owners import Sharing
from muntin.planner.placement.buckets import place_trees
from muntin.planner.placement.change import PlacedTree
from muntin.planner.placement.optimizers import place_with
from muntin.planner.placement.trees import Tree
from muntin.planner.sharing import STEPS_PER_ROW, Optimizer
from muntin.planner.steps.share import share
from muntin.windows import EdgeClass

METHOD = "WG_I"


def with_homes(
    plan: SharedPlan,
    buckets: int,
    previous: SharedPlan | None = None,
    method: str | None = None,
    draft: Draft | None = None,
) -> SharedPlan:
    """The plan with every tree without groups on one of so many buckets, none loaded in vain.

    A tree that runs already stays: what it has kept is in that bucket. One that joins then goes
    where the costliest bucket ends up cheapest.

    Args:
        plan: The plan.
        buckets: How many buckets there are.
        previous: The plan that runs, if one does.
        method: One of the thirteen names of ``muntin.planner.METHODS``; ``WG_I`` if not given.
        draft: What the plan was made from, bound, to plan its queries anew where the method weaves
            trees; without it, trees are only put side by side, and so are those that cannot be
            woven: over other rows, or with predicates over other expressions.

    >>> import pyarrow as pa
    >>> from muntin.planner import build_plan
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    >>> sql = "SELECT sum(v) FROM s [RANGE 9 SLIDE 3]; SELECT sum(v) FROM s [RANGE 8 SLIDE 4]"
    >>> plan = build_plan(queries(sql), schema, "ts", strategy="unshared")
    >>> [node.home for node in with_homes(plan, 16).partials]
    [0, 1]
    """
    if previous is not None:
        return _joined(plan, buckets, previous)
    weaves = draft is not None and _may_weave(draft, method)
    method = method or METHOD
    trees = _Trees(plan, buckets, weaves=weaves)
    placed = place_with(trees, len(trees), buckets, method).trees if len(trees) else ()
    woven = [tree for tree in placed if len(tree.queries) > 1]
    if woven and draft is not None and weaves:
        combined = bool(plan.combined)
        owners = tuple(trees.owners(woven))
        sharing = Sharing(owners, plan.why, plan.weighed, combined=combined)
        plan = plan_draft(replace(draft, sharing=sharing), since=share)
    homes = {name: int(tree.node) for tree in placed for name in trees.queries_of(tree)}
    nodes: list[Partials] = list(plan.partials)
    for final in plan.finals:
        if final.name in homes:
            nodes[final.partials] = replace(nodes[final.partials], home=homes[final.name])
    # What no query reads, such as the finer groups of others, costs no bucket anything.
    nodes = [node if node.grouping else replace(node, home=node.home or 0) for node in nodes]
    return replace(plan, partials=tuple(nodes), placement=method)


def _may_weave(draft: Draft, method: str | None) -> bool:
    """Whether queries may have other owners than they have.

    Two strategies say themselves who shares slices. ``no_share`` asks for a tree for each query,
    which no placement weaves unless it is asked for by name.
    """
    if draft.strategy in ("unshared", "fragments"):
        return False
    alone = isinstance(draft.sharer, Optimizer) and draft.sharer.method == "no_share"
    return method is not None or not alone


@dataclass(frozen=True)
class _Woven:
    """Windows that can be one tree, with their edge classes; invertible if all aggregates are."""

    windows: frozenset[WindowQuery]
    classes: frozenset[EdgeClass]
    invertible: bool

    def with_(self, other: _Woven) -> _Woven:
        invertible = self.invertible and other.invertible
        return _Woven(self.windows | other.windows, self.classes | other.classes, invertible)

    def cost(self) -> float:
        """Final operations per tick."""
        technique: Technique = "slickdeque_inv" if self.invertible else "slickdeque_noninv"
        # As if windows shared no edges but those of whole classes: to count the others takes most
        # of a second for a hundred windows, and trees are only to be told light from heavy.
        edges = min(1.0, sum(1 / period for period, _ in self.classes))
        partials = [window.range * edges for window in self.windows]
        overlaps = [window.overlap for window in self.windows]
        # Each window for itself: whether two read as many slices says little on average.
        return edges * float(omega_alone(technique, partials, overlaps).sum())


class _Trees:
    """The trees of a plan without groups, as what the methods of placement weave.

    A tree costs a bucket its final aggregations, and the bucket's share of what its rows cost:
    these are aggregated by all tasks alike. Trees that cannot be one cost their sum, and so do all
    where none may be woven.
    """

    def __init__(self, plan: SharedPlan, buckets: int, *, weaves: bool) -> None:
        self._plan = plan
        self._weaves = weaves
        read = {final.partials for final in plan.finals}
        self._places = [
            place for place, node in enumerate(plan.partials) if not node.grouping and place in read
        ]
        rate = 0.0 if plan.weighed is None else plan.weighed.rate
        self._rate = rate * STEPS_PER_ROW / buckets
        self._kinds: dict[Hashable, int] = {}
        # Of each tree, by its members, what can be woven, by what that has in common.
        self._held: dict[tuple[int, ...], dict[str, _Woven]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def tree(self, query: int) -> Tree:
        """The tree of one number."""
        place = self._places[query]
        key = self._key(place) if self._weaves else str(query)
        held = {key: _content(self._plan, place)}
        return self._tree((query,), held)

    def woven(self, a: Tree, b: Tree) -> float:
        """What two trees cost as one."""
        return self._cost(self._joined(a, b)) if self._weaves else a.cost + b.cost

    def weave(self, a: Tree, b: Tree) -> Tree:
        """Two trees as one."""
        return self._tree((*a.queries, *b.queries), self._joined(a, b))

    def _joined(self, a: Tree, b: Tree) -> dict[str, _Woven]:
        held = dict(self._held[a.queries])
        for key, content in self._held[b.queries].items():
            held[key] = held[key].with_(content) if key in held else content
        return held

    def _cost(self, held: Mapping[str, _Woven]) -> float:
        return sum(self._rate + content.cost() for content in held.values())

    def _tree(self, members: tuple[int, ...], held: dict[str, _Woven]) -> Tree:
        self._held[members] = held
        edges = frozenset((key, content.classes) for key, content in held.items())
        kind = self._kinds.setdefault(edges, len(self._kinds))
        return Tree(members, 0, kind, 0.0, self._cost(held))

    def _key(self, place: int) -> str:
        """What trees have in common that can be woven."""
        node = self._plan.partials[place]
        slicing = self._plan.slicings[node.slicing]
        # Predicates over other expressions have cells of their own in any case.
        kind = sorted(each.key for each in node.selection.bounds)
        cells = isinstance(node.selection, Cells)
        return repr((slicing.measure, slicing.timeline.column, node.relation, cells, kind))

    def queries_of(self, tree: PlacedTree) -> list[str]:
        """The names of the queries of a tree."""
        places = {self._places[member] for member in tree.queries}
        return [final.name for final in self._plan.finals if final.partials in places]

    def owners(self, woven: Sequence[PlacedTree]) -> list[str]:
        """An owner for each query of the plan, the same for those that are woven."""
        plan = self._plan
        owners = [plan.slicings[plan.partials[f.partials].slicing].owner for f in plan.finals]
        for number, tree in enumerate(woven):
            alike: dict[str, list[int]] = {}
            for member in tree.queries:
                alike.setdefault(self._key(self._places[member]), []).append(self._places[member])
            for part, places in enumerate(alike.values()):
                name = f"woven {number + 1}" + f".{part + 1}" * (len(alike) > 1)
                for place, final in enumerate(plan.finals):
                    if len(places) > 1 and final.partials in places:
                        owners[place] = name
        return owners


def _joined(plan: SharedPlan, buckets: int, previous: SharedPlan) -> SharedPlan:
    """Trees that run stay in their buckets, and those that join go where that costs least."""
    known = {node.number: node.home for node in previous.partials}
    alone = [place for place, node in enumerate(plan.partials) if not node.grouping]
    placed = place_trees(
        {place: _content(plan, place).cost() for place in alone},
        [str(bucket) for bucket in range(buckets)],
        previous={
            place: str(home)
            for place in alone
            if (home := known.get(_kept_number(plan.partials[place]))) is not None
        },
        bound=inf,
    )
    nodes: list[Partials] = list(plan.partials)
    for place in alone:
        nodes[place] = replace(nodes[place], home=int(placed.node_of[place]))
    return replace(plan, partials=tuple(nodes), placement=previous.placement)


def _kept_number(node: Partials) -> int:
    """The number, in the plan before, of the partials whose slices these go on with."""
    return node.number if node.origin is None else node.origin


def _content(plan: SharedPlan, place: int) -> _Woven:
    """The windows of a tree."""
    own = {final.window for final in plan.finals if final.partials == place}
    windows = frozenset(WindowQuery(w.range, w.period, w.phase) for w in own)
    parts = [each.part for each in plan.partials[place].accumulators]
    invertible = all(part.invertible for part in parts)
    return _Woven(windows, frozenset(tree_classes(windows)), invertible)
