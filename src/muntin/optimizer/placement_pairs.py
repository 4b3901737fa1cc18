"""WeaveShare for placement: weave the pair that saves most, as long as one saves."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import combinations

from muntin.optimizer.placement_trees import Tree, Weaver


def merge_identical(trees: Sequence[Tree], weaver: Weaver) -> list[Tree]:
    """Trees with the same edges woven together, in order of appearance.

    They weave perfectly: no pair saves more than one of these where Ω adds up.
    """
    merged: dict[int, Tree] = {}
    for tree in trees:
        held = merged.get(tree.kind)
        merged[tree.kind] = tree if held is None else weaver.weave(held, tree)
    return list(merged.values())


def merge_within(trees: Sequence[Tree], weaver: Weaver, limit: float) -> list[Tree]:
    """Trees with the same edges woven together while that costs no more than a limit.

    The most expensive ones come first; what exceeds the limit by itself stays as it is.
    """
    done: list[Tree] = []
    merged: dict[int, Tree] = {}
    for tree in sorted(trees, key=lambda each: -each.cost):
        held = merged.get(tree.kind)
        if held is not None and weaver.woven(held, tree) > limit:
            done.append(held)
            held = None
        merged[tree.kind] = tree if held is None else weaver.weave(held, tree)
    return [*done, *merged.values()]


def weave_pairs(
    trees: Sequence[Tree], weaver: Weaver, most: int | None = None, enough: int = 1
) -> list[Tree]:
    """Weave pairs, the best first, until none saves and there are at most `most` trees.

    It stops as soon as there are no more than `enough` trees, even where a pair would save.
    Savings of pairs are kept in a heap and only those with the woven tree are worked out anew,
    so that n trees with different edges take n² trials.
    """
    merged = merge_identical(trees, weaver)
    # Where those with the same edges are enough by themselves, not even they are all woven.
    alive = dict(enumerate(trees if len(merged) < enough else merged))
    heap = [
        (weaver.woven(a, b) - a.cost - b.cost, i, j)
        for (i, a), (j, b) in combinations(alive.items(), 2)
    ]
    heapq.heapify(heap)
    number = len(alive)
    while heap and len(alive) > enough:
        added, i, j = heapq.heappop(heap)
        if i not in alive or j not in alive:
            continue
        if added >= 0 and (most is None or len(alive) <= most):
            break
        woven = weaver.weave(alive.pop(i), alive.pop(j))
        for k, tree in alive.items():
            heapq.heappush(heap, (weaver.woven(tree, woven) - tree.cost - woven.cost, k, number))
        alive[number] = woven
        number += 1
    return list(alive.values())
