"""Join orders: the tables of thesis 002, chapter 5, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest

from muntin.operators.joins.orders import (
    JoinStream,
    best_order,
    greedy_order,
    join_size,
    order_cost,
    probe_cost,
    probe_order,
)

TABLES = {
    "5.3": [(10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5)],
    # The text prints a rate of 100 for the first stream; its numbers are those of 10.
    "5.5": [(10, 100, 40), (1, 100, 100), (1, 100, 8), (1, 100, 5)],
    "5.6": [(11, 100, 200), (10, 100, 100), (1, 100, 65), (1, 100, 20)],
}


def _streams(table: str) -> dict[str, JoinStream]:
    return {str(i): JoinStream(*each) for i, each in enumerate(TABLES[table], 1)}


def _cost(table: str, order: str) -> float:
    streams = _streams(table)
    return round(float(order_cost([streams[name] for name in order])), 1)


@pytest.mark.parametrize(
    ("table", "order", "cost"),
    [
        ("5.3", "1234", 16000),
        ("5.3", "4321", 86850),
        ("5.5", "2134", 16200),
        ("5.5", "2341", 42600),
        ("5.5", "1234", 21000),
        ("5.6", "3412", 49542.3),
        ("5.6", "3142", 47976.9),
        ("5.6", "3124", 51953.8),
        ("5.6", "1234", 68200),
        ("5.6", "2134", 79000),
    ],
)
def test_costs_of_the_thesis(table: str, order: str, cost: float) -> None:
    assert _cost(table, order) == cost


@pytest.mark.parametrize(
    ("table", "best", "cost", "worst", "mean"),
    [
        ("5.3", "1234", 16000, 86850, 45325),
        ("5.5", "2134", 16200, 135150, None),
        ("5.6", "3142", 47976.9, 79000, 63361.5),
    ],
)
def test_all_orders_are_weighed(
    table: str, best: str, cost: float, worst: float, mean: float | None
) -> None:
    streams = _streams(table)
    order, found = best_order(streams)
    every = [_cost(table, "".join(each)) for each in permutations(streams)]
    assert ("".join(order), round(float(found), 1)) == (best, cost)
    assert (min(every), max(every)) == (cost, worst)
    if mean is not None:
        assert round(sum(every) / len(every), 1) == mean


def test_sizes_of_joins_and_costs_of_single_streams() -> None:
    streams = _streams("5.3")
    sizes = {pair: join_size([streams[n] for n in pair]) for pair in ("12", "13", "14", "34")}
    assert sizes == {"12": 200, "13": 400, "14": 600, "34": 1500}
    assert join_size([streams[n] for n in "123"]) == 800
    assert join_size([streams[n] for n in "124"]) == 1200
    others = [[streams[n] for n in "1234" if n != own] for own in "1234"]
    costs = [probe_cost(streams[own], rest) for own, rest in zip("1234", others, strict=True)]
    assert costs == [3800, 3800, 2400, 6000]


@pytest.mark.parametrize(
    ("table", "greedy", "chosen"),
    [("5.3", "1234", "1234"), ("5.5", "2341", "2134"), ("5.6", "3412", "3142")],
)
def test_the_heuristic_starts_greedily_and_moves_fast_streams_up(
    table: str, greedy: str, chosen: str
) -> None:
    streams = _streams(table)
    order, cost = best_order(streams, "heuristic")
    assert ("".join(greedy_order(streams)), "".join(order)) == (greedy, chosen)
    assert cost >= best_order(streams)[1]


def test_each_stream_may_probe_in_an_order_of_its_own() -> None:
    streams = _streams("5.5")
    costs, names = [], sorted(streams)
    for name in names:
        others = [streams[other] for other in names if other != name]
        order = probe_order(streams[name], others)
        assert sorted(order) == [0, 1, 2]
        costs.append(probe_cost(streams[name], [others[place] for place in order]))
    assert sum(costs, Fraction(0)) <= best_order(streams)[1]
