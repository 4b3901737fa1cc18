"""What a placement is, and how it follows nodes that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muntin._typing import Floats
from muntin.errors import MuntinError, did_you_mean
from muntin.planner.placement.balance import fill, relieve, settle
from muntin.planner.placement.board import Node, check_unique


@dataclass(frozen=True)
class PlacedTree:
    """Queries woven into one tree, by number, what the tree costs, and the node that runs it."""

    queries: tuple[int, ...]
    cost: float
    node: str


@dataclass(frozen=True)
class Placement:
    """Trees on nodes, with the two costs that matter.

    >>> nodes = (Node("a"), Node("b", capacity=2))
    >>> trees = (PlacedTree((0,), 10.0, "a"), PlacedTree((1,), 30.0, "b"))
    >>> placed = Placement("G_TL", nodes, trees)
    >>> placed.total_cost, placed.max_cost, placed.loads
    (40.0, 30.0, {'a': 10.0, 'b': 15.0})
    """

    method: str
    nodes: tuple[Node, ...]
    trees: tuple[PlacedTree, ...]

    @cached_property
    def node_costs(self) -> dict[str, float]:
        """The cost of every node, those without trees at zero."""
        costs = {node.name: 0.0 for node in self.nodes}
        for tree in self.trees:
            costs[tree.node] += tree.cost
        return costs

    @property
    def total_cost(self) -> float:
        """The sum over all nodes (equation 6.1)."""
        return sum(self.node_costs.values())

    @property
    def max_cost(self) -> float:
        """The cost of the most expensive node (equation 6.2)."""
        return max(self.node_costs.values())

    @cached_property
    def loads(self) -> dict[str, float]:
        """The cost of every node over its capacity."""
        return {node.name: self.node_costs[node.name] / node.capacity for node in self.nodes}

    @property
    def max_load(self) -> float:
        """The highest load, which is the maximum cost where all capacities are 1."""
        return max(self.loads.values())

    @cached_property
    def node_of(self) -> dict[int, str]:
        """The node of every query."""
        return {query: tree.node for tree in self.trees for query in tree.queries}

    def with_node(self, node: Node | str) -> Change:
        """The placement with one node more, which takes trees up to its fair share.

        Trees move whole, from the most loaded nodes to the one that joins and nowhere else. What
        moves costs at most the share of that node, the total over all capacity times its own;
        where no tree is that small, one moves if that lowers the highest load.
        """
        joining = node if isinstance(node, Node) else Node(node)
        nodes = (*self.nodes, joining)
        check_unique(nodes)
        where = self._where()
        fill(self._weights(), where, _capacities(nodes), len(nodes) - 1)
        return self._moved(nodes, where)

    def without_node(self, name: str) -> Change:
        """The placement without a node: its trees, and no others, move where load is lowest."""
        names = [node.name for node in self.nodes]
        if name not in names:
            raise MuntinError(f"no node is named {name}", hint=did_you_mean(name, names))
        if len(names) == 1:
            raise MuntinError(
                f"{name} is the last node", hint="add another with `with_node` before it leaves"
            )
        leaving = names.index(name)
        nodes = tuple(node for node in self.nodes if node.name != name)
        where = [each - (each > leaving) if each != leaving else -1 for each in self._where()]
        homeless = [i for i, each in enumerate(where) if each < 0]
        settle(self._weights(), where, _capacities(nodes), homeless)
        return self._moved(nodes, where)

    def improved(self) -> Change:
        """The placement after trees were moved and swapped for as long as the highest load fell.

        The total cost stays as it is: no tree is woven anew.
        """
        where = self._where()
        relieve(self._weights(), where, _capacities(self.nodes))
        return self._moved(self.nodes, where)

    def _weights(self) -> list[float]:
        return [tree.cost for tree in self.trees]

    def _where(self) -> list[int]:
        places = {node.name: i for i, node in enumerate(self.nodes)}
        return [places[tree.node] for tree in self.trees]

    def _moved(self, nodes: tuple[Node, ...], where: Sequence[int]) -> Change:
        pairs = list(zip(self.trees, where, strict=True))
        trees = tuple(replace(tree, node=nodes[node].name) for tree, node in pairs)
        moves = tuple(
            Move(tree.queries, tree.cost, tree.node, nodes[node].name)
            for tree, node in pairs
            if tree.node != nodes[node].name
        )
        return Change(Placement(self.method, nodes, trees), moves)


@dataclass(frozen=True)
class Move:
    """A tree that goes from one node to another."""

    queries: tuple[int, ...]
    cost: float
    origin: str
    target: str


@dataclass(frozen=True)
class Change:
    """A placement and the trees that moved to get there."""

    placement: Placement
    moves: tuple[Move, ...]

    @property
    def moved_cost(self) -> float:
        """What the trees that moved cost together."""
        return sum(move.cost for move in self.moves)


def _capacities(nodes: Sequence[Node]) -> Floats:
    return np.array([node.capacity for node in nodes])
