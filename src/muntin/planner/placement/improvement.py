"""Local improvement with weaving: bundles of queries leave the most loaded node."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations
from typing import NamedTuple

from muntin.planner.placement.board import Board
from muntin.planner.placement.trees import Tree, Weaver

# A step must lower the highest load by more than rounding can.
_GAIN = 1e-9


class Step(NamedTuple):
    """A bundle that leaves a tree for another: what the two nodes cost afterwards."""

    high: float
    total: float
    node: int
    place: int
    bundle: Tree
    rest: Tree | None
    target: int
    into: int | None


def improve_board(board: Board, category: str, steps: int = 1000) -> int:
    """Move bundles of queries while the highest load falls; returns how many moved.

    A bundle is what a tree holds of queries with the same edges (half of them, where all are
    alike) or the whole tree. It leaves the node with the highest load, to be woven into a tree of
    another node or, where trees may be grouped, to be one of its own there, or it is woven into
    another tree of the same node. Of all steps that lower the highest load, the one is taken
    after which the two nodes together cost least.
    """
    taken = 0
    while taken < steps:
        node = max(range(len(board)), key=board.load)
        ceiling = board.load(node) * (1 - _GAIN)
        found = [step for step in _steps(board, node, category) if step.high < ceiling]
        if not found:
            break
        _take(board, min(found, key=lambda step: (step.total, step.high)))
        taken += 1
    return taken


def _steps(board: Board, node: int, category: str) -> Iterator[Step]:
    for place, tree in enumerate(board.trees[node]):
        for bundle, rest in _bundles(board, tree):
            freed = tree.cost - (rest.cost if rest else 0.0)
            left = board.load(node, -freed)
            for target, into in _targets(board, node, place, category):
                added = bundle.cost if into is None else board.increase(target, into, bundle)
                if target == node:
                    high = board.load(node, added - freed)
                else:
                    high = max(left, board.load(target, added))
                yield Step(high, added - freed, node, place, bundle, rest, target, into)


def _targets(
    board: Board, node: int, place: int, category: str
) -> Iterator[tuple[int, int | None]]:
    """Where a bundle of a tree may go: into another tree, or beside those of another node."""
    for target, trees in enumerate(board.trees):
        if target != node and (category != "W" or not trees):
            yield target, None
        if category != "G":
            yield from ((target, i) for i in range(len(trees)) if (target, i) != (node, place))


def _bundles(board: Board, tree: Tree) -> Iterator[tuple[Tree, Tree | None]]:
    """What may leave a tree, with what stays."""
    yield tree, None
    kinds: dict[int, list[Tree]] = {}
    for query in tree.queries:
        single = board.weaver.tree(query)
        kinds.setdefault(single.kind, []).append(single)
    parts = list(kinds.values())
    if len(parts) == 1:
        half = len(parts[0]) // 2
        parts = [part for part in (parts[0][:half], parts[0][half:]) if part]
    bundles = [reduce(board.weaver.weave, part) for part in parts]
    if len(bundles) > 1:
        for i, bundle in enumerate(bundles):
            yield bundle, reduce(board.weaver.weave, bundles[:i] + bundles[i + 1 :])


def _take(board: Board, step: Step) -> None:
    held = board.trees[step.node]
    board.costs[step.node] += (step.rest.cost if step.rest else 0.0) - held[step.place].cost
    if step.into is None:
        board.group(step.target, step.bundle)
    else:
        board.weave(step.target, step.into, step.bundle)
    held[step.place : step.place + 1] = [step.rest] if step.rest else []


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
