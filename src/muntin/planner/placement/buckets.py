"""Trees that are woven already, on Spark's buckets: balanced, and rarely moved."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Generic, TypeVar

import numpy as np

from muntin._typing import Floats
from muntin.errors import MuntinError
from muntin.planner.placement.balance import relieve, settle, sums
from muntin.planner.placement.board import Nodes, as_nodes

Key = TypeVar("Key", bound=Hashable)

# Loads up to this many times what is best keep trees where they are: a move costs their state.
IMBALANCE = 1.5


@dataclass(frozen=True)
class BucketPlacement(Generic[Key]):
    """The node of every tree, the load of every node, and the trees that had another node."""

    node_of: dict[Key, str]
    loads: dict[str, float]
    moved: tuple[Key, ...]

    @property
    def max_load(self) -> float:
        """The highest load."""
        return max(self.loads.values())


def place_trees(
    costs: Mapping[Key, float],
    nodes: Nodes,
    *,
    previous: Mapping[Key, str] | None = None,
    bound: float = IMBALANCE,
) -> BucketPlacement[Key]:
    """Place trees on nodes by what they cost, keeping those that have a node where they are.

    The rule is that of WG_I for trees that may not be woven any more: each goes where the node's
    cost ends up lowest. Trees that arrive together go the heaviest first.

    Args:
        costs: What each tree costs; zero is allowed.
        nodes: How many nodes there are, their names, or nodes with capacities.
        previous: The node that each tree has; others, and those whose node is gone, are placed.
        bound: Trees that have a node move only where the highest load exceeds this many times
            the lowest that is conceivable, and no more of them than brings it below.

    >>> first = place_trees({"a": 5.0, "b": 4.0, "c": 3.0}, nodes=2)
    >>> first.node_of, first.loads
    ({'a': '0', 'b': '1', 'c': '1'}, {'0': 5.0, '1': 7.0})
    >>> again = place_trees({"b": 4.0, "c": 3.0, "d": 3.0}, 2, previous=first.node_of)
    >>> again.node_of, again.moved
    ({'b': '1', 'c': '1', 'd': '0'}, ())
    >>> place_trees({"b": 4.0, "c": 3.0}, 2, previous=again.node_of).moved
    ('c',)
    """
    _check(costs, bound)
    made = as_nodes(nodes)
    places = {node.name: i for i, node in enumerate(made)}
    capacities = np.array([node.capacity for node in made])
    keys, weights = list(costs), [float(cost) for cost in costs.values()]
    had = [(previous or {}).get(key) for key in keys]
    where = [-1 if name is None else places.get(name, -1) for name in had]
    settle(weights, where, capacities, [i for i, node in enumerate(where) if node < 0])
    if any(name is not None for name in had):
        relieve(weights, where, capacities, enough=bound * lowest_load(weights, capacities))
    loads = sums(weights, where, len(made)) / capacities
    names = [made[node].name for node in where]
    return BucketPlacement(
        dict(zip(keys, names, strict=True)),
        {node.name: float(load) for node, load in zip(made, loads, strict=True)},
        tuple(
            key
            for key, old, name in zip(keys, had, names, strict=True)
            if old is not None and old != name
        ),
    )


def lowest_load(weights: list[float], capacities: Floats) -> float:
    """What no placement gets below: the mean load, and the heaviest weight on the largest node.

    >>> lowest_load([6.0, 1.0, 1.0], np.array([1.0, 1.0]))
    6.0
    """
    heaviest = max(weights, default=0.0) / float(capacities.max())
    return max(sum(weights) / float(capacities.sum()), heaviest)


def _check(costs: Mapping[Key, float], bound: float) -> None:
    for key, cost in costs.items():
        if not (isfinite(cost) and cost >= 0):
            raise MuntinError(
                f"tree {key!r} costs {cost}", hint="give operations per time unit, at least 0"
            )
    if not bound >= 1:
        raise MuntinError(
            f"an imbalance of {bound} cannot be kept",
            hint="give a bound of at least 1; 1.5 lets a node have half more than its share",
        )
