"""TriWeave: its cost formula, and where it pays."""

import pytest

from muntin.planner.costs.formula import TECHNIQUES, WindowQuery, tree_cost
from muntin.planner.trees.tri_weave import tri_weave
from muntin.planner.trees.weave_share import weave_share
from muntin.planner.trees.weaving import all_share
from muntin.testing.workload import generate


def test_the_formula_by_hand():
    # Slides 2 and 3: 4 of 6 positions are edges, 3 in one tree and 2 in the other.
    plan = tri_weave([WindowQuery(6, 2), WindowQuery(9, 3)], rate=10, technique="panes")
    assert plan.combined == 10
    assert [cost.partial for cost in plan.costs] == pytest.approx([4 / 6 - 3 / 6, 4 / 6 - 2 / 6])
    assert plan.total == pytest.approx(10 + 1 / 6 + 2 / 6 + 3 / 6 * 3 + 2 / 6 * 3)


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("rate", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("size", [25, 120])
def test_never_dearer_than_separate_partials_or_one_tree(technique, rate, size):
    queries = generate(size, 80, rate, seed=size).queries
    plan = tri_weave(queries, rate, technique)
    assert sorted(each for tree in plan.trees for each in tree) == list(range(size))
    assert plan.total <= all_share(queries, rate, technique).total * (1 + 1e-9)
    # Both merges are greedy, and may end in different places.
    assert plan.total <= weave_share(queries, rate, technique).total * 1.02
    assert plan.method == "tri_weave"


def test_many_trees_cost_little_where_rows_outnumber_edges():
    queries = generate(100, 1000, 50.0, slides="factors", overlap=1000, seed=3).queries
    tri = tri_weave(queries, 50.0, "panes")
    woven = weave_share(queries, 50.0, "panes")
    assert len(tri.trees) > len(woven.trees)
    assert tri.total < woven.total


def test_one_tree_costs_the_same_either_way():
    queries = [WindowQuery(6, 2), WindowQuery(8, 4)]
    plan = tri_weave(queries, 1000, "slickdeque_inv")
    if len(plan.trees) == 1:
        assert plan.total == tree_cost(queries, 1000, "slickdeque_inv").total
    assert plan.total <= tree_cost(queries, 1000, "slickdeque_inv").total
