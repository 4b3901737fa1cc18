"""Nodes that come and go, improvement, and buckets: little moves, and balance is kept."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest

from muntin.errors import MuntinError
from muntin.planner.placement.balance import relieve, sums
from muntin.planner.placement.board import Node
from muntin.planner.placement.buckets import lowest_load
from muntin.planner.placement.optimizers import PlacedTree, Placement, place_trees

SEEDS = range(25)


def some_placement(seed: int, trees: int = 60) -> Placement:
    """Trees of seeded costs, placed at random on nodes of two capacities."""
    rng = Random(seed)
    nodes = tuple(Node(f"n{i}", rng.choice((1, 2))) for i in range(rng.randint(2, 8)))
    placed = tuple(
        PlacedTree((i,), rng.expovariate(0.1), rng.choice(nodes).name) for i in range(trees)
    )
    return Placement("WG_RAND", nodes, placed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_joins_takes_at_most_its_share(seed: int) -> None:
    before = some_placement(seed).improved().placement
    change = before.with_node(Node("joins", 2))
    after = change.placement
    capacity = sum(node.capacity for node in after.nodes)
    assert all(move.target == "joins" for move in change.moves)
    assert 0 < change.moved_cost <= before.total_cost * 2 / capacity * (1 + 1e-6)
    assert change.moved_cost == pytest.approx(after.node_costs["joins"])
    assert after.max_load < before.max_load
    assert after.total_cost == pytest.approx(before.total_cost)
    # The share is nearly used up: what is left is less than the heaviest tree.
    heaviest = max(tree.cost for tree in after.trees)
    assert change.moved_cost >= before.total_cost * 2 / capacity - heaviest


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_trees_of_a_node_that_leaves_move(seed: int) -> None:
    before = some_placement(seed)
    change = before.without_node("n1")
    left = {tree.queries for tree in before.trees if tree.node == "n1"}
    assert {move.queries for move in change.moves} == left
    assert change.moved_cost == pytest.approx(before.node_costs["n1"])
    assert {node.name for node in change.placement.nodes} == {
        node.name for node in before.nodes
    } - {"n1"}
    assert "n1" not in change.placement.node_of.values()


def test_a_node_that_joins_and_leaves_leaves_nothing_behind() -> None:
    before = some_placement(1)
    after = before.with_node("x").placement.without_node("x").placement
    assert after.nodes == before.nodes
    assert after.total_cost == pytest.approx(before.total_cost)


def test_a_tree_larger_than_the_share_moves_alone() -> None:
    trees = (PlacedTree((0,), 10.0, "a"), PlacedTree((1,), 9.0, "a"))
    change = Placement("G_RR", (Node("a"),), trees).with_node("b")
    assert [(move.queries, move.origin, move.target) for move in change.moves] == [((1,), "a", "b")]
    assert change.placement.loads == {"a": 10.0, "b": 9.0}


def test_a_node_with_one_tree_keeps_it() -> None:
    single = Placement("W_I", (Node("a"),), (PlacedTree((0,), 10.0, "a"),))
    assert single.with_node("b").moves == ()
    assert Placement("W_I", (Node("a"),), ()).with_node("b").moves == ()


def test_nodes_that_cannot_join_or_leave_are_refused() -> None:
    placement = some_placement(1)
    with pytest.raises(MuntinError, match="two nodes are named n1"):
        placement.with_node("n1")
    with pytest.raises(MuntinError, match="no node is named m1") as caught:
        placement.without_node("m1")
    assert "n1" in str(caught.value.hint)
    with pytest.raises(MuntinError, match="last node") as caught:
        Placement("W_I", (Node("a"),), ()).without_node("a")
    assert "with_node" in str(caught.value.hint)


@pytest.mark.parametrize("seed", SEEDS)
def test_improvement_lowers_the_highest_load_to_near_the_best(seed: int) -> None:
    before = some_placement(seed)
    change = before.improved()
    after = change.placement
    assert after.max_load <= before.max_load
    assert after.total_cost == pytest.approx(before.total_cost)
    capacities = np.array([node.capacity for node in after.nodes])
    best = lowest_load([tree.cost for tree in after.trees], capacities)
    assert after.max_load <= 1.02 * best
    assert after.improved().moves == ()


def test_a_swap_helps_where_no_move_does() -> None:
    where = [0, 0, 1, 1]
    assert relieve([6.0, 5.0, 4.0, 5.0], where, np.ones(2)) == 1
    assert sums([6.0, 5.0, 4.0, 5.0], where, 2).tolist() == [10.0, 10.0]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_swap_is_the_best_of_all(seed: int) -> None:
    rng = Random(seed)
    # As many on each node, nearly equal: no move helps.
    weights = [10 + rng.random() for _ in range(12)]
    where, capacities = [i % 3 for i in range(12)], np.ones(3)
    totals = sums(weights, where, 3)
    high = int(np.argmax(totals))
    loads = [
        max(totals[high] - weights[i] + weights[j], totals[where[j]] + weights[i] - weights[j])
        for i, j in permutations(range(12), 2)
        if where[i] == high != where[j]
    ]
    steps = relieve(weights, where, capacities, enough=float(totals[high]) * (1 - 1e-6))
    after = sums(weights, where, 3)
    assert steps == (min(loads) < totals[high])
    if steps:
        assert after[~np.isclose(totals, after)].max() == pytest.approx(min(loads))


def test_relief_stops_when_it_is_enough() -> None:
    weights, where = [1.0] * 10, [0] * 10
    relieve(weights, where, np.ones(2), enough=8.0)
    assert sums(weights, where, 2).tolist() == [8.0, 2.0]


@pytest.mark.parametrize("seed", SEEDS)
def test_buckets_are_balanced_as_by_the_heaviest_first(seed: int) -> None:
    rng = Random(seed)
    costs = {f"t{i}": rng.expovariate(0.1) for i in range(rng.randint(1, 60))}
    placed = place_trees(costs, rng.randint(1, 8))
    best = lowest_load(list(costs.values()), np.ones(len(placed.loads)))
    # Graham's bound for the heaviest first is 4/3 of the optimum.
    assert placed.max_load <= 4 / 3 * best * 1.2
    assert placed.moved == ()
    assert sum(placed.loads.values()) == pytest.approx(sum(costs.values()))


@pytest.mark.parametrize("seed", SEEDS)
def test_trees_that_stay_rarely_move(seed: int) -> None:
    rng = Random(seed)
    costs = {i: rng.expovariate(0.1) for i in range(40)}
    placed = place_trees(costs, 8)
    moved = changes = 0
    for step in range(60):
        costs = {key: cost for key, cost in costs.items() if rng.random() > 0.05}
        costs[100 + step] = rng.expovariate(0.1)
        costs[200 + step] = rng.expovariate(0.1)
        had = placed.node_of
        placed = place_trees(costs, 8, previous=had)
        assert {key for key in costs if key in had and had[key] != placed.node_of[key]} == set(
            placed.moved
        )
        best = lowest_load(list(costs.values()), np.ones(8))
        assert placed.max_load <= 1.5 * best or not placed.moved
        moved += len(placed.moved)
        changes += len(costs)
    assert moved <= 0.03 * changes


def test_a_bucket_that_is_gone_gives_its_trees_to_others() -> None:
    costs = {"a": 3.0, "b": 2.0, "c": 1.0}
    placed = place_trees(costs, ["x", "y"], previous={"a": "x", "b": "z", "c": "x"}, bound=2.0)
    assert placed.node_of == {"a": "x", "b": "y", "c": "x"}
    assert placed.moved == ("b",)


def test_buckets_of_different_capacity() -> None:
    placed = place_trees(dict.fromkeys(range(12), 1.0), [Node("a"), Node("b", 3)])
    assert placed.loads == {"a": 3.0, "b": 3.0}


def test_no_trees_leave_buckets_empty() -> None:
    assert place_trees({}, 2).loads == {"0": 0.0, "1": 0.0}


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_a_cost_that_is_none_is_refused(cost: float) -> None:
    with pytest.raises(MuntinError, match="tree 'a' costs") as caught:
        place_trees({"a": cost}, 2)
    assert caught.value.hint


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(MuntinError, match="imbalance") as caught:
        place_trees({"a": 1.0}, 2, bound=0.9)
    assert "at least 1" in str(caught.value.hint)
