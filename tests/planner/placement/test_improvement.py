"""Local improvement with weaving: the highest load falls, nothing is lost, categories hold."""

from __future__ import annotations

from random import Random

import pytest

from muntin.planner.costs.formula import WindowQuery, tree_cost
from muntin.planner.placement.board import Board, Node
from muntin.planner.placement.improvement import improve_board
from muntin.planner.placement.optimizers import METHODS, place
from muntin.planner.placement.trees import WovenCosts


def some_queries(seed: int, count: int = 40) -> list[WindowQuery]:
    rng = Random(seed)
    slides = [rng.randint(2, 12) for _ in range(count)]
    return [WindowQuery(each * rng.randint(1, 8), each) for each in slides]


@pytest.mark.parametrize("method", METHODS)
def test_improvement_keeps_queries_and_true_costs(method: str) -> None:
    queries = some_queries(5)
    nodes = [Node("a"), Node("b", 2), Node("c")]
    plain = place(queries, nodes, 10.0, "panes", method, seed=2)
    better = place(queries, nodes, 10.0, "panes", method, seed=2, improve=True)
    assert better.max_load <= plain.max_load
    assert sorted(better.node_of) == list(range(len(queries)))
    for tree in better.trees:
        members = [queries[query] for query in tree.queries]
        assert tree.cost == pytest.approx(tree_cost(members, 10.0, "panes").total)
    category = method.partition("_")[0]
    if category == "G":
        assert all(len(tree.queries) == 1 for tree in better.trees)
    if category == "W":
        assert len({tree.node for tree in better.trees}) == len(better.trees)


@pytest.mark.parametrize("seed", range(5))
def test_improvement_after_the_best_total_lowers_the_maximum(seed: int) -> None:
    queries = some_queries(seed, count=60)
    plain = place(queries, 8, 10.0, "panes", "WG_TN")
    better = place(queries, 8, 10.0, "panes", "WG_TN", improve=True)
    inserted = place(queries, 8, 10.0, "panes", "WG_I", seed=seed)
    assert better.max_cost < plain.max_cost
    assert better.max_cost <= 1.05 * inserted.max_cost


def test_a_query_that_fits_elsewhere_leaves() -> None:
    # A rate of 1: edges every 2 and every 3 are best apart, 1 + 5 and 1 + 4 operations.
    queries = [WindowQuery(20, 2), WindowQuery(10, 2), WindowQuery(30, 3), WindowQuery(12, 3)]
    costs = WovenCosts(queries, 1.0, "panes")
    one, two, three, four = (costs.tree(query) for query in range(4))
    board = Board([Node("a"), Node("b")], costs)
    board.group(0, costs.weave(costs.weave(one, two), three))
    board.group(1, four)
    assert improve_board(board, "WG") == 1
    assert [[sorted(tree.queries) for tree in held] for held in board.trees] == [[[0, 1]], [[2, 3]]]
    assert board.costs == pytest.approx([1 + 15 / 2, 1 + 14 / 3])


def test_queries_that_are_alike_are_split_in_halves() -> None:
    queries = [WindowQuery(2 * n, 2) for n in range(10, 14)]
    costs = WovenCosts(queries, 1.0, "panes")
    board = Board([Node("a"), Node("b")], costs)
    board.group(0, costs.tree(0))
    for query in (1, 2, 3):
        board.weave(0, 0, costs.tree(query))
    assert improve_board(board, "WG") == 1
    assert [len(tree.queries) for held in board.trees for tree in held] == [2, 2]


def test_nothing_to_improve_takes_no_step() -> None:
    costs = WovenCosts([WindowQuery(4, 2)], 1.0, "panes")
    board = Board([Node("a"), Node("b")], costs)
    assert improve_board(board, "WG") == 0
    board.group(0, costs.tree(0))
    assert improve_board(board, "WG") == 0
