"""The thirteen distributed optimizers of Table 7, by how they choose a node for a tree.

Chapter 6 of "Algorithms and Optimizations for Incremental Window-Based Aggregations". The first
part of a name says what may happen on a node: G only groups trees, W weaves all of a node's
queries into one tree, WG does either. All break ties by order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from muntin.planner.placement.board import Board
from muntin.planner.placement.improvement import merge_identical, merge_within, weave_pairs
from muntin.planner.placement.trees import Tree

Chooser = Callable[[Board, Sequence[Tree], Random, str], None]


def at_random(board: Board, trees: Sequence[Tree], rng: Random, category: str) -> None:
    """RAND: each tree on a node drawn at random, larger nodes more often.

    WG draws among the node's trees and a tree of its own, all alike: the thesis says random only.
    """
    numbers = range(len(board))
    for tree in trees:
        node = rng.choices(numbers, board.capacities)[0]
        _put(board, node, tree, category, rng.randrange(len(board.trees[node]) + 1))


def in_turn(board: Board, trees: Sequence[Tree], rng: Random, category: str) -> None:
    """RR: nodes take trees in turn, larger nodes more often.

    WG weaves with a node's trees in turn, then adds a tree of its own and begins anew: the
    thesis says round robin only.
    """
    taken, turn = [0] * len(board), [0] * len(board)
    for tree in trees:
        node = min(range(len(board)), key=lambda each: (taken[each] + 1) / board.capacities[each])
        round_over = turn[node] == len(board.trees[node])
        _put(board, node, tree, category, turn[node])
        turn[node] = 0 if round_over else turn[node] + 1
        taken[node] += 1


def _put(board: Board, node: int, tree: Tree, category: str, place: int) -> None:
    held = board.trees[node]
    if category == "G" or not held or (category == "WG" and place == len(held)):
        board.group(node, tree)
    else:
        board.weave(node, place if category == "WG" else 0, tree)


def to_lowest(board: Board, trees: Sequence[Tree], rng: Random, category: str) -> None:
    """TL, Algorithm 4: from expensive to cheap, each on the node with the lowest cost.

    WG weaves with the node's cheapest tree unless a tree of its own costs the node less.
    """
    falling = sorted(trees, key=lambda tree: -tree.cost)
    board.spread(falling)
    for tree in falling[len(board) :]:
        node = board.lowest(tree.cost)
        held = board.trees[node]
        place = min(range(len(held)), key=lambda each: held[each].cost)
        grouped = category == "G"
        if category == "WG":
            grouped = tree.cost < board.increase(node, place, tree)
        if grouped:
            board.group(node, tree)
        else:
            board.weave(node, place, tree)


def to_nodes(board: Board, trees: Sequence[Tree], rng: Random, category: str) -> None:
    """TN, Algorithm 5: WeaveShare over all, then its trees on nodes as by G_TL.

    W goes on weaving what costs least until every tree has a node. The text lets both stop as
    soon as there are no more trees than nodes; the algorithm as printed goes on while weaving
    saves, which is what keeps the total cost lowest, and what is done here.
    """
    limit = len(board) if category == "W" else None
    to_lowest(board, weave_pairs(trees, board.weaver, limit), rng, "G")


def inserted(board: Board, trees: Sequence[Tree], rng: Random, category: str) -> None:
    """I, Algorithm 6: a tree for each node, then the others one by one, from expensive to cheap.

    A tree is woven where the node's cost ends up lowest. WG instead groups it on the node with
    the lowest cost where that adds less to the total cost: so the text; the algorithm as printed
    compares the costs of the two nodes, with much the same result.

    Queries of equal edges are merged first, up to a node's share of the cost: without a limit
    some nodes would have nothing, and others too much. The text begins with random queries and
    has no order; but Section 6.5 calls G_TL what this is without weaving, and G_TL sorts. The
    benchmark of the optimizer compares this with other readings.
    """
    least = sum(tree.cost for tree in merge_identical(trees, board.weaver))
    share = least * max(board.capacities) / sum(board.capacities)
    merged = merge_within(trees, board.weaver, share)
    falling = sorted(merged, key=lambda tree: -tree.cost)
    board.spread(falling)
    for tree in falling[len(board) :]:
        _insert(board, tree, category)


def _insert(board: Board, tree: Tree, category: str) -> None:
    best: tuple[float, float, int, int] | None = None
    for node, held in enumerate(board.trees):
        for place in range(len(held)):
            added = board.increase(node, place, tree)
            load = board.load(node, added)
            if best is None or load < best[0]:
                best = (load, added, node, place)
    assert best is not None  # every node holds a tree before the first is inserted
    _, added, node, place = best
    if category == "WG" and tree.cost < added:
        board.group(board.lowest(tree.cost), tree)
    else:
        board.weave(node, place, tree)


_CHOOSERS: dict[str, tuple[Chooser, tuple[str, ...]]] = {
    "RAND": (at_random, ("G", "W", "WG")),
    "RR": (in_turn, ("G", "W", "WG")),
    "TL": (to_lowest, ("G", "W", "WG")),
    "TN": (to_nodes, ("W", "WG")),
    "I": (inserted, ("W", "WG")),
}
METHODS: tuple[str, ...] = tuple(
    f"{category}_{choice}"
    for category in ("G", "W", "WG")
    for choice, (_, categories) in _CHOOSERS.items()
    if category in categories
)


def run_method(method: str, board: Board, trees: Sequence[Tree], rng: Random) -> None:
    """Place trees on the board by a method of Table 7."""
    category, _, choice = method.partition("_")
    _CHOOSERS[choice][0](board, trees, rng, category)
