"""Nodes while trees are being placed on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from muntin.errors import MuntinError
from muntin.planner.placement.trees import Tree, Weaver


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


@dataclass(frozen=True)
class Node:
    """A place where trees run: a worker, or one of Spark's buckets.

    A node of capacity 2 is as busy with a cost of 200 as one of capacity 1 with 100.

    >>> Node("large", capacity=4)
    Node(name='large', capacity=4.0)
    """

    name: str
    capacity: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.capacity) and self.capacity > 0):
            raise MuntinError(
                f"node {self.name} has a capacity of {self.capacity}",
                hint="give a number above zero; 1 for all where nodes are alike",
            )
        object.__setattr__(self, "capacity", float(self.capacity))


Nodes: TypeAlias = int | Iterable["Node | str"]


def as_nodes(nodes: Nodes) -> tuple[Node, ...]:
    """Nodes from a number of equal ones, from names, or as they are.

    >>> [node.name for node in as_nodes(3)]
    ['0', '1', '2']
    >>> as_nodes(["a", Node("b", 2)])
    (Node(name='a', capacity=1.0), Node(name='b', capacity=2.0))
    """
    if isinstance(nodes, int):
        made = tuple(Node(str(number)) for number in range(nodes))
    elif isinstance(nodes, str):
        made = (Node(nodes),)
    else:
        made = tuple(node if isinstance(node, Node) else Node(str(node)) for node in nodes)
    if not made:
        raise MuntinError(
            f"there are no nodes to place trees on: {nodes!r}",
            hint="give a number of nodes from 1 on, or a list of Node(name, capacity)",
        )
    check_unique(made)
    return made


def check_unique(nodes: Iterable[Node]) -> None:
    """Refuses two nodes of one name."""
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise MuntinError(
                f"two nodes are named {node.name}", hint="give every node a name of its own"
            )
        seen.add(node.name)
