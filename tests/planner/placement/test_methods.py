"""The thirteen methods of Table 7 on a case worked out by hand."""

from __future__ import annotations

import pytest

from muntin.planner.costs.formula import WindowQuery
from muntin.planner.placement.board import Node
from muntin.planner.placement.change import Placement
from muntin.planner.placement.optimizers import METHODS, place, place_with
from muntin.planner.placement.trees import Tree

COSTS = (10.0, 8.0, 6.0, 4.0)


class ByParity:
    """Even queries weave perfectly, odd ones too; any others cost 3 more than apart."""

    def __init__(self, costs: tuple[float, ...] = COSTS) -> None:
        self.costs = costs

    def cost(self, queries: tuple[int, ...]) -> float:
        alone = [self.costs[query] for query in queries]
        return max(alone) if len({query % 2 for query in queries}) == 1 else sum(alone) + 3

    def tree(self, query: int) -> Tree:
        return self._made((query,))

    def weave(self, a: Tree, b: Tree) -> Tree:
        return self._made(a.queries + b.queries)

    def woven(self, a: Tree, b: Tree) -> float:
        return self.cost(a.queries + b.queries)

    def _made(self, queries: tuple[int, ...]) -> Tree:
        bits = sum(1 << query for query in queries)
        return Tree(queries, bits, kind=bits, omega=0.0, cost=self.cost(queries))


def on_nodes(placement: Placement) -> list[list[tuple[int, ...]]]:
    """The trees of each node, in order of their first query."""
    return [
        sorted(tuple(sorted(tree.queries)) for tree in placement.trees if tree.node == node.name)
        for node in placement.nodes
    ]


def test_the_names_are_those_of_table_7() -> None:
    assert " ".join(METHODS) == (
        "G_RAND G_RR G_TL W_RAND W_RR W_TL W_TN W_I WG_RAND WG_RR WG_TL WG_TN WG_I"
    )


@pytest.mark.parametrize(
    ("method", "wanted", "costs"),
    [
        ("G_RR", [[(0,), (2,)], [(1,), (3,)]], [16.0, 12.0]),
        ("W_RR", [[(0, 2)], [(1, 3)]], [10.0, 8.0]),
        ("WG_RR", [[(0, 2)], [(1, 3)]], [10.0, 8.0]),
        ("G_TL", [[(0,), (3,)], [(1,), (2,)]], [14.0, 14.0]),
        # The lowest node is that of 1, whatever weaves with it.
        ("W_TL", [[(0, 3)], [(1, 2)]], [17.0, 17.0]),
        ("WG_TL", [[(0,), (3,)], [(1,), (2,)]], [14.0, 14.0]),
        ("W_TN", [[(0, 2)], [(1, 3)]], [10.0, 8.0]),
        ("WG_TN", [[(0, 2)], [(1, 3)]], [10.0, 8.0]),
    ],
)
def test_four_queries_on_two_nodes(
    method: str, wanted: list[list[tuple[int, ...]]], costs: list[float]
) -> None:
    placement = place_with(ByParity(), 4, 2, method)
    assert on_nodes(placement) == wanted
    assert list(placement.node_costs.values()) == costs
    assert (placement.total_cost, placement.max_cost) == (sum(costs), max(costs))


@pytest.mark.parametrize(
    ("method", "costs", "wanted", "total"),
    [
        ("W_I", COSTS, [[(0, 2)], [(1, 3)]], 18.0),
        ("WG_I", COSTS, [[(0, 2)], [(1, 3)]], 18.0),
        # 0 and 2 come first. 1 ends up cheapest with 2, 17 against 19, and 3 with 0; grouping
        # avoids both.
        ("W_I", (10.0, 6.0, 8.0, 4.0), [[(0, 3)], [(1, 2)]], 34.0),
        ("WG_I", (10.0, 6.0, 8.0, 4.0), [[(0,)], [(1, 3), (2,)]], 24.0),
    ],
)
def test_insertion_goes_where_the_node_stays_lowest(
    method: str, costs: tuple[float, ...], wanted: list[list[tuple[int, ...]]], total: float
) -> None:
    placement = place_with(ByParity(costs), 4, 2, method)
    assert sorted(on_nodes(placement)) == wanted
    assert placement.total_cost == total


def test_insertion_merges_equal_edges_up_to_a_nodes_share() -> None:
    queries = [WindowQuery(2 * n, 2) for n in range(10, 14)]
    placed = place(queries, 2, 1.0, "panes", "WG_I")
    # All as one tree cost 1 + 46 / 2 = 24, 12 a node: 10 and 11 fit with 11.5, 12 and 13 do not,
    # and are woven one after the other.
    assert sorted(on_nodes(placed)) == [[(0, 1)], [(2, 3)]]
    assert sorted(placed.node_costs.values()) == [11.5, 13.5]
    whole = place(queries, 2, 1.0, "panes", "WG_I", merge=True)
    assert sorted(whole.node_costs.values()) == [0.0, 24.0]


@pytest.mark.parametrize(
    ("method", "total", "trees"),
    [("W_TN", 31.0, 1), ("W_I", 31.0, 1), ("WG_TN", 18.0, 2), ("WG_I", 18.0, 2)],
)
def test_one_node_forces_weaving_only_where_trees_may_not_be_grouped(
    method: str, total: float, trees: int
) -> None:
    placement = place_with(ByParity(), 4, 1, method, seed=3)
    assert (placement.total_cost, len(placement.trees)) == (total, trees)


def test_round_robin_of_trees_weaves_in_turn_then_adds_one() -> None:
    placement = place_with(ByParity((1.0,) * 8), 8, 1, "WG_RR")
    # 0 alone; 1 with 0; 2 alone; 3 with 0, 4 with 2, 5 alone; 6 with 0, 7 with 2.
    assert on_nodes(placement) == [[(0, 1, 3, 6), (2, 4, 7), (5,)]]


def test_round_robin_gives_larger_nodes_more() -> None:
    placement = place_with(ByParity((1.0,) * 8), 8, [Node("a"), Node("b", 3)], "G_RR")
    assert placement.node_costs == {"a": 2.0, "b": 6.0}


def test_the_most_expensive_trees_go_to_the_largest_nodes() -> None:
    placement = place_with(ByParity(), 4, [Node("small"), Node("large", 2)], "G_TL")
    # 10 and 8 first; 6 as (10 + 6) / 2 = 8 on the large one; 4 as 20 / 2 = 10 there, not 12.
    assert on_nodes(placement) == [[(1,)], [(0,), (2,), (3,)]]
    assert placement.loads == {"small": 8.0, "large": 10.0}


def test_merging_first_leaves_identical_queries_together() -> None:
    class Twins(ByParity):
        def _made(self, queries: tuple[int, ...]) -> Tree:
            tree = super()._made(queries)
            return Tree(queries, tree.windows, queries[0] % 2, 0.0, tree.cost)

    placement = place_with(Twins(), 4, 4, "G_TL", merge=True)
    assert sorted(tree.queries for tree in placement.trees) == [(0, 2), (1, 3)]
    assert placement.total_cost == 18.0


def test_improvement_at_the_end_is_optional() -> None:
    costs = (5.0, 1.0, 4.0, 1.0)
    plain = place_with(ByParity(costs), 4, 2, "G_RR")
    better = place_with(ByParity(costs), 4, 2, "G_RR", improve=True)
    assert (plain.max_cost, better.max_cost) == (9.0, 6.0)
    assert plain.total_cost == better.total_cost
