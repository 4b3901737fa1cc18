"""Placement over real costs: everything placed once, costs recomputed, seeds kept."""

from __future__ import annotations

from random import Random

import pytest

from muntin.errors import AggregateError, MuntinError, WindowError
from muntin.planner.costs.formula import TECHNIQUES, Technique, WindowQuery, tree_cost
from muntin.planner.placement.board import Node, as_nodes
from muntin.planner.placement.optimizers import METHODS, place
from muntin.planner.placement.trees import WovenCosts


def some_queries(seed: int, count: int = 40, slide: int = 12) -> list[WindowQuery]:
    """Seeded windows, some alike, some with ranges that are no multiple of the slide."""
    rng = Random(seed)
    slides = [rng.randint(1, slide) for _ in range(count)]
    return [WindowQuery(rng.randint(each, 6 * each), each) for each in slides]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("merge", [False, True])
def test_every_query_is_placed_once_and_costs_are_true(method: str, merge: bool) -> None:
    for seed, technique in enumerate(TECHNIQUES):
        queries = some_queries(seed, count=24)
        placement = place(queries, 5, 20.0, technique, method, seed=seed, merge=merge)
        placed = sorted(query for tree in placement.trees for query in tree.queries)
        assert placed == list(range(len(queries)))
        for tree in placement.trees:
            members = [queries[query] for query in tree.queries]
            assert tree.cost == pytest.approx(tree_cost(members, 20.0, technique).total)
        totals = {
            node.name: sum(tree.cost for tree in placement.trees if tree.node == node.name)
            for node in placement.nodes
        }
        assert placement.node_costs == pytest.approx(totals)
        assert placement.total_cost == pytest.approx(sum(totals.values()))
        assert placement.max_cost == pytest.approx(max(totals.values()))
        assert set(placement.node_of) == set(range(len(queries)))


@pytest.mark.parametrize("method", METHODS)
def test_categories_are_kept(method: str) -> None:
    placement = place(some_queries(7), 4, 5.0, "panes", method, seed=1)
    category = method.split("_", maxsplit=1)[0]
    if category == "G":
        assert all(len(tree.queries) == 1 for tree in placement.trees)
    if category == "W":
        assert len({tree.node for tree in placement.trees}) == len(placement.trees)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_gives_one_placement(method: str) -> None:
    queries = some_queries(3)
    once, again = (place(queries, 4, 5.0, "panes", method, seed=11) for _ in range(2))
    assert once == again


@pytest.mark.parametrize("method", ["G_RAND", "W_RAND", "WG_RAND"])
def test_seeds_differ(method: str) -> None:
    queries = some_queries(3)
    assert len({place(queries, 4, 5.0, "panes", method, seed=seed).trees for seed in range(5)}) > 1


@pytest.mark.parametrize("method", METHODS)
def test_more_nodes_than_queries_leave_nodes_empty(method: str) -> None:
    placement = place(some_queries(1, count=3), 8, 5.0, "panes", method)
    assert len(placement.node_costs) == 8
    assert sorted(placement.node_of) == [0, 1, 2]
    assert place([], 2, 5.0, "panes", method).total_cost == 0


@pytest.mark.parametrize("seed", range(4))
def test_weaving_to_nodes_has_the_lowest_total_cost(seed: int) -> None:
    queries = some_queries(seed, count=60)
    totals = {
        method: place(queries, 4, 10.0, "panes", method, seed=seed).total_cost for method in METHODS
    }
    assert totals["WG_TN"] == pytest.approx(min(totals.values()))


@pytest.mark.parametrize("seed", range(4))
def test_cost_based_methods_balance_by_capacity(seed: int) -> None:
    nodes = [Node("a", 1), Node("b", 2), Node("c", 5)]
    placement = place(some_queries(seed, count=120), nodes, 10.0, "panes", "G_TL")
    loads = list(placement.loads.values())
    heaviest = max(tree.cost for tree in placement.trees)
    assert max(loads) - min(loads) <= heaviest / 1
    shares = [cost / placement.total_cost for cost in placement.node_costs.values()]
    assert shares == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)


def test_a_woven_tree_counts_equal_windows_once() -> None:
    queries = [WindowQuery(10, 5), WindowQuery(10, 5), WindowQuery(9, 3), WindowQuery(7, 5)]
    for technique in TECHNIQUES:
        costs = WovenCosts(queries, 3.0, technique)
        left = costs.weave(costs.tree(0), costs.tree(2))
        right = costs.weave(costs.tree(3), costs.tree(1))
        wanted = tree_cost(queries, 3.0, technique).total
        assert costs.woven(left, right) == pytest.approx(wanted)
        assert costs.weave(left, right).cost == pytest.approx(wanted)


def test_edges_may_come_from_elsewhere() -> None:
    asked = []

    def edges(classes: tuple[tuple[int, int], ...]) -> float:
        asked.append(classes)
        return 0.5

    placement = place([WindowQuery(8, 4), WindowQuery(6, 3)], 1, 1.0, "panes", "W_I", edges=edges)
    assert placement.total_cost == 1.0 + 0.5 * 4
    assert sorted(asked) == [((3, 0),), ((3, 0), (4, 0)), ((4, 0),)]


@pytest.mark.parametrize("nodes", [0, -1, []])
def test_no_nodes_are_refused(nodes: object) -> None:
    with pytest.raises(MuntinError, match="no nodes") as caught:
        place(some_queries(1), nodes, 5.0, "panes")  # type: ignore[arg-type]
    assert "number of nodes" in str(caught.value.hint)


@pytest.mark.parametrize(("name", "hint"), [("WGI", "WG_I?"), ("nearest", "G_RAND")])
def test_an_unknown_method_names_the_known(name: str, hint: str) -> None:
    with pytest.raises(MuntinError, match=name) as caught:
        place(some_queries(1), 2, 5.0, "panes", name)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_a_rate_that_no_stream_has_is_refused(rate: float) -> None:
    with pytest.raises(WindowError, match="rate") as caught:
        place(some_queries(1), 2, rate, "panes")
    assert caught.value.hint


def test_an_unknown_technique_is_refused() -> None:
    with pytest.raises(AggregateError, match="pane") as caught:
        place(some_queries(1), 2, 1.0, "pane")  # type: ignore[arg-type]
    assert caught.value.hint == "did you mean panes?"


@pytest.mark.parametrize("capacity", [0, -2, float("nan"), float("inf")])
def test_a_node_needs_a_capacity(capacity: float) -> None:
    with pytest.raises(MuntinError, match="capacity") as caught:
        Node("a", capacity)
    assert "above zero" in str(caught.value.hint)


def test_nodes_have_names_of_their_own() -> None:
    with pytest.raises(MuntinError, match="two nodes are named a") as caught:
        as_nodes(["a", "b", "a"])
    assert caught.value.hint
    assert as_nodes("a") == (Node("a"),)


@pytest.mark.parametrize("technique", ["panes", "slickdeque_noninv"])
def test_the_default_is_the_method_that_balances(technique: Technique) -> None:
    queries = some_queries(2)
    assert place(queries, 4, 5.0, technique) == place(queries, 4, 5.0, technique, "WG_I", seed=0)
