"""Queries that join and leave a plan, against plans made from scratch."""

import numpy as np
import pytest

from muntin.errors import UnknownQueryError, WindowError
from muntin.planner.costs.formula import TECHNIQUES, WindowQuery, plan_cost
from muntin.planner.trees.incremental import Weaver
from muntin.planner.trees.weave_share import weave_share
from muntin.testing.workload import generate


def changed(weaver, pool, steps, seed):
    """Let queries of a pool join and those that run leave, at random."""
    random = np.random.default_rng(seed)
    waiting = list(pool)
    for _ in range(steps):
        if random.random() < 0.5 and waiting:
            weaver.add(waiting.pop())
        elif len(weaver.queries) > 1:
            weaver.remove(weaver.queries[random.integers(len(weaver.queries))].name)


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize(("bound", "average"), [(0.25, 1.05), (float("inf"), 1.1)])
def test_ends_near_a_plan_from_scratch(technique, bound, average):
    ratios = []
    for seed in range(3):
        rate = (0.5, 5.0, 50.0)[seed % 3]
        pool = generate(80, 60, rate, seed=seed, fragments=seed % 2 == 1).queries
        weaver = Weaver(pool[:25], rate, technique, bound=bound)
        changed(weaver, pool[25:], 20, seed)
        ratios.append(weaver.weaving.total / weave_share(weaver.queries, rate, technique).total)
    assert np.mean(ratios) < average


def test_the_plan_is_rebuilt_once_it_has_drifted_too_far():
    pool = generate(60, 50, 5.0, seed=3).queries
    weaver = Weaver(pool[:20], 5.0, "panes", bound=0.2)
    for query in pool[20:]:
        weaver.add(query)
        assert weaver.drift <= 0.2
    assert weaver.rebuilds > 0
    assert sorted(each for tree in weaver.weaving.trees for each in tree) == list(range(60))


def test_the_plan_says_what_it_costs():
    pool = generate(30, 40, 5.0, seed=9, fragments=True).queries
    weaver = Weaver(pool[:15], 5.0, "panes", bound=float("inf"))
    changed(weaver, pool[15:], 20, seed=2)
    plan, queries = weaver.weaving, weaver.queries
    trees = [[queries[each] for each in tree] for tree in plan.trees]
    assert plan.total == pytest.approx(weaver.total)
    assert plan.total == pytest.approx(plan_cost(trees, 5.0, "panes"), rel=0.01)
    assert plan.unshared == pytest.approx(plan_cost([[q] for q in queries], 5.0, "panes"))


def test_a_query_joins_the_tree_with_its_edges_and_leaves_the_rest_as_it_was():
    running = [WindowQuery(6, 3, name="a"), WindowQuery(7, 7, name="b")]
    weaver = Weaver(running, 0.1, "panes", bound=float("inf"))
    before = weaver.weaving
    weaver.add(WindowQuery(9, 3, name="c"))
    assert weaver.weaving.trees == ((0, 2), (1,))
    weaver.remove("c")
    assert weaver.weaving == before


def test_edges_the_sample_cannot_tell_make_another_sample():
    weaver = Weaver([WindowQuery(600, 60, name="a")], 100.0, "panes", bound=float("inf"))
    weaver.add(WindowQuery(35, 7, phase=3, name="b"))
    assert [cost.edges for cost in weaver.weaving.costs] == pytest.approx(
        [1 / 60 + 1 / 7 - 1 / 420]
    )
    assert weaver.rebuilds == 0


def test_all_may_leave_and_one_come_back():
    weaver = Weaver([WindowQuery(6, 3, name="a")], 1.0, "panes")
    weaver.remove("a")
    assert (weaver.queries, weaver.weaving.trees, weaver.total) == ((), (), 0)
    weaver.add(WindowQuery(6, 3, name="a"))
    assert weaver.weaving.trees == ((0,),)


def test_names_are_checked_and_nothing_changes():
    weaver = Weaver([WindowQuery(6, 3, name="spikes")], 1.0, "panes")
    with pytest.raises(WindowError, match="'spikes' runs already"):
        weaver.add(WindowQuery(8, 4, name="spikes"))
    with pytest.raises(UnknownQueryError, match="did you mean spikes"):
        weaver.remove("spike")
    assert weaver.queries == (WindowQuery(6, 3, name="spikes"),)
