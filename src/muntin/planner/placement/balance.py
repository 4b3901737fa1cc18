"""Balance of weights over nodes: whole weights move, none is split.

A placement is a list that gives every weight its node; loads are sums of weights over capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from muntin._typing import Floats

# A step must lower the highest load by more than rounding can.
_GAIN = 1e-9


def sums(weights: Sequence[float], where: Sequence[int], nodes: int) -> Floats:
    """The total weight of every node; weights at -1 are nowhere.

    >>> sums([5.0, 1.0, 2.0], [0, -1, 0], nodes=2).tolist()
    [7.0, 0.0]
    """
    # One more at the end, which -1 names.
    totals = np.zeros(nodes + 1)
    np.add.at(totals, np.asarray(where, dtype=np.int64), weights)
    return totals[:nodes]


def settle(
    weights: Sequence[float], where: list[int], capacities: Floats, items: Iterable[int]
) -> None:
    """Put items on nodes, the heaviest first, each where the load ends up lowest.

    >>> where = [-1, -1, -1]
    >>> settle([1.0, 3.0, 2.0], where, np.ones(2), range(3))
    >>> where
    [1, 0, 1]
    """
    totals = sums(weights, where, len(capacities))
    for item in sorted(items, key=lambda each: -weights[each]):
        node = int(np.argmin((totals + weights[item]) / capacities))
        where[item] = node
        totals[node] += weights[item]


def relieve(
    weights: Sequence[float], where: list[int], capacities: Floats, enough: float = 0.0
) -> int:
    """Move or swap weights while the highest load falls and is above `enough`.

    Each step takes from the node with the highest load: the move after which the two loads
    involved are lowest, or, where no move helps, the best swap. Returns the number of steps.

    >>> where = [0, 0, 1, 1]
    >>> relieve([5.0, 4.0, 2.0, 1.0], where, np.ones(2)), where
    (2, [0, 1, 1, 0])
    """
    values, nodes, steps = np.asarray(weights, dtype=np.float64), np.array(where, dtype=int), 0
    totals = sums(weights, where, len(capacities))
    # A limit for the sake of inputs that improve by a hair in every step.
    while steps < 4 * len(where) + 16:
        loads = totals / capacities
        high = int(np.argmax(loads))
        if loads[high] <= enough:
            break
        goal = float(loads[high]) * (1 - _GAIN)
        step = _best_move(values, nodes, totals, capacities, high, goal)
        step = step or _best_swap(values, nodes, totals, capacities, high, goal)
        if step is None:
            break
        for item, node in step:
            totals[nodes[item]] -= values[item]
            totals[node] += values[item]
            nodes[item] = node
        steps += 1
    where[:] = nodes.tolist()
    return steps


Step = tuple[tuple[int, int], ...]


def _best_move(
    values: Floats,
    nodes: npt.NDArray[np.int64],
    totals: Floats,
    capacities: Floats,
    high: int,
    goal: float,
) -> Step | None:
    items = np.flatnonzero(nodes == high)
    # The lightest of those that do as well: less is carried over.
    items = items[np.argsort(values[items], kind="stable")]
    given = values[items]
    left = (totals[high] - given[:, None]) / capacities[high]
    grown = (totals[None, :] + given[:, None]) / capacities[None, :]
    grown[:, high] = np.inf
    found = _lowest(np.maximum(left, grown), goal)
    return None if found is None else ((int(items[found[0]]), found[1]),)


def _best_swap(
    values: Floats,
    nodes: npt.NDArray[np.int64],
    totals: Floats,
    capacities: Floats,
    high: int,
    goal: float,
) -> Step | None:
    """The best swap: of each node, only the weights nearest to what would make both loads equal."""
    items, best, found = np.flatnonzero(nodes == high), goal, None
    for node in range(len(totals)):
        others = np.flatnonzero(nodes == node)
        if node == high or not len(others):
            continue
        others = others[np.argsort(values[others], kind="stable")]
        both = capacities[high] + capacities[node]
        ideal = (totals[high] * capacities[node] - totals[node] * capacities[high]) / both
        after = np.searchsorted(values[others], values[items] - ideal)
        for near in (np.maximum(after - 1, 0), np.minimum(after, len(others) - 1)):
            gain = values[items] - values[others[near]]
            loads = np.maximum(
                (totals[high] - gain) / capacities[high], (totals[node] + gain) / capacities[node]
            )
            lowest = int(np.argmin(loads))
            if loads[lowest] < best:
                best = float(loads[lowest])
                found = (int(items[lowest]), node), (int(others[near[lowest]]), high)
    return found


def _lowest(loads: Floats, goal: float) -> tuple[int, int] | None:
    """Where the lowest load stands, if it is below the goal."""
    if not loads.size:
        return None
    row, column = np.unravel_index(int(np.argmin(loads)), loads.shape)
    return (int(row), int(column)) if loads[row, column] < goal else None


def fill(weights: Sequence[float], where: list[int], capacities: Floats, node: int) -> None:
    """Move weights to a node that has none, up to its fair share of the total.

    They come from whichever node has the highest load, the heaviest that fits first. Where not
    even one fits the share, the one that lowers the highest load most comes alone.

    >>> where = [0, 0, 0, 0]
    >>> fill([1.0, 1.0, 1.0, 1.0], where, np.ones(2), 1)
    >>> where
    [1, 1, 0, 0]
    """
    totals = sums(weights, where, len(capacities))
    share = float(totals.sum() * capacities[node] / capacities.sum()) * (1 + _GAIN)
    while True:
        high = int(np.argmax(totals / capacities))
        ceiling = float(totals[high] / capacities[high]) * (1 - _GAIN)
        held = [] if high == node else [i for i, each in enumerate(where) if each == high]
        below = [i for i in held if (totals[node] + weights[i]) / capacities[node] < ceiling]
        fitting = [i for i in below if totals[node] + weights[i] <= share and weights[i] > 0]
        if fitting:
            item = max(fitting, key=lambda i: (weights[i], -i))
        elif below and not totals[node]:
            item = min(below, key=lambda i: (weights[i], i))
        else:
            return
        totals[high] -= weights[item]
        totals[node] += weights[item]
        where[item] = node
