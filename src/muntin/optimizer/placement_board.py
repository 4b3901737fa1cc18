"""Nodes while trees are being placed on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muntin.optimizer.nodes import Node
from muntin.optimizer.placement_trees import Tree, Weaver


class Board:
    """The trees of every node and what they cost, all zero at first.

    A node's load is its cost over its capacity; with equal capacities, the lowest load is the
    lowest cost, which is what the thesis compares.
    """

    def __init__(self, nodes: Sequence[Node], weaver: Weaver) -> None:
        self.weaver = weaver
        self.capacities = [node.capacity for node in nodes]
        self.trees: list[list[Tree]] = [[] for _ in nodes]
        self.costs = [0.0] * len(nodes)

    def __len__(self) -> int:
        return len(self.costs)

    def load(self, node: int, added: float = 0.0) -> float:
        """The load of a node whose cost grows by `added`."""
        return (self.costs[node] + added) / self.capacities[node]

    def lowest(self, added: float) -> int:
        """The node with the lowest load once its cost has grown by `added`; the first of those."""
        return min(range(len(self)), key=lambda node: self.load(node, added))

    def group(self, node: int, tree: Tree) -> None:
        """Put a tree beside the others of a node."""
        self.trees[node].append(tree)
        self.costs[node] += tree.cost

    def weave(self, node: int, place: int, tree: Tree) -> None:
        """Weave a tree into one that a node has."""
        held = self.trees[node][place]
        woven = self.trees[node][place] = self.weaver.weave(held, tree)
        self.costs[node] += woven.cost - held.cost

    def increase(self, node: int, place: int, tree: Tree) -> float:
        """What a node's cost would grow by if a tree were woven into one that it has."""
        held = self.trees[node][place]
        return self.weaver.woven(held, tree) - held.cost

    def spread(self, trees: Iterable[Tree]) -> None:
        """One tree on each node, those first in order on the largest nodes."""
        order = sorted(range(len(self)), key=lambda node: -self.capacities[node])
        for node, tree in zip(order, trees, strict=False):
            self.group(node, tree)
