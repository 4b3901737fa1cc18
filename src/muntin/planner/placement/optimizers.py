"""Which node runs which trees: the distributed optimizers of Table 7.

Chapter 6 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from muntin.errors import MuntinError, did_you_mean
from muntin.planner.costs.formula import Technique, WindowQuery
from muntin.planner.placement.board import Board, Node, Nodes, as_nodes
from muntin.planner.placement.buckets import BucketPlacement, place_trees
from muntin.planner.placement.change import Change, Move, PlacedTree, Placement
from muntin.planner.placement.improvement import improve_board, merge_identical
from muntin.planner.placement.methods import METHODS, run_method
from muntin.planner.placement.trees import Edges, Weaver, WovenCosts

__all__ = [
    "METHODS",
    "BucketPlacement",
    "Change",
    "Move",
    "Node",
    "PlacedTree",
    "Placement",
    "place",
    "place_trees",
    "place_with",
]


def place(
    queries: Sequence[WindowQuery],
    nodes: Nodes,
    rate: float,
    technique: Technique,
    method: str = "WG_I",
    *,
    seed: int = 0,
    edges: Edges | None = None,
    merge: bool = False,
    improve: bool = False,
) -> Placement:
    """Weave queries into trees and place these on nodes by a method of Table 7.

    Args:
        queries: The queries; trees name them by number.
        nodes: How many nodes there are, their names, or nodes with capacities.
        rate: λ, rows per time unit, paid by every tree.
        technique: What computes the final answers, for Ω.
        method: One of `METHODS`. WG_TN makes the total cost low, WG_I the maximum.
        seed: For the methods that draw at random (RAND); the rest ignores it.
        edges: Edges per time unit of a set of edge classes; if not given, they are counted where
            that is cheap, and estimated within 1% otherwise.
        merge: Weave queries with the same edges before anything else. It always lowers the total
            cost, and the maximum cost only where nodes are few for so many queries. The "to
            nodes" methods do so in any case, "inserted" up to a node's share of the cost.
        improve: At the end, move queries and trees away from the most loaded node, weaving them
            anew, and swap trees, while the highest load falls.

    Where the thesis is silent: ties go to what comes first; nodes without a query stay empty;
    with capacities, a node's cost is compared after division by its capacity. What each method
    does where text and algorithm differ is said in `placement_methods`.

    >>> queries = [WindowQuery(20, 2), WindowQuery(40, 4), WindowQuery(30, 3), WindowQuery(30, 3)]
    >>> placed = place(queries, nodes=2, rate=1, technique="panes", method="WG_TN")
    >>> [(tree.queries, tree.node, round(tree.cost, 2)) for tree in placed.trees]
    [((0,), '0', 6.0), ((2, 3), '1', 4.33), ((1,), '1', 3.5)]
    >>> round(placed.total_cost, 2), round(placed.max_cost, 2)
    (13.83, 7.83)
    """
    check_method(method)
    woven = WovenCosts(queries, rate, technique, edges)
    return place_with(woven, len(queries), nodes, method, seed=seed, merge=merge, improve=improve)


def place_with(
    weaver: Weaver,
    queries: int,
    nodes: Nodes,
    method: str,
    *,
    seed: int = 0,
    merge: bool = False,
    improve: bool = False,
) -> Placement:
    """As `place`, for queries from 0 up whose trees a weaver knows the costs of.

    One weaver serves many calls, and remembers the edge rates of all.
    """
    check_method(method)
    placed_on = as_nodes(nodes)
    board = Board(placed_on, weaver)
    trees = [weaver.tree(query) for query in range(queries)]
    if merge:
        trees = merge_identical(trees, weaver)
    run_method(method, board, trees, Random(seed))
    if improve:
        improve_board(board, method.partition("_")[0])
    placed = (
        PlacedTree(tree.queries, tree.cost, node.name)
        for node, held in zip(placed_on, board.trees, strict=True)
        for tree in held
    )
    placement = Placement(method, placed_on, tuple(placed))
    return placement.improved().placement if improve else placement


def check_method(method: str) -> None:
    """Refuses what is none of `METHODS`."""
    if method not in METHODS:
        raise MuntinError(
            f"no method of placement is named {method!r}",
            hint=did_you_mean(str(method), METHODS) or f"use one of {', '.join(METHODS)}",
        )
