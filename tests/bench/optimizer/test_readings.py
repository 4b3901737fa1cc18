"""Readings of WG_I: the method is one of them, and without weaving there is G_TL."""

from __future__ import annotations

from random import Random

import pytest

from muntin.planner.costs.formula import WindowQuery
from muntin.planner.placement.board import Board, as_nodes
from muntin.planner.placement.improvement import weave_pairs
from muntin.planner.placement.optimizers import METHODS, place
from muntin.planner.placement.trees import WovenCosts
from muntin_bench.optimizer import readings
from muntin_bench.optimizer.outcomes import Combination, Outcome, outcomes
from muntin_bench.optimizer.readings import READINGS

SMALL = [
    Combination(40, 3, 10, 12, 0, 5, "normal"),
    Combination(40, 4, 1, 12, 1, 5, "prime"),
    Combination(4, 8, 1, 12, 0, 5, "normal"),
]
FALLING = "as the text has it, expensive first"


@pytest.mark.parametrize("seed", [0, 5])
def test_where_all_is_merged_the_method_is_the_reading_with_expensive_first(seed: int) -> None:
    made = outcomes(SMALL, seed, ("W_I", "WG_I"), merge=True)
    for number, (each, methods) in enumerate(zip(SMALL, made, strict=True)):
        read = readings._read(each, seed, number, merge=True)[FALLING]
        for method, outcome in methods.items():
            assert read[method].total == pytest.approx(outcome.total)
            assert read[method].maximum == pytest.approx(outcome.maximum)


def test_expensive_first_without_weaving_is_g_tl() -> None:
    # No rows to save: slides that share few edges are best apart.
    rng = Random(2)
    slides = (5, 7, 11, 13, 17, 19, 23, 29)
    queries = [WindowQuery(slide * rng.randint(2, 9), slide) for slide in slides]
    costs = WovenCosts(queries, 0.0, "panes")
    trees = [costs.tree(query) for query in range(len(queries))]
    found = readings._placed(READINGS[FALLING], trees, costs, 3, 0, group=True)
    wanted = place(queries, 3, 0.0, "panes", "G_TL")
    assert found.total == pytest.approx(wanted.total_cost)
    assert found.maximum == pytest.approx(wanted.max_cost)


def test_scores_tell_nodes_apart() -> None:
    costs = WovenCosts([WindowQuery(4, 2), WindowQuery(9, 3)], 1.0, "panes")
    board = Board(as_nodes(2), costs)
    board.group(0, costs.tree(0))
    board.group(1, costs.tree(1))
    assert board.costs == [2.0, 2.0]
    assert readings.node_cost(board, 0, 3.0) == (5.0,)
    assert readings.total_cost(board, 0, 3.0) == (3.0,)
    assert readings.highest_cost(board, 0, -1.0) == (2.0, -1.0)


def test_weaving_that_stops_has_a_tree_for_every_node() -> None:
    # Rows are dear, so that weaving saves to the end: one tree. It stops at one for each node.
    each = Combination(40, 4, 1000, 12, 0, 5, "normal")
    plain = outcomes([each], 0, ("W_TN", "WG_TN"))[0]
    stopped = readings._stopped(each, 0, 0)
    assert all(1000 < outcome.total < 2000 for outcome in plain.values())
    assert all(4000 < outcome.total < 5000 for outcome in stopped.values())
    assert all(1000 < outcome.maximum < plain["WG_TN"].maximum for outcome in stopped.values())


def test_weaving_stops_even_among_equal_edges() -> None:
    queries = [WindowQuery(5 * overlap, 5) for overlap in (1, 2, 3, 4)]
    costs = WovenCosts(queries, 10.0, "panes")
    trees = [costs.tree(query) for query in range(4)]
    assert len(weave_pairs(trees, costs, enough=3)) == 3
    assert len(weave_pairs(trees, costs)) == 1


def test_wins_that_are_shared_are_not_alone() -> None:
    found = [
        {"WG_TN": Outcome(1.0, 2.0, 0.0), "WG_I": Outcome(1.5, 2.0, 0.0)},
        {"WG_TN": Outcome(1.0, 3.0, 0.0), "WG_I": Outcome(1.5, 2.0, 0.0)},
    ]
    assert readings._shares(found) == (
        *("100%", "50%", "-"),
        *("0%", "50.0%"),
        *("50%", "50.0%", "100%", "-"),
    )


def test_the_table_has_every_reading_twice_and_the_thesis() -> None:
    apart, merged = (outcomes(SMALL, 0, METHODS, merge=merge) for merge in (False, True))
    table = readings.readings_section(SMALL, apart, merged, 0)
    assert len(table.rows) == 2 + 2 * len(READINGS) + 1
    assert {len(row) for row in table.rows} == {len(table.columns)}
