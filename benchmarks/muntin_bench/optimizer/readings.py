"""Readings of WG_I: what comes of Table 9 where the thesis can be read in more than one way.

Section 6.5.3 of "Algorithms and Optimizations for Incremental Window-Based Aggregations". The text
weighs weaving against grouping by what each adds to the total cost, Algorithm 6 by what the node
costs afterwards. The text begins with random queries, the algorithm with the first ones; neither
says in which order the others follow. Section 6.5 calls G_TL what is left of the category without
weaving, and G_TL goes from expensive to cheap. A note lets all methods merge equal slides first.

WG_I is compared with WG_TN, which has two readings of its own: Section 6.5.2 lets it stop weaving
once there are no more trees than nodes, Algorithm 5 does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import TypeAlias

from muntin.planner.placement.board import Board, as_nodes
from muntin.planner.placement.improvement import merge_identical, weave_pairs
from muntin.planner.placement.methods import to_lowest
from muntin.planner.placement.trees import Tree, Weaver, WovenCosts
from muntin_bench.optimizer.outcomes import Combination, Outcome, Outcomes, gaps, load_of
from muntin_bench.report import Section

# What is kept lowest when a node's cost grows by so much.
Score: TypeAlias = Callable[[Board, int, float], tuple[float, ...]]


def node_cost(board: Board, node: int, added: float) -> tuple[float, ...]:
    """What the node costs afterwards."""
    return (board.costs[node] + added,)


def total_cost(board: Board, node: int, added: float) -> tuple[float, ...]:
    """What is added to the total."""
    return (added,)


def highest_cost(board: Board, node: int, added: float) -> tuple[float, ...]:
    """The cost of the most expensive node afterwards, then what is added."""
    return max(*board.costs, board.costs[node] + added), added


@dataclass(frozen=True)
class Reading:
    """How a query is inserted.

    Attributes:
        tree: What decides into which tree it would be woven.
        choice: What decides between that and a tree of its own on the cheapest node.
        falling: Whether queries come from expensive to cheap, the first N one to a node;
            otherwise N drawn at random have a node each, and the others come in order.
    """

    tree: Score
    choice: Score
    falling: bool = False


READINGS: Mapping[str, Reading] = {
    "as the text has it": Reading(node_cost, total_cost),
    "Algorithm 6": Reading(node_cost, node_cost),
    "as the text has it, expensive first": Reading(node_cost, total_cost, falling=True),
    "Algorithm 6, expensive first": Reading(node_cost, node_cost, falling=True),
    "lowest total": Reading(total_cost, total_cost),
    "lowest highest node": Reading(highest_cost, highest_cost),
}

COLUMNS = (
    "reading of WG_I",
    "merged first",
    "best in maximum cost",
    "alone",
    "else behind by",
    "best in total cost",
    "else behind by",
    "WG_TN best in maximum cost",
    "else behind by",
    "WG_TN best in total cost",
    "else behind by",
)


def readings_section(
    chosen: Sequence[Combination], apart: Outcomes, merged: Outcomes, seed: int
) -> Section:
    """Every reading among the thirteen methods, where all merge equal edges first and where none.

    What is built comes first: it merges up to a limit, whatever the others do; then the same
    against W_TN and WG_TN that stop as 6.5.2 has it. W_I is read as WG_I is, but for grouping. A
    win that others share counts; those that none shares are counted beside.
    """
    stopped = [
        {**given, **_stopped(each, seed, n)}
        for n, (given, each) in enumerate(zip(apart, chosen, strict=True))
    ]
    rows = [
        ("as it is built: expensive first", "up to a node's share", *_shares(apart)),
        ("the same, WG_TN stops as 6.5.2 has it", "up to a node's share", *_shares(stopped)),
    ]
    for first, outcomes in (("no", apart), ("yes", merged)):
        read = [_read(each, seed, n, first == "yes") for n, each in enumerate(chosen)]
        for name in READINGS:
            found = [{**given, **one[name]} for given, one in zip(outcomes, read, strict=True)]
            rows.append((name, first, *_shares(found)))
    thesis = ("thesis", "", "80%", "", "3%", "5%", "9%", "17%", "48%", "90%", "0.2%")
    title = f"readings of WG_I, {len(chosen)} combinations of Table 8"
    return Section(title, COLUMNS, (*rows, thesis))


def _shares(found: Outcomes) -> tuple[str, ...]:
    highest, total = gaps(found, "maximum"), gaps(found, "total")
    others = [name for name in highest if name != "WG_I"]
    alone = fmean(
        gap == 0 and all(highest[name][n] > 0 for name in others)
        for n, gap in enumerate(highest["WG_I"])
    )
    best, behind = _best_and_behind(highest["WG_I"])
    return (
        best,
        f"{alone:.0%}",
        behind,
        *_best_and_behind(total["WG_I"]),
        *_best_and_behind(highest["WG_TN"]),
        *_best_and_behind(total["WG_TN"]),
    )


def _best_and_behind(own: Sequence[float]) -> tuple[str, str]:
    behind = [gap for gap in own if gap > 0]
    return f"{1 - len(behind) / len(own):.0%}", f"{fmean(behind):.1%}" if behind else "-"


def _stopped(each: Combination, seed: int, number: int) -> dict[str, Outcome]:
    """W_TN and WG_TN that weave no further once there are no more trees than nodes."""
    load = load_of(each, seed + number)
    weaver = WovenCosts(load.queries, load.rate, "panes")
    trees = [weaver.tree(query) for query in range(len(load.queries))]
    found = {}
    for method, most in (("W_TN", each.nodes), ("WG_TN", None)):
        board = Board(as_nodes(each.nodes), weaver)
        woven = weave_pairs(trees, weaver, most, enough=each.nodes)
        to_lowest(board, woven, Random(seed), "G")
        found[method] = Outcome(sum(board.costs), max(board.costs), 0.0)
    return found


def _read(each: Combination, seed: int, number: int, merge: bool) -> dict[str, dict[str, Outcome]]:
    """W_I and WG_I by every reading, over trees that are worked out once."""
    load = load_of(each, seed + number)
    weaver = WovenCosts(load.queries, load.rate, "panes")
    trees = [weaver.tree(query) for query in range(len(load.queries))]
    if merge:
        trees = merge_identical(trees, weaver)
    return {
        name: {
            method: _placed(reading, trees, weaver, each.nodes, seed, group=method == "WG_I")
            for method in ("W_I", "WG_I")
        }
        for name, reading in READINGS.items()
    }


def _placed(
    reading: Reading, trees: Sequence[Tree], weaver: Weaver, nodes: int, seed: int, *, group: bool
) -> Outcome:
    board = Board(as_nodes(nodes), weaver)
    if reading.falling:
        order = sorted(range(len(trees)), key=lambda place: -trees[place].cost)
        first = order[:nodes]
    else:
        order = list(range(len(trees)))
        first = Random(seed).sample(order, min(nodes, len(trees)))
    board.spread(trees[place] for place in first)
    begun = set(first)
    for place in order:
        if place not in begun:
            _insert(board, trees[place], reading, group)
    return Outcome(sum(board.costs), max(board.costs), 0.0)


def _insert(board: Board, tree: Tree, reading: Reading, group: bool) -> None:
    options = [
        (reading.tree(board, node, added), node, place, added)
        for node, held in enumerate(board.trees)
        for place in range(len(held))
        for added in [board.increase(node, place, tree)]
    ]
    _, node, place, added = min(options)
    cheapest = board.lowest(tree.cost)
    grouped = reading.choice(board, cheapest, tree.cost) < reading.choice(board, node, added)
    if group and grouped:
        board.group(cheapest, tree)
    else:
        board.weave(node, place, tree)
