"""Weavings: their parts against exact counts, and the whole against brute force."""

import numpy as np
import pytest

from muntin.errors import WindowError
from muntin.planner.costs.formula import TECHNIQUES, WindowQuery, plan_cost, tree_classes, tree_cost
from muntin.planner.edges.counts import edge_rate
from muntin.planner.trees import greedy, loom
from muntin.planner.trees.groups import group_queries
from muntin.planner.trees.loom import Loom
from muntin.planner.trees.sample import sample_for
from muntin.planner.trees.weave_share import weave_share
from muntin.planner.trees.weaving import all_share, no_share
from muntin.testing.workload import generate
from muntin.windows.edges import SLICINGS


def scaled(queries, factor, shift=0):
    return [WindowQuery(q.range * factor, q.slide * factor, q.phase + shift) for q in queries]


def cheapest(queries, rate, technique):
    """The cost of the best plan there is, over all ways to split queries into trees."""
    size = len(queries)
    cost, best = [0.0] * (1 << size), [0.0] * (1 << size)
    for subset in range(1, 1 << size):
        tree = [queries[each] for each in range(size) if subset >> each & 1]
        cost[subset] = tree_cost(tree, rate, technique).total
        lowest = subset & -subset
        rest = part = subset ^ lowest
        best[subset] = cost[subset]
        while part:
            part = (part - 1) & rest
            best[subset] = min(best[subset], cost[part | lowest] + best[rest ^ part])
    return best[-1]


def test_groups_have_the_edges_of_their_queries():
    random = np.random.default_rng(5)
    queries = [
        WindowQuery(*random.integers(1, 20, 2).tolist(), int(random.integers(20)), slicing)
        for slicing in SLICINGS
        for _ in range(100)
    ]
    groups = group_queries(queries)
    for query, group in zip(queries, groups.member, strict=True):
        assert groups.classes(group) == query.classes
    assert len(groups) == len({query.classes for query in queries})
    assert len(groups.ranges) == len({query.window for query in queries})
    windows = groups.windows(np.arange(len(groups)))
    assert groups.ranges[windows].sum() == sum({q.window: q.range for q in queries}.values())


@pytest.mark.parametrize(
    ("slides", "size"),
    [(range(1, 30), 5), (range(40, 400), 12), (range(5000, 90_000), 9), (range(600, 1200, 60), 6)],
    ids=["dense", "medium", "sparse", "nested"],
)
@pytest.mark.parametrize("fragments", [False, True])
def test_sampled_rates_are_within_one_percent(slides, size, fragments):
    random = np.random.default_rng(size)
    for _ in range(4):
        chosen = random.choice(slides, size).tolist()
        queries = [WindowQuery(s * 3 + (fragments and s // 3), s) for s in chosen]
        groups = group_queries(queries)
        sample = sample_for(groups)
        bits = sample.mark(groups)
        count = np.bitwise_count(np.bitwise_or.reduce(bits, axis=0)).sum()
        found = sample.rate(count, np.bitwise_count(bits).sum(), groups.rates.sum())
        assert found == pytest.approx(float(edge_rate(tree_classes(queries))), rel=0.01)
        assert not sample.whole or found == pytest.approx(
            float(edge_rate(tree_classes(queries))), rel=1e-12
        )


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_the_two_extremes_cost_what_their_trees_cost(technique):
    queries, rate = generate(12, 20, 3.0, seed=1, fragments=True).queries, 3.0
    apart = no_share(queries, rate, technique)
    assert apart.trees == tuple((each,) for each in range(12))
    assert apart.total == pytest.approx(plan_cost([[q] for q in queries], rate, technique))
    assert apart.saving == pytest.approx(0, abs=1e-9)
    together = all_share(queries, rate, technique)
    assert together.trees == (tuple(range(12)),)
    assert together.total == pytest.approx(plan_cost([queries], rate, technique))
    assert together.unshared == pytest.approx(apart.total)


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("rate", [0.002, 0.5, 20.0, 3000.0])
@pytest.mark.parametrize(("size", "fragments"), [(20, True), (150, False)])
def test_never_worse_than_either_extreme(technique, rate, size, fragments):
    queries = generate(size, 90, rate, seed=size, fragments=fragments).queries
    plan = weave_share(queries, rate, technique)
    assert sorted(each for tree in plan.trees for each in tree) == list(range(size))
    assert list(plan.trees) == sorted(plan.trees)
    assert plan.total <= no_share(queries, rate, technique).total
    assert plan.total <= all_share(queries, rate, technique).total
    assert plan == weave_share(queries, rate, technique)
    for tree, cost in zip(plan.trees, plan.costs, strict=True):
        exact = tree_cost([queries[each] for each in tree], rate, technique)
        assert cost.edges == pytest.approx(exact.edges, rel=0.01)


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("seed", range(4))
def test_savings_are_near_the_best_there_are(technique, seed):
    rate = (0.1, 1.0, 8.0, 60.0)[seed]
    queries = generate(7 + seed % 2, 40, rate, seed=seed, fragments=seed % 2 == 1).queries
    plan = weave_share(queries, rate, technique)
    best = plan.unshared - cheapest(queries, rate, technique)
    assert plan.saving >= best / 4 - 1e-9
    assert plan.saving <= best + 1e-9


def test_queries_with_the_same_edges_share_whatever_the_rate():
    queries = [WindowQuery(6, 3), WindowQuery(7, 7), WindowQuery(30, 3), WindowQuery(6, 3)]
    assert weave_share(queries, 1e-9, "panes").trees == ((0, 2, 3), (1,))


def test_the_higher_the_rate_the_fewer_the_trees():
    queries = generate(200, 100, 1, seed=4).queries
    trees = [len(weave_share(queries, rate, "panes").trees) for rate in (0.01, 1, 30, 1e6)]
    assert trees == sorted(trees, reverse=True)
    assert (trees[0], trees[-1]) == (len({q.slide for q in queries}), 1)


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_few_and_many_are_woven_alike(technique, monkeypatch):
    queries = generate(40, 60, 4.0, seed=8, fragments=True).queries
    monkeypatch.setattr(loom, "FEW", 10**6)
    few = weave_share(queries, 4.0, technique)
    monkeypatch.setattr(loom, "FEW", 0)
    many = weave_share(queries, 4.0, technique)
    assert many.total == pytest.approx(few.total, rel=0.06)


@pytest.mark.parametrize("technique", ["panes", "slickdeque_inv"])
def test_likely_partners_and_portions_lose_little(technique, monkeypatch):
    queries = generate(300, 2000, 0.3, seed=2).queries
    every = weave_share(queries, 0.3, technique)
    monkeypatch.setattr(greedy, "BREADTH", 8)
    assert weave_share(queries, 0.3, technique).total == pytest.approx(every.total, rel=0.03)
    monkeypatch.setattr(loom, "PORTION", 150)
    assert weave_share(queries, 0.3, technique).total == pytest.approx(every.total, rel=0.1)


@pytest.mark.parametrize("technique", ["slickdeque_inv", "slickdeque_noninv"])
def test_many_groups_cost_no_more_than_if_every_pair_were_priced(technique, monkeypatch):
    random = np.random.default_rng(15)
    drawn = zip(random.integers(60, 3600, 700), random.integers(10, 600, 700), strict=True)
    queries = [WindowQuery(int(each), int(slide)) for each, slide in drawn]
    every = Loom(queries, 20.0, technique)
    monkeypatch.setattr(greedy, "WORDS", 10**6)
    monkeypatch.setattr(greedy, "BREADTH", 10**6)
    pairs = _total(every)
    monkeypatch.setattr(greedy, "WORDS", 256)
    monkeypatch.setattr(greedy, "BREADTH", 128)
    assert len(every.groups) > 640
    assert _total(every) < 0.99 * pairs


def _total(loom):
    trees, rates = loom.woven(loom.rate)
    assert sorted(np.concatenate(trees).tolist()) == list(range(len(loom.groups)))
    costs = zip(trees, rates, strict=True)
    return sum(loom.tree_cost(members, edges, loom.rate).total for members, edges in costs)


def test_groups_are_marked_alike_by_both_loops():
    for queries in (generate(50, 60, 4.0, seed=3, fragments=True).queries, WIDE):
        groups = Loom(queries, 1.0, "panes").groups
        sample = Loom(queries, 1.0, "panes").sample
        assert np.array_equal(greedy.mark_many(sample, groups), sample.mark(groups))


# Slides of all lengths, with no common period that is short.
WIDE = [WindowQuery(7 * each + 1, each) for each in range(2, 120)]


def test_the_unit_and_origin_of_time_do_not_matter():
    queries = generate(60, 50, 2.0, seed=6, fragments=True).queries
    plan = weave_share(queries, 2.0, "panes")
    micro = weave_share(scaled(queries, 10**6, shift=12345), 2e-6, "panes")
    assert micro.trees == plan.trees
    assert micro.total == pytest.approx(plan.total * 1e-6)


def test_no_queries_are_refused():
    with pytest.raises(WindowError, match="no queries"):
        Loom([], 1.0, "panes")


@pytest.mark.parametrize("technique", [3, 4])
def test_savings_by_chance_stay_below_their_bounds(technique):
    from muntin.planner.trees import merges as merging

    random = np.random.default_rng(technique)
    state = np.zeros((400, merging.COLUMNS))
    state[:, merging.EDGES] = 10.0 ** random.uniform(-6, 0, 400)
    state[:, merging.COUNT] = np.ceil(10.0 ** random.uniform(0, 3, 400))
    state[:, merging.LONGEST] = 10.0 ** random.uniform(0, 6, 400)
    state[:, merging.COST] = 10.0 ** random.uniform(-3, 3, 400)
    wanted = (merging.EDGES, merging.COUNT, merging.LONGEST, merging.COST)
    columns = [np.ascontiguousarray(state[:, each]) for each in wanted]
    prices = merging.Prices(technique, float(random.uniform(0, 100)), 0.5, 1.0, False)
    bounds = np.empty(400)
    for tree in range(0, 400, 16):
        merging.bound_savings(state[tree], prices, *columns, bounds)
        for other in range(400):
            one, two = state[tree, merging.EDGES], state[other, merging.EDGES]
            edges = max(one, two, one + two - one * two)
            cost = merging.merged_cost(state, prices, tree, other, edges)
            assert state[other, merging.COST] - cost <= bounds[other]
